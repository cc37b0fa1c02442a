"""The systems of a build side by side, and without their parts."""

import json
from pathlib import Path

import pytest

from smt_bridge.build import evaluation, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.evaluation import choose, evaluate, parts, read
from smt_bridge.build.networks import FEATURES
from tests.smt_bridge.build.builds import decodable, small_plan


def test_the_worth_of_each_part(tmp_path: Path) -> None:
    build = decodable(tmp_path, 8)
    tuning.tune_phrase_based(build)
    evaluate(build)
    found = read(build)
    assert found.chosen == "phrase-based" and set(found.without) == {"LM0", "LexicalReordering0"}
    assert all(score <= found.lists + 1e-9 for score in found.without.values())
    assert found.without["LM0"] < found.lists  # the references are what the system with it says
    output = (build.work / "dev" / "outputs" / "phrase-based").read_text()
    assert output.count("\n") == 8 and 0 < found.whole["phrase-based"] <= 1


@pytest.mark.parametrize(
    ("plain", "hybrid", "best"), [(0.5, 0.6, "hybrid"), (0.6, 0.5, "phrase-based"), (0.5, 0.5, "hybrid")]
)
def test_the_system_that_decodes_best_is_chosen(
    plain: float, hybrid: float, best: str, tmp_path: Path
) -> None:
    build = decodable(tmp_path)
    build = Build(build.config, small_plan("joint"))
    for name, score in (("phrase-based", plain), ("hybrid", hybrid)):
        found = {"bleu": score, "iterations": [score], "lines": 12, "names": []}
        (build.work / "dev" / f"{name}.json").write_text(json.dumps(found))
    assert choose(build) == best


def test_the_parts_are_named_as_in_the_ini(tmp_path: Path) -> None:
    build = Build(decodable(tmp_path).config, small_plan("attention", "joint", "cslm"))
    assert list(parts(build)) == ["NMT0", "NNJM0", "CSLM0", "LM0", "LexicalReordering0"]
    assert {evaluation.feature_name(line) for line in FEATURES.values()} <= set(parts(build))
