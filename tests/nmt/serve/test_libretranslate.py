"""LibreTranslate's interface."""

from typing import cast
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from nmt.serve.config import ServeConfig
from nmt.serve.engine import ALIGNMENT, EngineInfo, LineHypothesis, TranslatedLine
from nmt.serve.libretranslate import MULTIPART, URLENCODED, versions
from nmt.serve.limits import Token
from nmt.serve.monitoring import Lifecycle
from nmt.serve.server import application
from tests.nmt.serve.engines import Batch, Upper, client, serving

Json = dict[str, object]
EN_FR: Json = {"source": "en", "target": "fr"}


class German(Upper):
    def __init__(self) -> None:
        super().__init__(EngineInfo("fake", "", "de", "fr", (ALIGNMENT,)))
        self.fitted = 0

    def fit(self, line: str) -> float:
        self.fitted += 1
        return 0.5 if "ß" in line else 0.25


def test_a_text() -> None:
    with client(Upper()) as api:
        answer = api.post("/translate", json={"q": "a b\n\nc\n", **EN_FR})
    assert answer.status_code == 200 and answer.json() == {"translatedText": "A B\n\nC\n"}


def test_each_sentence_is_translated_by_itself() -> None:
    engine, text = Upper(), "Dr. Who sleeps.  A dog runs.\n\nIt barks. "
    with client(engine) as api:
        answer = api.post("/translate", json={"q": text, "alternatives": 1, **EN_FR}).json()
    assert {"Dr. Who sleeps.", "A dog runs.", "It barks. "} <= set(engine.seen)
    assert answer["translatedText"] == "DR. WHO SLEEPS.  A DOG RUNS.\n\nIT BARKS."
    assert answer["alternatives"] == ["DR. WHO SLEEPS.  A DOG RUNS. !\n\nIT BARKS. !"]


def test_a_list_of_texts() -> None:
    with client(Batch()) as api:
        answer = api.post("/translate", json={"q": ["a b", "c\nd"], **EN_FR}).json()
    assert answer == {"translatedText": ["A B", "C\nD"]}


def test_forms_and_query_strings() -> None:
    form = {"q": "a\r\nb", **EN_FR}
    with client(Upper()) as api:
        for answer in (
            api.post("/translate", data=form),
            api.post(
                "/translate",
                files={name: (None, str(value)) for name, value in {"q": "a\r\nb", **EN_FR}.items()},
            ),
            api.post("/translate", params={"q": "a\nb", **cast(dict[str, str], EN_FR)}),
        ):
            assert answer.json() == {"translatedText": "A\nB"}, answer.text


def test_forms_are_utf8_whether_escaped_or_not() -> None:
    """curl -d sends the bytes of the shell; --data-urlencode and browsers escape them."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    rest = b"&source=en&target=fr"
    with client(Upper()) as api:
        for text in ("q=muž spí.".encode(), quote("q=muž spí.", safe="=").encode(), b"q=mu%C5%BE+sp%c3%ad."):
            answer = api.post("/translate", content=text + rest, headers=kind)
            assert answer.json() == {"translatedText": "MUŽ SPÍ."}
            answer = api.post("/translate?source=en&target=fr", content=text, headers=kind)
            assert answer.json() == {"translatedText": "MUŽ SPÍ."}
        assert api.post("/translate?q=mu%C5%BE&source=en&target=fr").json() == {"translatedText": "MUŽ"}


@pytest.mark.parametrize("text", [b"mu\x9e sp\xed.", b"mu%9E", b"%ff", b"\xc3", b"%ED%A0%80"])
def test_a_form_in_another_encoding_is_refused(text: bytes) -> None:
    rest = b"&source=en&target=fr"
    part = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    parts = [(b"q", text), (b"source", b"en"), (b"target", b"fr")]
    with client(Upper()) as api:
        answers = [
            api.post("/translate", content=b"q=" + text + rest, headers={"Content-Type": URLENCODED}),
            api.post("/translate?q=" + quote(text, safe="%") + rest.decode()),
        ]
        if b"%" not in text:  # which a part does not escape
            body = b"".join(part % pair for pair in parts) + b"--x--\r\n"
            answers.append(
                api.post("/translate", content=body, headers={"Content-Type": f"{MULTIPART}; boundary=x"})
            )
    for answer in answers:
        assert answer.status_code == 400 and "UTF-8" in answer.json()["error"]


def test_a_form_of_too_many_fields() -> None:
    with client(Upper()) as api:
        answer = api.post("/translate", data={f"field {number}": "" for number in range(200)})
    assert answer.status_code == 400 and "fields" in answer.json()["error"]


@pytest.mark.parametrize("form", ["text", "html"])
@pytest.mark.parametrize("queries", [["a"] * 4, ["a\nb<br>b", "c\nd<br>d"], ["a" * 11]])
def test_limits_come_before_any_work(queries: list[str], form: str) -> None:
    """The engine is not even asked what language the texts are in."""
    engine = German()
    with client(engine, max_lines=3, max_line=10) as api:
        answer = api.post("/translate", json={"q": queries, "source": "auto", "target": "fr", "format": form})
        assert answer.status_code == 400 and "expected at most" in answer.json()["error"]
        before = engine.fitted
        good = api.post("/translate", json={"q": ["a"] * 3, "source": "auto", "target": "fr"})
    assert good.status_code == 200 and (before, engine.fitted) == (0, 3)


def test_alternatives_differ() -> None:
    with client(Upper()) as api:
        one = api.post("/translate", json={"q": "a\nb", "alternatives": 2, **EN_FR}).json()
        several = api.post("/translate", json={"q": ["a"], "alternatives": 1, **EN_FR}).json()
    assert one == {"translatedText": "A\nB", "alternatives": ["A !\nB !", "A ! !\nB ! !"]}
    assert several == {"translatedText": ["A"], "alternatives": [["A !"]]}


def test_versions_of_lines_with_unequal_lists() -> None:
    def line(*texts: str) -> TranslatedLine:
        return TranslatedLine([], [LineHypothesis(text, [], 0.0) for text in texts])

    found = versions([line("a", "b", "b"), line("x")], 5)
    assert [[one.hypotheses[0].text for one in row] for row in found] == [["a", "x"], ["b", "x"]]
    assert versions([], 3) == [[]]


def test_html_keeps_its_tags_and_translations_cannot_add_any() -> None:
    with client(Upper()) as api:
        answer = api.post("/translate", json={"q": "<p>a &lt; <b>b</b></p>", "format": "html", **EN_FR})
    assert answer.json() == {"translatedText": "<p>A &lt; <b>B</b></p>"}


def test_a_sentence_of_html_is_one_line_with_its_alternatives() -> None:
    engine, text = Upper(), '<p title="a > b">A <b>Dog</b> Runs. It &lt;barks&gt;.<script>s()</script></p>'
    with client(engine) as api:
        answer = api.post("/translate", json={"q": text, "format": "html", "alternatives": 1, **EN_FR}).json()
    assert engine.seen[-2:] == ["A Dog Runs.", "It <barks>."]
    target = '<p title="a > b">A <b>DOG</b> RUNS. IT &lt;BARKS&gt;.<script>s()</script></p>'
    assert answer == {"translatedText": target, "alternatives": [target.replace("&gt;.", "&gt;. !")]}


def test_the_language_is_guessed_among_those_that_are_served() -> None:
    with client(Upper(), German()) as api:
        one = api.post("/translate", json={"q": "groß", "source": "auto", "target": "fr"}).json()
        several = api.post("/translate", json={"q": ["groß", "big"], "source": "auto", "target": "fr"}).json()
        found = api.post("/detect", data={"q": "big"}).json()
    assert one["detectedLanguage"] == {"confidence": 50.0, "language": "de"}
    assert [one["language"] for one in several["detectedLanguage"]] == ["de", "en"]
    assert found == [{"confidence": 100.0, "language": "en"}, {"confidence": 25.0, "language": "de"}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"q": 5}, "q: expected a string"),
        ({"q": ["a", 5]}, "q: expected a list of strings"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "../x"}, "../x is not supported"),
        (
            {"source": "fr", "target": "en"},
            "English (en) is not available as a target language from French (fr)",
        ),
        ({"source": "auto", "target": "en"}, "en is not supported"),
        ({"format": "pdf"}, "pdf format is not supported"),
        ({"alternatives": -1}, "alternatives: expected a whole number from 0 to 99"),
    ],
    ids=str,
)
def test_errors(given: Json, message: str) -> None:
    whole = {"q": "a", **EN_FR, **given} if given else EN_FR
    with client(Upper()) as api:
        answer = api.post("/translate", json=whole)
    assert answer.status_code == 400 and answer.json() == {"error": message}


def test_languages() -> None:
    nameless = Upper(EngineInfo("fake", ""))
    with client(Upper(), German()) as api:
        found = api.get("/languages").json()
    assert found == [
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "de", "name": "German", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]
    with client(nameless) as api:
        assert api.get("/languages").json() == []
        assert api.post("/detect", json={"q": "a"}).status_code == 400
        assert api.get("/frontend/settings").status_code == 200


def test_settings_and_health() -> None:
    life = Lifecycle()
    api = TestClient(application(serving(Upper()), ServeConfig(), life=life), "http://localhost")
    settings = api.get("/frontend/settings").json()
    assert settings["language"]["target"] == {"code": "fr", "name": "French"} and not settings["keyRequired"]
    assert api.get("/health").json() == {"status": "ok"}
    life.stop()
    assert api.get("/health").status_code == 503


def test_the_key() -> None:
    secret = "correct horse battery"
    api = TestClient(application(serving(Upper()), ServeConfig(), Token(secret)))
    given = {"q": "a", **EN_FR}
    for key in ({}, {"api_key": ""}, {"api_key": "wrong"}):
        answer = api.post("/translate", json={**given, **key})
        assert answer.status_code == 403 and answer.json() == {"error": "Invalid API key"}
        assert api.post("/detect", data={"q": "a", **key}).status_code == 403
    assert api.post("/translate", data={**given, "api_key": secret}).json() == {"translatedText": "A"}
    assert (
        api.post("/translate", json=given, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    )
