"""LibreTranslate's interface."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast
from urllib.parse import quote

import pytest

from nmt.serve.engine import ALIGNMENT, EngineInfo, LineHypothesis, TranslatedLine
from nmt.serve.http_api import BadRequest
from nmt.serve.libretranslate import DETECTED_CHARACTERS, LanguageDetector, versions
from nmt.serve.monitoring import Lifecycle
from tests.nmt.serve.engines import BEARER, INFO, SECRET, Batch, Upper, client, serving

# ---- test libretranslate -----------------------------------------------------------------------------------


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


def test_text_for_an_engine_that_reads_words() -> None:
    engine = Upper(replace(INFO, tokenized_only=True))
    with client(engine) as api:
        text = api.post("/translate", json={"q": "It is so. A dog, he says.", **EN_FR}).json()
        html = api.post("/translate", json={"q": "<p>It <b>is</b> so.", "format": "html", **EN_FR}).json()
    assert {"it is so .", "a dog , he says ."} <= set(engine.seen)
    assert text == {"translatedText": "IT IS SO. A DOG, HE SAYS."}
    assert html == {"translatedText": "<p>IT <b>IS</b> SO."}


def test_a_list_of_texts() -> None:
    with client(Batch()) as api:
        answer = api.post("/translate", json={"q": ["a b", "c\nd"], **EN_FR}).json()
    assert answer == {"translatedText": ["A B", "C\nD"]}


def test_forms_and_query_strings() -> None:
    form = {"q": "a\r\nb", **EN_FR}
    parts = {name: (None, str(value)) for name, value in form.items()}
    with client(Upper()) as api:
        for answer in (
            api.post("/translate", data={**form, "alternatives": ""}),
            api.post("/translate", files=parts),
            api.post("/translate", params={"q": "a\nb", **cast(dict[str, str], EN_FR)}),
        ):
            assert answer.json() == {"translatedText": "A\nB"}, answer.text
        assert len(api.post("/translate", data={**form, "alternatives": "2"}).json()["alternatives"]) == 2


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
    with client(Upper(), life=life) as api:
        settings = api.get("/frontend/settings").json()
        target = settings["language"]["target"]
        assert target == {"code": "fr", "name": "French"} and not settings["keyRequired"]
        assert api.get("/health").json() == {"status": "ok"}
        life.stop()
        assert api.get("/health").status_code == 503


def test_the_key() -> None:
    given = {"q": "a", **EN_FR}
    with client(Upper(), token=SECRET) as api:
        for key in ({}, {"api_key": ""}, {"api_key": "wrong"}):
            answer = api.post("/translate", json={**given, **key})
            assert answer.status_code == 403 and answer.json() == {"error": "Invalid API key"}
            assert api.post("/detect", data={"q": "a", **key}).status_code == 403
        assert api.post("/translate", data={**given, "api_key": SECRET}).json() == {"translatedText": "A"}
        assert api.post("/translate", json=given, headers=BEARER).status_code == 200


# ---- test languages ----------------------------------------------------------------------------------------
# Which of the languages that are served a text is in.


class Reads(Upper):
    """Fits as well as the share of a text that is its letter."""

    def __init__(self, letter: str, source: str, target: str = "fr") -> None:
        super().__init__(EngineInfo("fake", "", source, target))
        self.letter = letter

    def fit(self, line: str) -> float:
        assert len(line) <= DETECTED_CHARACTERS and "\n" not in line
        return line.count(self.letter) / len(line)


def detected(
    text: str, *engines: Upper, names: Sequence[str] = ("one", "two", "three")
) -> list[tuple[str, float]]:
    return asyncio.run(LanguageDetector(serving(*engines, names=names)).candidates(text))


def test_the_likeliest_comes_first_and_those_that_do_not_fit_are_left_out() -> None:
    engines = Reads("e", "en"), Reads("d", "de"), Reads("x", "cs")
    assert detected("e\ndd", *engines) == [("de", 50.0), ("en", 25.0)]
    assert detected("eed" + "x" * 5000, *engines)[0] == ("cs", 99.7)


def test_a_language_fits_as_well_as_its_best_engine() -> None:
    assert detected("aab", Reads("b", "en"), Reads("a", "en", "de")) == [("en", 66.7)]


def test_where_nothing_fits_a_language_is_named_all_the_same() -> None:
    assert detected("zz", Reads("a", "en"), Reads("b", "de")) == [("en", 0.0)]


def test_engines_of_unknown_languages_are_not_asked() -> None:
    with pytest.raises(BadRequest):
        detected("a", Reads("a", "", ""))
