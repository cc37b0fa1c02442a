"""Comparing the systems of a build, and measuring what each part adds."""

from dataclasses import replace
from pathlib import Path

import pytest

from smt_bridge.build import evaluation, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.evaluation import choose, evaluate, parts, read_evaluation
from smt_bridge.build.networks import FEATURES
from tests.smt_bridge.build.builds import decodable, small_plan


def test_systems_are_compared_on_twice_the_lines(tmp_path: Path) -> None:
    build = decodable(tmp_path, 12)
    small = replace(
        build.plan, sizes=replace(build.plan.sizes, dev_pairs=12), tuning=replace(build.plan.tuning, lines=3)
    )
    lines = BuildTexts(build.work).lines("dev.source")
    assert evaluation.comparison_lines(Build(build.config, small), "dev.source") == lines[::2]
    assert evaluation.comparison_lines(build, "dev.source") == lines


def test_the_worth_of_each_part(tmp_path: Path) -> None:
    build = decodable(tmp_path, 8)
    tuning.tune_phrase_based(build)
    evaluate(build)
    found = read_evaluation(build)
    assert found.chosen == "phrase-based" and set(found.without) == {"LM0", "LexicalReordering0"}
    assert found.without["LM0"] < found.lists  # the references are what the system with it says
    output = (build.work / "dev" / "outputs" / "phrase-based").read_text()
    assert output.count("\n") == 8 and 0 < found.whole["phrase-based"] <= 1


def test_each_part_is_left_out_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path, 8)
    tuning.tune_phrase_based(build)
    whole, without = evaluation.ablation(build, "phrase-based")
    for part in reversed(without):
        monkeypatch.setattr("smt_bridge.build.evaluation.parts", lambda build, part=part: {part: ""})
        assert evaluation.ablation(build, "phrase-based") == (whole, {part: without[part]})


def test_the_system_that_decodes_best_is_chosen() -> None:
    assert choose({"phrase-based": 0.5, "hybrid": 0.6}) == "hybrid"
    assert choose({"phrase-based": 0.6, "hybrid": 0.5}) == "phrase-based"
    assert choose({"phrase-based": 0.5, "hybrid": 0.5}) == "hybrid" and choose({"a": 0.1}) == "a"


def test_the_parts_are_named_as_in_the_ini(tmp_path: Path) -> None:
    build = Build(decodable(tmp_path).config, small_plan("attention", "joint", "cslm"))
    assert list(parts(build)) == ["NMT0", "NNJM0", "CSLM0", "LM0", "LexicalReordering0"]
    assert {evaluation.feature_name(line) for line in FEATURES.values()} <= set(parts(build))
