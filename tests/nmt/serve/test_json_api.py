"""Our own interface."""

from dataclasses import replace
from typing import cast

import pytest

from nmt.serve import json_api
from nmt.serve.engine import EngineInfo, LineHypothesis
from tests.nmt.serve.engines import INFO, Batch, Upper, client

Json = dict[str, object]


def translated(found: object) -> list[Json]:
    return cast(list[Json], cast(Json, found)["translations"])


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_lines_and_their_translations(engine: type[Upper]) -> None:
    with client(engine()) as api:
        answer = api.post("/api/translate", json={"text": "a 1\n\nb\n", "n_best": 2})
    assert answer.status_code == 200
    found = answer.json()
    assert found["engine"] == "upper" and found["seconds"] >= 0
    assert [one["source"] for one in found["translations"]] == ["a 1", "", "b"]
    first, empty, _ = found["translations"]
    assert first == {
        "source": "a 1",
        "words": ["a", "1"],
        "unknown": [1],
        "parts": 1,
        "hypotheses": [
            {
                "text": text,
                "words": text.split(),
                "score": score,
                "alignment": [[0, 0], [1, 1]],
                "segments": [{"source": [0, 0], "target": [0, 0]}, {"source": [1, 1], "target": [1, 1]}],
                "features": {"F0": [1.0, -score]},
            }
            for text, score in (("A 1", 0.0), ("A 1 !", -1.0))
        ],
    }
    assert empty["hypotheses"] == [{"text": "", "words": [], "score": 0, "log_prob": 0, "alignment": []}]


def test_a_list_of_lines_and_another_engine() -> None:
    with client(Upper(), Upper(EngineInfo("fake", "", "de", "en"))) as api:
        answer = api.post("/api/translate", json={"lines": ["a", "b"], "engine": "other"}).json()
    assert answer["engine"] == "other" and len(answer["translations"]) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected one of the fields text and lines"),
        ({"text": "a", "lines": ["a"]}, "expected one of the fields text and lines"),
        ({"text": 1}, "text: expected a string"),
        ({"lines": "a"}, "lines: expected a list of strings"),
        ({"lines": ["a\nb"]}, "line 1: is more than one line"),
        ({"text": "a", "engine": "../x"}, "engine: unknown name, expected one of upper"),
        ({"text": "a", "n_best": 101}, "n_best: expected a whole number from 1 to 100"),
        ({"text": "a", "beam_size": 0}, "beam_size: expected a whole number from 1 to 50"),
        ({"text": "a", "attention": 1}, "attention: expected true or false"),
        ({"text": "a", "beam": 1}, "unknown field 'beam', expected engine, text, lines"),
        ({"text": "a b c d e f"}, "line 1: 11 characters, expected at most 10; split it"),
        ({"text": "a\n" * 4}, "4 lines, expected at most 3"),
        ({"text": "fail"}, "line 1: cannot be translated"),
        ({"text": "a", "terms": ["a", "b"]}, "terms: expected an object of strings"),
        ({"text": "a", "avoid": "b"}, "avoid: expected a list of strings"),
        ({"text": "a", "terms": {"a": "b"}}, "engine upper does not take the field terms; see capabilities"),
        ({"text": "a", "avoid": ["b"]}, "engine upper does not take the field avoid; see capabilities"),
        ({"text": "a", "terms": {"abc": "d"}, "avoid": ["ef"]}, "terms, avoid: 6 characters, expected at"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_request(given: Json, message: str) -> None:
    with client(Upper(), max_line=10, max_lines=3, max_terms=5) as api:
        answer = api.post("/api/translate", json=given)
    assert answer.status_code == 400 and answer.json()["error"].startswith(message)


def test_text_for_an_engine_that_reads_words() -> None:
    words = replace(INFO, tokenized_only=True)
    with client(Upper(words), Upper(replace(words, source=""))) as api:
        given = {"text": "It is so.", "plain": True}
        answer = api.post("/api/translate", json=given).json()["translations"][0]
        unnamed = api.post("/api/translate", json={**given, "engine": "other"})
        listed = [one["plain"] for one in api.get("/api/engines").json()["engines"]]
    assert answer["source"] == "It is so." and answer["words"] == ["it", "is", "so", "."]
    assert answer["hypotheses"][0]["text"] == "IT IS SO."
    assert unnamed.status_code == 400 and unnamed.json()["error"].startswith("plain: engine other")
    assert listed == [True, False]


def test_phrases_of_very_many_different_characters() -> None:
    """The automaton that looks for them grows with their number times the length of the phrases."""
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 1500)))
    info = EngineInfo("fake", "", "de", "en", ("avoid",))
    with client(Upper(info)) as api:
        answer = api.post("/api/translate", json={"text": "a", "avoid": [letters]})
        assert answer.status_code == 400 and "different characters" in answer.json()["error"]
        assert api.post("/api/translate", json={"text": "a", "avoid": ["ab " * 2000]}).status_code == 200


def test_an_error_of_ours_is_not_told() -> None:
    with client(Upper()) as api:
        answer = api.post("/api/translate", json={"text": "crash"})
        assert answer.status_code == 500 and "secret" not in answer.text
        assert answer.json()["error"].startswith("internal error; the log has it as request ")
        assert api.post("/api/translate", json={"text": "a"}).status_code == 200


def test_scores() -> None:
    with client(Upper()) as api:
        given: Json = {"source": ["a", "b"], "target": ["cc d", ""]}
        answer = api.post("/api/score", json=given)
        words = api.post("/api/score", json={**given, "word_scores": True})
    assert answer.json() == {"engine": "upper", "scores": [{"log_prob": -3.0}, {"log_prob": 0.0}]}
    assert words.json()["scores"][0] == {"log_prob": -3.0, "word_scores": [-2.0, -1.0]}


def test_scores_that_cannot_be_had() -> None:
    with client(Upper(), Upper(EngineInfo("fake", ""))) as api:
        uneven = api.post("/api/score", json={"source": ["a"], "target": []})
        without = api.post("/api/score", json={"source": ["a"], "target": ["b"], "engine": "other"})
    assert uneven.status_code == without.status_code == 400
    assert uneven.json()["error"] == "1 sources, but 0 targets"
    assert without.json()["error"].startswith("engine other gives no scores")


def test_the_engines() -> None:
    with client(Upper(), max_lines=7) as api:
        found = api.get("/api/engines").json()
    assert found["engines"] == [
        {
            "name": "upper",
            "kind": "fake",
            "description": "upper case",
            "source": "en",
            "target": "fr",
            "capabilities": ["n_best", "alignment", "score"],
            "beam_size": 5,
            "tokenized_only": False,
            "plain": True,
            "features": [],
        }
    ]
    assert found["limits"]["max_lines"] == 7


def test_json_has_no_infinity() -> None:
    assert json_api.hypothesis_json(LineHypothesis("", [], -float("inf"), float("nan")))["score"] is None
