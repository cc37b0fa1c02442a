"""The extended phrase-based system of a build: where its tuning starts, whether it is kept, and a whole small
build with it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from nmt.io import files
from smt_bridge import load, train_system
from smt_bridge.build import evaluation, pipeline, plan, report, training, tuning
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.plan import ExtendedPlan, PhraseFeatures, Plan
from smt_bridge.config import TrainConfig
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.hybrid import folder as hybrid
from smt_bridge.moses import ini as moses_ini
from smt_bridge.tuning.loop import Tuning
from tests.smt_bridge.build.builds import config, decodable, small_plan

SMALL = ExtendedPlan(osm=3, class_lm=8, iterations=2)
WRITTEN = ("dev/extended.ini", "dev/extended.json", "dev/extended.choice.json", "dev/hybrid.ini")


def extended_plan(features: PhraseFeatures, *names: str) -> Plan:
    """A small plan with the extended features. Networks are kept, although a few lines say nothing."""
    made = replace(small_plan(*names), phrase_features=features, extended=SMALL, significance=1.0)
    return replace(made, seconds=plan.estimate_seconds(made))


def test_one_training_has_the_features_of_both_systems() -> None:
    made = Build(config_of(Path("a")), extended_plan("auto"))
    config = training.train_config(made)
    assert (config.osm, config.class_lm) == (3, 8)
    assert config.extract.reordering_type == SMALL.reordering_type
    assert config.extract.count_feature == "bins"
    plain = training.train_config(Build(made.config, small_plan()))
    assert plain == TrainConfig(plain.source, plain.target, plain.alignment, plain.lm_text)


def config_of(folder: Path) -> BuildConfig:
    return BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(folder / "system"))


def test_the_tuning_starts_from_the_tuned_weights(tmp_path: Path) -> None:
    """The new features have the weights of smt-train, in the scale of the tuned ones: half of it here."""
    made = Build(config_of(tmp_path), extended_plan("auto"))
    trained_config = TrainConfig("a", "b", osm=3, class_lm=8)
    train_system.write_ini(made.work / "model" / "moses.ini", trained_config)
    trained = moses_ini.read(str(made.work / "model" / "moses.ini"))
    train_system.write_ini(made.work / "dev" / "phrase-based.ini", TrainConfig("a", "b"))
    tuned = moses_ini.read(str(made.work / "dev" / "phrase-based.ini"))
    halves = {name: [weight / 2 for weight in weights] for name, weights in tuned.weights.items()}
    moses_ini.write(made.work / "dev" / "phrase-based.ini", moses_ini.set_weights(tuned, halves))
    ini = tuning.extended_ini(made)
    assert list(ini.weights) == list(trained.weights)
    for name, weights in trained.weights.items():
        assert ini.weights[name] == pytest.approx([weight / 2 for weight in weights])
    assert ini.feature("ClassLM0").options["path"] == "../model/class-lm.arpa.gz"
    assert ini.feature("ClassLM0").options["classes"] == "../model/classes.tsv"
    assert ini.feature("OpSequenceModel0").options["path"] == "../model/osm.arpa.gz"


@pytest.mark.parametrize(
    ("features", "better", "significance", "chosen"),
    [
        ("auto", True, 0.05, "extended"), ("auto", False, 0.05, "phrase-based"),
        ("all", False, 0.05, "extended"), ("auto", False, 1.0, "extended"),
    ],
)  # fmt: skip
def test_the_extended_system_is_kept_where_the_bootstrap_says_so(
    features: PhraseFeatures, better: bool, significance: float, chosen: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    build = decodable(tmp_path, 12)
    build.plan = replace(build.plan, phrase_features=features, extended=SMALL, significance=significance)
    references = evaluation.comparison_lines(build, "dev.target")
    worse = [f"p {line}" for line in references]
    outputs = {"phrase-based": worse, "extended": references if better else worse}
    monkeypatch.setattr(evaluation, "translate_tuned", lambda build, name: iter(outputs[name]))
    choice = evaluation.choose_phrase_based(build)
    assert choice.chosen == chosen and (choice.p < 0.05) == better
    assert choice.bleu["extended"] == (1.0 if better else choice.bleu["phrase-based"])
    files.write_text(build.work / "dev" / tuning.CHOICE, [json.dumps(vars(choice))])
    assert tuning.phrase_based(build) == chosen and evaluation.tuned_systems(build) == [chosen]
    assert ("OpSequenceModel0" in evaluation.parts(build)) == (chosen == "extended")
    (note, *_) = report.plan_notes(build)
    words = "has neither" if chosen == "phrase-based" else "whatever" if not better else "better beyond"
    assert words in note and f"p = {choice.p:.3f}" in note


def test_without_its_tuning_there_is_one_phrase_based_system(tmp_path: Path) -> None:
    late = replace(extended_plan("auto"), extended=replace(SMALL, iterations=0))
    build = Build(config_of(tmp_path), late)
    assert tuning.read_choice(build) is None and tuning.phrase_based(build) == "phrase-based"
    assert "tune-extended" not in plan.estimate_seconds(late)


@pytest.mark.ci  # compiles the extraction and the search
def test_a_build_that_is_killed_in_the_tuning_ends_with_the_same_bytes(
    tmp_path: Path, grammar: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system has what its features read, and translates as the build itself did: the features' scores
    are in the search beside those of a network."""
    plan.write_plan(tmp_path / "plan.json", extended_plan("all", "joint"))
    systems = []
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        given = config(tmp_path / name, grammar, plan=str(tmp_path / "plan.json"))
        if name == "killed":
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(tuning, "report_progress", kill_second_decoding)
                pipeline.build(given, lambda line: None)
            work = Path(given.output) / "build"
            assert (work / "dev" / "extended.tuning" / "00.npz").exists()
            assert not (work / "dev" / "extended.ini").exists()
        systems.append(pipeline.build(given, lambda line: None))
    whole, killed = (
        {path.name: path.read_bytes() for path in system.folder.iterdir() if path.is_file()}
        for system in systems
    )
    assert whole.keys() == killed.keys()
    assert {name for name in whole if whole[name] != killed[name]} <= {"report.html", ".lock"}
    for name in WRITTEN:
        assert (systems[0].work / name).read_bytes() == (systems[1].work / name).read_bytes()
    check_system(systems[0])


def kill_second_decoding(
    build: Build, tuned: Tuning, translations: Iterator[PhraseTranslation]
) -> Iterator[PhraseTranslation]:
    """Interrupt the tuning of the extended system when it decodes for the second time."""
    if tuned.folder.name == "extended.tuning" and tuned.iterations:
        raise KeyboardInterrupt
    yield from translations


def check_system(build: Build) -> None:
    """The finished system of a build translates as the build did, wherever its folder is."""
    moved = build.folder.parent / "moved"
    shutil.copytree(build.folder, moved, ignore=shutil.ignore_patterns("build"))
    parts = set(hybrid.read(moved).parts)
    assert {"osm.arpa.gz", "class-lm.arpa.gz", "classes.tsv", "networks/joint/config.yaml"} <= parts
    assert f"reordering-table.{SMALL.reordering_type}.gz" in parts
    chosen = evaluation.read_evaluation(build).chosen
    assert chosen == "hybrid" and tuning.phrase_based(build) == "extended"
    tuned = moses_ini.read(str(moved / "moses.ini")).weights
    assert len(tuned["OpSequenceModel0"]) == 5 and "NNJM0" in tuned
    outputs = list(files.read_lines(build.work / "dev" / evaluation.OUTPUTS / chosen))
    raw = evaluation.comparison_lines(build, "raw.source")
    text = hybrid.read(moved).target.text
    assert load(str(moved)).translate(raw) == [text(line.split(" ")) for line in outputs]
    facts = report.gather_facts(build)
    assert {"operation sequence model", "language model of word classes"} <= set(facts.bleu_without)
    names = [(row.name, row.chosen) for row in facts.candidates]
    assert names == [("phrase-based", False), ("extended", False), ("hybrid", True)]
