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
        most = api.post("/api/translate", json={"text": "a", "n_best": 100, "beam_size": 50})
    assert answer["engine"] == "other" and len(answer["translations"]) == 2
    assert len(most.json()["translations"][0]["hypotheses"]) == 100


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
        refused = api.post("/api/score", json={**given, "target": ["x", "y\nz"]})
    assert answer.json() == {"engine": "upper", "scores": [{"log_prob": -3.0}, {"log_prob": 0.0}]}
    assert refused.status_code == 400 and refused.json()["error"].startswith("line 2: is more than one line")
    assert words.json()["scores"][0] == {"log_prob": -3.0, "units": ["cc", "d"], "word_scores": [-2.0, -1.0]}


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
