"""The features of a system in words."""

from pathlib import Path

from smt_bridge.decoder import system as systems
from smt_bridge.decoder.feature_descriptions import describe_scores, score_descriptions

MODEL = Path(__file__).resolve().parents[2] / "models" / "phrase-based"


def test_each_printed_score_has_its_weight() -> None:
    system = systems.load(str(MODEL), False)
    rows = describe_scores(system)
    assert {one.name: len(one.weights) for one in rows} == system.sizes
    assert all(one.what for one in rows)
    assert all(len(one.scores) in (0, len(one.weights)) for one in rows)


def test_columns_beyond_those_of_moses_are_numbered() -> None:
    assert score_descriptions("PhraseDictionaryMemory", 6)[4:] == ["column 5", "column 6"]
    assert (
        score_descriptions("PhraseDictionaryMemory", 2) == []
        and len(score_descriptions("LexicalReordering", 6)) == 6
    )
    assert score_descriptions("LexicalReordering", 3) == [] and score_descriptions("Mine", 2) == []
