"""The steps of a build: their order, what is resumed and what is refused. Most steps are replaced by
fakes."""

import json
import logging
import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from nmt.cli.arguments import parse_settings
from nmt.compute import device
from nmt.errors import ConfigError, UserError
from nmt.io import files, locks, manifest
from nmt.runs import directory as run_directory
from nmt.runs.torch_run import TorchRun
from nmt.text.lexicon import Lexicon
from nmt.work.store import Step
from smt_bridge import train_system
from smt_bridge.build import corpus, evaluation, pipeline, plan, training
from smt_bridge.build.budget import SHORTENED_STEPS, BuildClock, remaining_seconds
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.pipeline import LogFollower
from smt_bridge.build.plan import CorpusSizes, Plan
from smt_bridge.cli.build import parser
from smt_bridge.config import TrainConfig
from smt_bridge.hybrid import folder as hybrid
from smt_bridge.hybrid.side import escape_words
from smt_bridge.moses import ini as moses_ini
from tests.conftest import file_size_limit
from tests.smt_bridge.build.builds import config, small_plan, write_plan

# ---- test config -------------------------------------------------------------------------------------------
# What a build reads and where it works.


def test_the_texts_are_those_that_were_given() -> None:
    config = BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system")
    assert config.texts() == ["a.en", "a.fr", "b.en", "b.fr"]
    config.glossary = "terms"
    assert config.texts() == ["a.en", "a.fr", "b.en", "b.fr", "terms"]


def test_the_command_that_asks_for_it_has_what_was_given() -> None:
    config = BuildConfig("a.en", "a b.fr", "b.en", "b.fr", "system", seed=3, budget=300)
    given = shlex.split(config.command())
    assert (
        given[0] == "smt-build"
        and "--workers" not in given
        and given[given.index("--target") + 1] == "a b.fr"
    )
    args = parser().parse_args(given[1:])
    assert parse_settings(BuildConfig, args) == config


def test_the_command_names_the_documents_that_the_texts_were_read_from() -> None:
    config = BuildConfig("tmp/x.en", "tmp/x.fr", "b.en", "b.fr", "system", parallel=["x y.tmx", "z.tsv"])
    config.languages, config.columns = ["en", "fr-CA"], [2, 3]
    assert config.command() == (
        "smt-build --dev-source b.en --dev-target b.fr --output system --parallel 'x y.tmx' z.tsv "
        "--languages en fr-CA --columns 2 3"
    )


def test_all_that_decoding_does_not_need_is_in_one_folder() -> None:
    made = Build(BuildConfig("a", "b", "c", "d", "system"), small_plan())
    assert made.work.parent == made.folder == Path("system")


TABLES = (train_system.TABLE, train_system.REORDERING, train_system.LM)


# ---- test package ------------------------------------------------------------------------------------------
# The folder that a build ends with.


@pytest.fixture
def tuned_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """A build before its last step, with files of arbitrary content."""
    (tmp_path / "terms").write_text("a\tb\n")
    config = BuildConfig(
        "a.en", "a.fr", "b.en", "b.fr", str(tmp_path / "system"), glossary=str(tmp_path / "terms")
    )
    made = Build(config, small_plan("joint"))
    for name in TABLES:
        files.write_text(made.work / "model" / name, [f"all of {name}"])
    for name in ("source", "target"):
        files.write_text(made.work / "corpus" / f"truecase.{name}", ["the (1/1)"])
    train_system.write_ini(made.work / "dev" / "hybrid.ini", TrainConfig("a", "b"))
    ini = moses_ini.read(str(made.work / "dev" / "hybrid.ini"))
    ini = moses_ini.set_path(ini, "LM0", "../model/lm.arpa.gz")
    ini = moses_ini.add_feature(ini, "NNJM name=NNJM0 factor=0 path=../networks/joint", [0.1])
    files.write_text(made.work / "dev" / "hybrid.ini", ini.lines)
    run = made.work / "networks" / "joint"
    files.write_text(run / "config.yaml", ["run: runs/joint"])
    manifest.write(run, ["config.yaml"])
    found = {"chosen": "hybrid", "bleu": {}, "list_bleu": 0.5, "list_bleu_without": {}}
    (made.work / "evaluation.json").write_text(json.dumps(found))
    monkeypatch.setattr("smt_bridge.build.report.gather_facts", lambda build: None)
    monkeypatch.setattr("smt_bridge.build.report.write", lambda path, facts: path.write_text("report"))
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "build" not in path.relative_to(folder).parts
    }


def test_the_folder_works_wherever_it_is_moved(tuned_build: Build, tmp_path: Path) -> None:
    pipeline.package(tuned_build)
    moved = tmp_path / "else where" / "copy"
    shutil.copytree(tuned_build.folder, moved)
    shutil.rmtree(tuned_build.folder)
    shutil.rmtree(moved / "build")
    found = hybrid.read(moved)
    ini = moses_ini.read(found.ini)
    paths = [feature.options["path"] for feature in ini.features if "path" in feature.options]
    assert paths == [*TABLES, "networks/joint"] and all((moved / path).exists() for path in paths)
    assert found.decoder_config().stack == 100 and found.decoder_config().neural_beam == 200
    assert (moved / "glossary.tsv").read_text() == "a\tb\n"
    assert found.glossary == str(moved / "glossary.tsv")
    assert "networks/joint/config.yaml" in found.parts


def test_the_tables_are_the_full_ones_byte_for_byte(tuned_build: Build) -> None:
    pipeline.package(tuned_build)
    for name in TABLES:
        assert (tuned_build.folder / name).read_bytes() == (tuned_build.work / "model" / name).read_bytes()


def test_packing_again_after_a_kill_gives_the_same_folder(
    tuned_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.package(tuned_build)
    whole = contents(tuned_build.folder)
    for name in ("moses.ini", "networks/joint/config.yaml", hybrid.FILE):
        (tuned_build.folder / name).unlink()
    (tuned_build.folder / "networks" / "joint.part").mkdir()
    pipeline.package(tuned_build)
    assert contents(tuned_build.folder) == whole


@pytest.mark.parametrize("name", ["networks/joint/step-1.pt", "model/lm.arpa.gz"])
def test_a_file_that_grows_too_large_is_named_and_nothing_of_it_is_left(
    name: str, tuned_build: Build
) -> None:
    (tuned_build.work / name).write_bytes(bytes(9000))
    message = f"{Path(name).name}.*: cannot write: File too large"
    with file_size_limit(5000), pytest.raises(UserError, match=message):
        pipeline.package(tuned_build)
    assert not list(tuned_build.folder.rglob("*.part*")) and not (tuned_build.folder / hybrid.FILE).exists()
    assert not (tuned_build.folder / "networks" / "joint").exists()


def test_a_copy_that_fails_leaves_the_folder_that_it_would_replace(tmp_path: Path) -> None:
    for name, size in (("new", 9000), ("old", 9)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_bytes(bytes(size))
    with file_size_limit(5000), pytest.raises(UserError, match="weights: cannot write"):
        pipeline.copy_folder(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "weights").read_bytes() == bytes(9) and not (tmp_path / "old.part").exists()


def test_a_phrase_based_system_has_no_networks(tuned_build: Build) -> None:
    found = {"chosen": "phrase-based", "bleu": {}, "list_bleu": 0.5, "list_bleu_without": {}}
    (tuned_build.work / "evaluation.json").write_text(json.dumps(found))
    train_system.write_ini(tuned_build.work / "dev" / "phrase-based.ini", TrainConfig("a", "b"))
    pipeline.package(tuned_build)
    assert not (tuned_build.folder / "networks").exists()
    assert "NNJM" not in (tuned_build.folder / "moses.ini").read_text()


@pytest.mark.ci
def test_the_attention_model_of_a_system_translates_raw_text(tmp_path: Path, grammar: ModuleType) -> None:
    """As it translates the system's words."""
    made = Build(config(tmp_path, grammar, 60), small_plan("attention"))
    corpus.prepare(made)
    files.write_text(made.work / "model" / "lex.f2e", ["l' zzz 0.5", "&quot;b&quot; &lt;a&gt; 1", "c zzz 0"])
    training.train_all(made)
    run, trained = made.folder / "networks" / "attention", made.work / "networks" / "attention"
    pipeline.copy_folder(trained, run)
    pipeline.read_raw_text(made, run)
    assert (run / "lexicon").read_text() == '<a> "b"\nzzz l\'\n'
    run_directory.verify(run)
    texts = BuildTexts(made.work)
    raw, (source, target) = (
        [*texts.lines("raw.source"), "<b>Zzz</b> & zzz: http://x.org/a_b, 10:30.", ""],
        texts.sides(made.config),
    )
    inner = TorchRun.of(trained).for_text(tokenized=True)
    for line in raw:
        assert escape_words(TorchRun.of(run).members[0].source.words(line)) == source.words(line)
    translated = inner.translate([" ".join(source.words(line)) for line in raw])
    assert TorchRun.of(run).translate(raw) == evaluation.raw_lines(target, translated)
    assert not any(side.escaped for side in (TorchRun.of(run).members[0].source, TorchRun.of(run).target))
    assert TorchRun.of(run).unknown == inner.unknown == Lexicon({"<a>": ['"b"'], "zzz": ["l'"]})


def test_the_folder_has_what_the_extended_features_read(tuned_build: Build) -> None:
    config, dev = TrainConfig("a", "b", class_lm=8, osm=3), tuned_build.work / "dev"
    config.extract.reordering_type = "hier-mslr-bidirectional-fe"
    table, names = train_system.reordering_name(config), ("class-lm.arpa.gz", "classes.tsv", "osm.arpa.gz")
    for name in (table, *names):
        files.write_text(tuned_build.work / "model" / name, [name])
    train_system.write_ini(dev / "extended.ini", config)
    ini = moses_ini.read(str(dev / "extended.ini"))
    for feature, key in (("ClassLM0", "path"), ("ClassLM0", "classes"), ("OpSequenceModel0", "path")):
        old = ini.feature(feature).options[key]
        ini = moses_ini.set_path(ini, feature, f"../model/{old}", key)
    files.write_text(dev / "extended.ini", ini.lines)
    found = {"chosen": "extended", "bleu": {}, "list_bleu": 0.5, "list_bleu_without": {}}
    (tuned_build.work / "evaluation.json").write_text(json.dumps(found))
    pipeline.package(tuned_build)
    parts = hybrid.read(tuned_build.folder).parts
    assert {"phrase-table.gz", "lm.arpa.gz", table, *names} <= set(parts)
    assert (
        train_system.REORDERING not in parts and not (tuned_build.folder / train_system.REORDERING).exists()
    )


# ---- test pipeline -----------------------------------------------------------------------------------------


NAMES = ("corpus", "tune", "package")


@pytest.fixture
def given(tmp_path: Path, grammar: ModuleType) -> BuildConfig:
    return config(tmp_path, grammar, 30, plan=write_plan(tmp_path / "plan.json"))


@pytest.fixture
def names() -> tuple[str, ...]:
    return NAMES


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> list[str]:
    """The names of the steps that ran; each step writes its name."""
    found: list[str] = []

    def step(name: str) -> Step[Build]:
        def work(build: Build) -> None:
            found.append(name)
            files.write_text(build.work / f"{name}.more", [name])
            files.write_text(build.work / name, [name])

        return Step(name, name, work, (f"{name}*",))

    monkeypatch.setattr("smt_bridge.build.pipeline.STEPS", tuple(map(step, names)))
    return found


def build(given: BuildConfig) -> list[str]:
    shown: list[str] = []
    pipeline.build(given, shown.append)
    return shown


def test_finished_steps_are_not_taken_again(given: BuildConfig, taken: list[str]) -> None:
    shown = build(given)
    assert taken == list(NAMES) and any(line.startswith("all steps") for line in shown)
    (Path(given.output) / "build" / "tune").unlink()
    assert build(given) == shown
    assert taken == [*NAMES, "tune"]


def test_a_resumed_build_keeps_its_plan(
    given: BuildConfig, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the speed of the machine is now."""
    given.plan = ""
    monkeypatch.setattr("smt_bridge.build.plan.measure_speed", lambda: plan.REFERENCE_FLOPS)
    monkeypatch.setattr("nmt.compute.device.choose_back_end", lambda: device.BackEndChoice("mkl"))
    before = build(given)
    monkeypatch.setattr("smt_bridge.build.plan.measure_speed", lambda: pytest.fail("measured again"))
    assert build(given) == before


@pytest.mark.parametrize("name", ["seed", "budget", "source", "languages", "monolingual", "phrase_features"])
def test_other_settings_are_refused(given: BuildConfig, name: str, taken: list[str]) -> None:
    build(given)
    other = replace(given, seed=5) if name == "seed" else replace(given, budget=600)
    if name == "source":
        with open(given.source, "a") as out:
            out.write("One more.\n")
        other = given
    other = replace(given, target_language="de") if name == "languages" else other
    other = replace(given, monolingual=given.target) if name == "monolingual" else other
    other = replace(given, phrase_features="none") if name == "phrase_features" else other
    with pytest.raises(ConfigError, match=f"system: was started with another {name}; name another folder"):
        build(other)
    assert taken == list(NAMES)


def test_phrase_features_beside_a_plan_are_those_of_the_plan(given: BuildConfig, taken: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"--phrase-features all: .*plan\.json has phrase_features none"):
        build(replace(given, phrase_features="all"))
    build(replace(given, phrase_features="none"))
    assert taken == list(NAMES)


def test_workers_may_differ(given: BuildConfig, taken: list[str]) -> None:
    build(given)
    build(replace(given, workers=1))
    assert taken == list(NAMES)


def test_one_process_at_a_time(given: BuildConfig, taken: list[str]) -> None:
    with locks.locked(given.output, "smt-build"), pytest.raises(UserError, match="in use by smt-build"):
        build(given)
    assert not taken


def test_nobody_elses_folder_is_touched(given: BuildConfig, taken: list[str]) -> None:
    mine = Path(given.output)
    (mine / "build").mkdir(parents=True)
    (mine / "build" / "thesis.part1").write_text("x")
    with pytest.raises(ConfigError, match="is not empty, and was not started"):
        build(given)
    assert os.listdir(mine) == ["build"] and os.listdir(mine / "build") == ["thesis.part1"]


def test_a_build_killed_at_its_very_beginning_goes_on(given: BuildConfig, taken: list[str]) -> None:
    work = Path(given.output) / "build"
    work.mkdir(parents=True)
    (work / "build.json.part77-0").write_text("{")
    (Path(given.output) / ".lock").touch()
    build(given)
    assert taken == list(NAMES) and not (work / "build.json.part77-0").exists()


def test_only_our_own_parts_are_swept(given: BuildConfig, taken: list[str]) -> None:
    build(given)
    folder = Path(given.output)
    (folder / "networks" / "joint.part").mkdir(parents=True)
    (folder / "build" / "runs" / "joint" / "data").mkdir(parents=True)
    deep = "build/runs/joint/data/manifest.json.part9-1"
    for name in ("notes.part1", "moses.ini.part7-1", "build/corpus.part8-0", deep):
        (folder / name).write_text("x")
    build(given)
    assert {path.name for path in folder.rglob("*.part*")} == {"notes.part1"}


def test_a_text_that_cannot_be_used_leaves_no_folder(given: BuildConfig, taken: list[str]) -> None:
    given.plan = ""
    Path(given.source).write_text("\n" * 30)
    with pytest.raises(UserError, match="no pair is left after cleaning"):
        build(given)
    assert not Path(given.output).exists()


@pytest.mark.parametrize("name", ["plan.json", "build.json", "corpus", "tune.more"])
def test_a_file_that_was_changed_stops_a_resumed_build(
    name: str, given: BuildConfig, taken: list[str]
) -> None:
    build(given)
    path = Path(given.output) / "build" / name
    content = path.read_bytes()
    for other in (b"", content.replace(b"1", b"2").replace(b"n", b"m") + b"\n"):
        path.write_bytes(other)
        with pytest.raises(
            UserError, match=rf"{name}: was changed since it was|build\.json: damaged|another"
        ):
            build(given)
    path.write_bytes(content)
    build(given)
    assert taken == list(NAMES)


def test_a_step_whose_file_was_removed_is_taken_again(given: BuildConfig, taken: list[str]) -> None:
    build(given)
    (Path(given.output) / "build" / "tune.more").unlink()
    build(given)
    assert taken == [*NAMES, "tune"] and (Path(given.output) / "build" / "tune.more").exists()


def test_a_step_counts_once_its_checksums_are_noted(given: BuildConfig, taken: list[str]) -> None:
    """A step that was killed before they were recorded runs again."""
    build(given)
    work = Path(given.output) / "build"
    entries = manifest.read(work) or {}
    manifest.save(work, {name: entry for name, entry in entries.items() if not name.startswith("tune")})
    build(given)
    assert taken == [*NAMES, "tune"]


@pytest.fixture
def late(given: BuildConfig, monkeypatch: pytest.MonkeyPatch) -> BuildConfig:
    """A build with a plan of its own that takes ten times as long as planned, according to its clock."""
    monkeypatch.setattr("smt_bridge.build.plan.measure_speed", lambda: plan.REFERENCE_FLOPS)
    monkeypatch.setattr("nmt.compute.device.choose_back_end", lambda: device.BackEndChoice("mkl"))
    monkeypatch.setattr(BuildClock, "pace", lambda clock: 10.0)
    monkeypatch.setattr(BuildClock, "spent", lambda clock: 100.0)
    monkeypatch.setattr(corpus, "survey", lambda config: CorpusSizes(2000, 20_000, 20_000, 400, 4000))
    given.plan = ""
    return given


LONG = ("corpus", "networks", "tune-hybrid", "evaluate")


@pytest.mark.parametrize("names", [LONG])
def test_a_late_build_is_shortened_once_with_a_warning(
    late: BuildConfig, taken: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with caplog.at_level(logging.WARNING):
        build(late)
    before = plan_of_output(late)
    assert "behind schedule before networks" in caplog.text and "--keep-plan" in caplog.text
    assert set(before.decisions) <= set(SHORTENED_STEPS) and before.decisions["networks"]
    (Path(late.output) / "build" / "corpus").unlink()
    monkeypatch.setattr(BuildClock, "pace", lambda clock: pytest.fail("decided again"))
    build(late)
    assert plan_of_output(late) == before


@pytest.mark.parametrize("names", [LONG])
def test_a_plan_that_needs_more_than_the_budget_is_not_late_at_once(
    late: BuildConfig, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late.budget, sizes = 60, CorpusSizes(29_000, 400_000, 400_000, 1014, 13_000)
    smallest = plan.decide(sizes, 60, 1.0, "mkl")
    monkeypatch.setattr(corpus, "survey", lambda config: sizes)
    monkeypatch.setattr(BuildClock, "pace", lambda clock: 1.0)
    before = smallest.total() - remaining_seconds(smallest, "evaluate", 2)
    monkeypatch.setattr(BuildClock, "spent", lambda clock: before)
    build(late)
    assert smallest.total() > 120 and plan_of_output(late).decisions == {"evaluate": ""}


@pytest.mark.parametrize("names", [LONG])
def test_a_plan_that_was_given_and_keep_plan_are_kept(
    late: BuildConfig, taken: list[str], tmp_path: Path
) -> None:
    build(replace(late, keep_plan=True))
    kept_plan = plan_of_output(late)
    assert kept_plan.networks and not any(kept_plan.decisions.values())
    build(late)  # without the option nothing is decided anew
    other = replace(late, output=str(tmp_path / "other"), plan=f"{late.output}/build/plan.json")
    build(other)
    assert plan_of_output(other) == kept_plan


def plan_of_output(given: BuildConfig) -> Plan:
    return plan.read_plan(Path(given.output) / "build" / "plan.json")


# ---- test followed -----------------------------------------------------------------------------------------
# Messages of other processes.


def test_only_new_and_whole_lines_are_shown_with_their_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("smt_bridge"), "propagate", True)
    caplog.set_level(logging.INFO)
    path = tmp_path / "joint.log"
    path.write_text("[2026-01-01 10:00:00] INFO old\n")
    followed = LogFollower(tmp_path)
    with open(path, "a", encoding="utf-8") as out:
        out.write("[2026-01-01 10:00:01] WARNING take [care]\n[2026-01-01 10:00:02] INFO ha")
    (tmp_path / "cslm.log").write_text("[2026-01-01 10:00:01] INFO begun\n")
    followed.show()
    with open(path, "a", encoding="utf-8") as out:
        out.write("lf\n")
    followed.show()
    followed.show()
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "cslm: begun"), ("WARNING", "joint: take [care]"), ("INFO", "joint: half"),
    ]  # fmt: skip


def test_nothing_to_follow(tmp_path: Path) -> None:
    LogFollower(tmp_path / "none").show()
