"""The tuning of a build: what smt-tune does, in the folder of the build."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.analysis.statistics import SAMPLES
from nmt.errors import ConfigError
from smt_bridge.build import evaluation, report, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.evaluation import choose, evaluate, parts, read_evaluation
from smt_bridge.build.networks import FEATURES, START, feature_name
from smt_bridge.build.tuning import HYBRID, PHRASE_BASED, read_result, sample_lines
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.expected_bleu import ExpectedBleu
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.loop import make_references, starting_weights
from smt_bridge.tuning.pool import Floats, Pool
from smt_bridge.tuning.ranking import Pro
from tests.smt_bridge.build.builds import decodable, small_plan
from tests.smt_bridge.tuning.test_mert import random_pool


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


def test_a_tuning_is_resumed_on_the_same_lines_only(tmp_path: Path) -> None:
    """Lines of either side that differ are refused."""
    build = decodable(tmp_path)
    decoder = tuning.load_decoder(build, build.work / "dev" / "moses.ini", 5)
    tuning.tuning_folder(build, PHRASE_BASED).mkdir()
    for _ in range(2):
        tuning.open_tuning(build, PHRASE_BASED, decoder, ["a"], ["b"])
    for source, target in (("a", "c"), ("c", "b")):
        with pytest.raises(ConfigError, match="texts"):
            tuning.open_tuning(build, PHRASE_BASED, decoder, [source], [target])


def test_networks_start_beside_the_tuned_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path)
    tuning.tune_phrase_based(build)
    hybrid = Build(build.config, replace(small_plan("joint", "cslm")))
    given: list[tuple[str, Ini]] = []
    monkeypatch.setattr(
        "smt_bridge.build.tuning.tune", lambda build, name, ini, lines, new: given.append((name, ini))
    )
    tuning.tune_hybrid(hybrid)
    ((name, ini),) = given
    before = moses_ini.read(str(tuning.ini_path(build, PHRASE_BASED))).weights
    assert name == "hybrid" and tuning.make_tuning(hybrid, name, [], 1).config.iterations == 2
    assert ini.weights == before | {"NNJM0": [START], "CSLM0": [START]}
    assert ini.feature("NNJM0").options["path"] == "../networks/joint"


def test_networks_start_where_the_first_lists_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path)
    fitted: list[tuple[int, Sequence[int]]] = []

    def fit(pool: Pool, weights: Floats, columns: Sequence[int]) -> Floats:
        fitted.append((pool.sentences, columns))
        return weights

    def twice(decoder: Decoder, names: Sequence[str]) -> list[Floats]:
        return starting_weights(decoder, names)[:1] * 2

    for name, value in (
        ("fit_alone", fit), ("new_columns", lambda names, new: [1]), ("starting_weights", twice)
    ):  # fmt: skip
        monkeypatch.setattr(f"smt_bridge.build.tuning.{name}", value)
    tuning.tune_phrase_based(build)
    assert fitted == [(12, [1])]  # the second start, on the lists of the first


def test_the_first_score_of_each_new_feature_is_fitted() -> None:
    """Of an operation sequence model the log probability, without its counts."""
    names = ["LM0_0", "NNJM0_0", "Osm0_0", "Osm0_1", "CSLM0_0"]
    assert tuning.new_columns(names, {"NNJM0", "CSLM0"}) == [1, 4]
    assert tuning.new_columns(names, {"Osm0"}) == [2] and tuning.new_columns(names, ()) == []


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
    assert found.chosen == "phrase-based" and set(found.list_bleu_without) == {"LM0", "LexicalReordering0"}
    assert found.list_bleu_without["LM0"] < found.list_bleu  # the references are what the system with it says
    output = (build.work / "dev" / "outputs" / "phrase-based").read_text()
    assert output.count("\n") == 8 and 0 < found.bleu["phrase-based"] <= 1


def test_each_part_is_left_out_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path, 8)
    tuning.tune_phrase_based(build)
    complete, without, p_values = evaluation.ablation(build, "phrase-based", lambda: None)
    for part in reversed(without):
        monkeypatch.setattr("smt_bridge.build.evaluation.parts", lambda build, part=part: {part: ""})
        expected = complete, {part: without[part]}, {part: p_values[part]}
        assert evaluation.ablation(build, "phrase-based", lambda: None) == expected


def test_each_half_is_translated_by_weights_of_the_other() -> None:
    """A sentence's own list says nothing of its translation: turned round, it gets what the weights say."""
    pool = random_pool(sentences=30, features=3, seed=5)
    rows = evaluation.cross_validated(pool)
    even, odd = range(0, 30, 2), range(1, 30, 2)
    for tuned, other in ((even, odd), (odd, even)):
        weights = ExpectedBleu().tune(pool.part(tuned), None, 1).weights
        assert (rows[list(other)] == pool.stats[pool.best(weights)][list(other)]).all()
    assert (evaluation.cross_validated(pool.part([4])) == pool.stats[pool.starts[4] : pool.starts[5]]).any()


def test_parts_of_a_pool() -> None:
    pool = random_pool(sentences=6, features=2, seed=5)
    part = pool.part([4, 1])
    rows = [*range(pool.starts[4], pool.starts[5]), *range(pool.starts[1], pool.starts[2])]
    assert (part.features == pool.features[rows]).all() and (part.stats == pool.stats[rows]).all()
    assert part.sentences == 2 and part.starts[1] == pool.starts[5] - pool.starts[4]
    assert (pool.part(range(6)).starts == pool.starts).all()


# ---- test the choice ---------------------------------------------------------------------------------------


def statistics_of(matches: Iterable[int]) -> Floats:
    """Statistics of sentences of 10 words each, that differ in their matches."""
    rows = [[n, 10, n - 1, 9, n - 2, 8, n - 3, 7, 10] for n in matches]
    return np.array(rows, np.float64)


def test_the_p_value_is_the_share_of_samples_without_a_gain() -> None:
    """Equal to texts that are drawn and scored one by one."""
    rng = np.random.default_rng(2)
    matches = rng.integers(5, 9, 25)
    better, worse = statistics_of(matches + rng.integers(-1, 3, 25) // 2), statistics_of(matches)
    drawn = np.random.default_rng(1).integers(0, 25, (SAMPLES, 25))
    lost = sum(bleu(better[rows].sum(0)) <= bleu(worse[rows].sum(0)) for rows in drawn)
    found = evaluation.p_value(better, worse)
    assert found == pytest.approx((1 + lost) / (1 + SAMPLES)) and 0.002 < found < 0.5
    assert evaluation.p_value(worse, better) >= 1 - found  # a draw is no gain, either way
    assert evaluation.p_value(better, better) == 1
    assert evaluation.p_value(statistics_of([9] * 25), statistics_of([4] * 25)) < 0.001


def test_networks_are_kept_only_where_they_are_better_beyond_chance() -> None:
    assert choose("phrase-based", {"phrase-based": 0.05, "neural": 0.9}, 0.05) == "hybrid"
    assert choose("phrase-based", {"phrase-based": 0.051, "neural": 0.0}, 0.05) == "phrase-based"
    assert choose("extended", {}, 1.0) == "extended"  # without networks
    assert choose("phrase-based", {"phrase-based": 1.0}, 1.0) == "hybrid"


@pytest.mark.parametrize("better", [1, 0])
def test_the_choice_is_that_of_the_bootstrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, better: int
) -> None:
    """A hybrid that gives the references, and one that gives what the phrase-based system does."""
    build = decodable(tmp_path, 12)
    tuning.tune_phrase_based(build)
    for name in ("hybrid.json", "hybrid.ini"):
        shutil.copy(build.work / "dev" / name.replace("hybrid", "phrase-based"), build.work / "dev" / name)
    hybrid = Build(build.config, replace(small_plan("joint"), tuning=build.plan.tuning))
    plain = list(evaluation.translate_tuned(build, PHRASE_BASED))
    outputs = {PHRASE_BASED: plain, HYBRID: evaluation.comparison_lines(build, "dev.target")}
    outputs[HYBRID] = outputs[HYBRID] if better else plain
    monkeypatch.setattr(evaluation, "translate_tuned", lambda build, name: iter(outputs[name]))
    monkeypatch.setattr(evaluation, "ablation", lambda *given: (0.5, {"NNJM0": 0.5}, {"NNJM0": 0.4}))
    evaluate(hybrid)
    found = read_evaluation(hybrid)
    assert found.chosen == (HYBRID if better else PHRASE_BASED)
    assert (found.p_values[PHRASE_BASED] < 0.05) == bool(better)
    said = report.chosen_reason(hybrid, found)
    assert (
        said.startswith(f"The {found.chosen} system: ") and f"p = {found.p_values[PHRASE_BASED]:.3f}" in said
    )
    (useless,) = report.useless_networks(hybrid, found)
    assert useless.startswith("The joint model (NNJM) adds nothing that is beyond chance (p = 0.40)")
    facts = report.candidate_facts(hybrid, found)
    assert [(row.name, row.p, row.chosen) for row in facts] == [
        (PHRASE_BASED, found.p_values[PHRASE_BASED], not better), (HYBRID, None, bool(better)),
    ]  # fmt: skip


# ---- test parts --------------------------------------------------------------------------------------------


def test_the_parts_are_named_as_in_the_ini(tmp_path: Path) -> None:
    build = Build(decodable(tmp_path).config, small_plan("attention", "joint", "cslm"))
    assert list(parts(build)) == ["NMT0", "NNJM0", "CSLM0", "LM0", "LexicalReordering0"]
    assert {feature_name(line) for line in FEATURES.values()} <= set(parts(build))
