"""The tuning of a build: what smt-tune does, in the folder of the build."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.build import evaluation, report, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.evaluation import choose, evaluate, parts, read_evaluation
from smt_bridge.build.networks import FEATURES, START
from smt_bridge.build.tuning import HYBRID, PHRASE_BASED, read_result, sample_lines
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.loop import make_references, starting_weights
from smt_bridge.tuning.pool import Floats
from smt_bridge.tuning.pro import Pro
from tests.smt_bridge.build.builds import decodable, small_plan


def test_lines_are_chosen_evenly() -> None:
    lines = list("abcdefghij")
    assert (
        sample_lines(lines, 5) == list("acegi")
        and sample_lines(lines, 10) == sample_lines(lines, 99) == lines
    )
    assert sample_lines(lines, 3) == list("adg")


def test_the_tuned_ini_decodes_as_well_as_the_tuning_says(tmp_path: Path) -> None:
    build = decodable(tmp_path)
    tuning.tune_phrase_based(build)
    found, texts = read_result(build, PHRASE_BASED), BuildTexts(build.work)
    ini = moses_ini.read(str(tuning.ini_path(build, PHRASE_BASED)))
    assert found.bleu == max(found.iterations) and ini.lines[0].startswith(f"# BLEU {100 * found.bleu:.2f}")
    output = tuning.load_decoder(build, tuning.ini_path(build, PHRASE_BASED)).translate(
        texts.lines("dev.source")
    )
    references = make_references([texts.lines("dev.target")])
    rows = [one.statistics(line.split()) for one, line in zip(references, output, strict=True)]
    assert float(bleu(np.array(rows, np.float64).sum(0))) == pytest.approx(found.bleu, abs=0.02)
    assert found.names[0].endswith("_0") and len(found.names) == sum(map(len, ini.weights.values()))


def test_a_build_says_once_where_a_tuning_gained_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From weights that ignore the phrase table, and from those that made the references."""
    build, said = decodable(tmp_path), []

    def blind(decoder: Decoder, names: Sequence[str]) -> list[Floats]:
        table = [name.startswith("TranslationModel0") for name in names]
        return [np.where(table, 0.0, one) for one in starting_weights(decoder, names)]

    for choice in (blind, starting_weights):
        monkeypatch.setattr("smt_bridge.build.tuning.starting_weights", choice)
        tuning.tune_phrase_based(build)
        said.append(read_result(build, PHRASE_BASED).warning)
        shutil.rmtree(build.work / "dev" / "phrase-based.tuning")
    assert said[0] == "" and said[1].startswith("the tuning gained nothing")
    warned = [one.getMessage() for one in caplog.records if "gained nothing" in one.getMessage()]
    assert warned == [f"phrase-based: {said[1]}"]
    assert report.tuning_warnings(build) == [f"The phrase-based system: {said[1]}."]


def test_each_system_has_its_own_tuner(tmp_path: Path) -> None:
    build = decodable(tmp_path)
    plan = replace(build.plan, tuning=replace(build.plan.tuning, method="pro", hybrid_method="kbmira"))
    found = [tuning.make_tuning(Build(build.config, plan), name, [], 1) for name in (PHRASE_BASED, HYBRID)]
    assert [type(one.tuner) for one in found] == [Pro, Kbmira]
    assert [one.config.iterations for one in found] == [3, 2]


def test_networks_start_beside_the_tuned_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path)
    tuning.tune_phrase_based(build)
    hybrid = Build(build.config, replace(small_plan("joint", "cslm")))
    given: list[tuple[str, Ini]] = []
    monkeypatch.setattr(
        "smt_bridge.build.tuning.tune", lambda build, name, ini, lines: given.append((name, ini))
    )
    tuning.tune_hybrid(hybrid)
    ((name, ini),) = given
    before = moses_ini.read(str(tuning.ini_path(build, PHRASE_BASED))).weights
    assert name == "hybrid" and tuning.make_tuning(hybrid, name, [], 1).config.iterations == 2
    assert ini.weights == before | {"NNJM0": [START], "CSLM0": [START]}
    assert ini.feature("NNJM0").options["path"] == "../networks/joint"


# ---- test evaluation ---------------------------------------------------------------------------------------


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
