"""What is wrong with a request: status 400, and a message that names the field. Those of XML-RPC are faults,
see test_moses_rpc.py."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from nmt.serve.engine import EngineInfo
from nmt.serve.libretranslate import MULTIPART, URLENCODED
from tests.nmt.serve.engines import INFO, Upper, client

OURS, THEIRS = "/api/translate", "/translate"
Json = dict[str, object]
NO_NUMBERS: list[object] = [True, 1.0, "-1", "x", -1, 101, 10**400, []]


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    """Besides `upper`, an engine of unknown languages that avoids phrases, and one that reads words alone."""
    other = Upper(EngineInfo("fake", "", capabilities=("avoid",)))
    words = Upper(replace(INFO, tokenized_only=True, source="", target=""))
    names = ("upper", "other", "words")
    with client(Upper(), other, words, names=names, max_line=10, max_lines=3, max_terms=5) as found:
        yield found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected one of the fields text and lines"),
        ({"text": "a", "lines": ["a"]}, "expected one of the fields text and lines"),
        ({"text": 1}, "text: expected a string"),
        ({"lines": "a"}, "lines: expected a list of strings"),
        ({"lines": ["a", 2]}, "lines: expected a list of strings"),
        ({"lines": ["a\nb"]}, "line 1: is more than one line"),
        ({"text": "a", "engine": "../x"}, "engine: unknown name, expected one of upper, other, words"),
        *(
            ({"text": "a", "n_best": value}, "n_best: expected a whole number from 1 to 100")
            for value in NO_NUMBERS
        ),
        ({"text": "a", "n_best": "1"}, "n_best: expected a whole number from 1 to 100"),
        ({"text": "a", "beam_size": 0}, "beam_size: expected a whole number from 1 to 50"),
        ({"text": "a", "attention": 1}, "attention: expected true or false"),
        ({"text": "a", "attention": "true"}, "attention: expected true or false"),
        ({"text": "a", "beam": 1}, "unknown field 'beam', expected engine, text, lines"),
        ({"text": "a b c d e f"}, "line 1: 11 characters, expected at most 10; split it"),
        ({"text": "a\n" * 4}, "4 lines, expected at most 3"),
        ({"text": "fail"}, "line 1: cannot be translated"),
        *(
            ({"text": "a", "terms": value}, "terms: expected an object of strings")
            for value in (["a", "b"], "a", 1, {"a": 1})
        ),
        ({"text": "a", "avoid": "b"}, "avoid: expected a list of strings"),
        ({"text": "a", "terms": {"a": "b"}}, "engine upper does not take the field terms; see capabilities"),
        ({"text": "a", "avoid": ["b"]}, "engine upper does not take the field avoid; see capabilities"),
        ({"text": "a", "terms": {"abc": "d"}, "avoid": ["ef"]}, "terms, avoid: 6 characters, expected at"),
        ({"text": "a", "tokenized": True, "split_sentences": True}, "split_sentences: words between blanks"),
        ({"text": "a", "engine": "words", "split_sentences": True}, "split_sentences: words between blanks"),
        (
            {"text": "a", "engine": "words", "plain": True},
            "plain: engine words does not declare its languages",
        ),
        (b'{"text": "\\ud800"}', "text: half of a surrogate pair"),
        (b'{"lines": ["\\ud800"]}', "lines: half of a surrogate pair"),
        *(
            (body, "the body is not")
            for body in (b"", b"[]", b"{", b'{"a": NaNN}', b"\xff{}", b"[" * 100_000, b'"x"', b"null")
        ),
    ],
    ids=str,
)
def test_translations(api: TestClient, given: Json | bytes, message: str) -> None:
    answer = api.post(OURS, content=given) if isinstance(given, bytes) else api.post(OURS, json=given)
    assert answer.status_code == 400 and answer.json()["error"].startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": []}, "1 sources, but 0 targets"),
        ({"target": ["b"], "engine": "other"}, "engine other gives no scores"),
        ({}, "target: expected a list of strings"),
        ({"target": ["b"], "word_scores": 1}, "word_scores: expected true or false"),
    ],
    ids=str,
)
def test_scores(api: TestClient, given: Json, message: str) -> None:
    answer = api.post("/api/score", json={"source": ["a"], **given})
    assert answer.status_code == 400 and answer.json()["error"].startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"q": 5}, "q: expected a string"),
        ({"q": ["a", 5]}, "q: expected a list of strings"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "../x"}, "../x is not supported"),
        ({"source": "fr", "target": "en"}, "English (en) is not available as a target language from French"),
        ({"source": "auto", "target": "en"}, "en is not supported"),
        ({"format": "pdf"}, "pdf format is not supported"),
        *(
            ({"alternatives": value}, "alternatives: expected a whole number from 0 to 99")
            for value in [*NO_NUMBERS, "1.0", "٣", "9" * 5000]
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_libretranslate(api: TestClient, given: Json, message: str) -> None:
    answer = api.post(THEIRS, json={"q": "a", "source": "en", "target": "fr", **given})
    assert answer.status_code == 400 and answer.json()["error"].startswith(message)


@pytest.mark.parametrize("text", [b"mu\x9e sp\xed.", b"mu%9E", b"%ff", b"\xc3", b"%ED%A0%80"])
def test_a_form_in_another_encoding(api: TestClient, text: bytes) -> None:
    rest = "&source=en&target=fr"
    address = "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in text)
    answers = [
        api.post(THEIRS, content=b"q=" + text + rest.encode(), headers={"Content-Type": URLENCODED}),
        api.post(f"{THEIRS}?q={address}{rest}"),
    ]
    if b"%" not in text:  # which a part does not escape
        parts = {"q": text, "source": b"en", "target": b"fr"}
        part = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        body = b"".join(part % (name.encode(), value) for name, value in parts.items()) + b"--x--\r\n"
        answers.append(api.post(THEIRS, content=body, headers={"Content-Type": f"{MULTIPART}; boundary=x"}))
    for answer in answers:
        assert answer.status_code == 400 and "UTF-8" in answer.json()["error"]


def test_a_form_of_too_many_fields(api: TestClient) -> None:
    answer = api.post(THEIRS, data={f"field {number}": "" for number in range(200)})
    assert answer.status_code == 400 and "fields" in answer.json()["error"]


def test_phrases_of_very_many_different_characters() -> None:
    """The automaton that looks for them grows with their number times the length of the phrases."""
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 1500)))
    with client(Upper(EngineInfo("fake", "", "de", "en", ("avoid",)))) as api:
        answer = api.post(OURS, json={"text": "a", "avoid": [letters]})
        assert answer.status_code == 400 and "different characters" in answer.json()["error"]
        assert api.post(OURS, json={"text": "a", "avoid": ["ab " * 2000]}).status_code == 200
