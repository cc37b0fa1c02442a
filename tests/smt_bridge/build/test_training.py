"""The trainings of a build: word alignment, tables, and networks."""

import gzip
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import DataError
from nmt.io import files
from nmt.training import config_file
from smt_bridge import train_system
from smt_bridge.build import corpus, plan, training
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.networks import RECIPES, Recipe
from smt_bridge.build.plan import CorpusSizes
from smt_bridge.config import TrainConfig
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.build.builds import config, small_plan
from tests.smt_bridge.decoder.models import write_model

# ---- test tables -------------------------------------------------------------------------------------------
# Alignment and tables of a build.


@pytest.fixture
def build(tmp_path: Path, grammar: ModuleType) -> Build:
    made = Build(config(tmp_path, grammar), small_plan())
    corpus.prepare(made)
    training.align(made)
    return made


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def test_both_texts_are_aligned_together(build: Build) -> None:
    """The lines of dev.en are the first ones of train.en, and get the same links."""
    texts = BuildTexts(build.work)
    train, dev = lines(build.work / training.ALIGNMENT), lines(build.work / training.DEV_ALIGNMENT)
    assert len(train) == len(texts.lines("train.source")) and len(dev) == 20
    place = texts.lines("train.source").index(texts.lines("dev.source")[0])
    assert dev[0] == train[place] and "0-0" in dev[0]


@pytest.mark.ci  # compiles the extraction
def test_the_tables_of_the_development_set(build: Build) -> None:
    """They have all rows whose source occurs in it, and the count model is the full one."""
    training.train(build)
    assert {f"model/{name}" for name in train_system.RESULTS} <= build.store.recorded(("model/*",))
    training.filter_to_dev(build)
    dev = build.work / training.DEV
    text = "".join(f" {line} \n" for line in BuildTexts(build.work).lines("dev.source"))
    whole, kept = lines(build.work / "model" / "phrase-table.gz"), lines(dev / "phrase-table.gz")
    assert kept == [row for row in whole if f" {row.split(' ||| ')[0]} " in text]
    assert 0 < len(kept) < len(whole)
    ini = moses_ini.read(str(dev / training.BASE))
    for feature in ini.features:
        assert "path" not in feature.options or (dev / feature.options["path"]).exists()


@pytest.mark.ci  # compiles the extraction
def test_a_pruned_table_is_trained_once(build: Build, tmp_path: Path) -> None:
    """The whole tables, which exist in between, are not missed later. The reordering table has the same
    pairs, and each word of the training text still has a translation."""
    build.plan = replace(build.plan, prune_entropy=0.001)
    training.train(build)
    model = build.work / training.MODEL
    assert build.store.check((), build.folder) == []
    assert train_system.UNPRUNED not in {path.name for path in model.iterdir()}
    pruned, reordering = (
        [row.split(" ||| ")[:2] for row in lines(model / name)]
        for name in (train_system.TABLE, train_system.REORDERING)
    )
    whole_model = tmp_path / "whole"
    train_system.train(whole_model, training.train_config(Build(build.config, small_plan())))
    whole = [row.split(" ||| ")[:2] for row in lines(whole_model / train_system.TABLE)]
    assert pruned == reordering and 0 < len(pruned) < len(whole)
    assert {source for source, _ in pruned if " " not in source} == {
        source for source, _ in whole if " " not in source
    }


def test_a_development_set_without_any_phrase_of_the_training_text_is_named(
    build: Build, tmp_path: Path
) -> None:
    files.write_text(BuildTexts(build.work).path("dev.source"), ["kein Wort davon"])
    model = build.work / training.MODEL
    write_model(model, 1)
    (model / "table").rename(model / train_system.TABLE)
    (model / "reordering").rename(model / train_system.REORDERING)
    with pytest.raises(DataError, match=rf"^{tmp_path}/dev\.en: no phrase of it is in {tmp_path}/train\.en"):
        training.filter_to_dev(build)


def test_a_half_trained_model_is_checked_too(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed training continues with its finished tables, whose checksums are verified."""

    def killed(folder: Path, config: TrainConfig, on_step: Callable[[], None]) -> None:
        files.write_text(folder / train_system.TABLE, ["a ||| b"])
        on_step()
        raise KeyboardInterrupt

    monkeypatch.setattr(train_system, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        training.train(build)
    assert build.store.check((), build.folder) == []
    files.write_text(build.work / "model" / train_system.TABLE, ["a ||| c"])
    with pytest.raises(DataError, match=rf"model/{train_system.TABLE}: was changed"):
        build.store.check((), build.folder)


# ---- test training -----------------------------------------------------------------------------------------


CONFIG = BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system", seed=7)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: f"{one.network}-{one.pairs}")
def test_every_recipe_is_a_sound_configuration(recipe: Recipe) -> None:
    sizes = CorpusSizes(recipe.pairs, 10 * recipe.pairs, 10 * recipe.pairs, 500, 5000)
    found = plan.decide(sizes, 1e9, 1.0, "mkl")
    (network,) = [one for one in found.networks if one.name == recipe.network]
    task = training.network_task(Build(CONFIG, found), network)
    made = config_file.from_mapping(task.content, task.preset or None)
    assert made.training.max_steps == network.updates and made.training.batch_size == recipe.batch
    assert not made.training.max_epochs and not made.training.max_minutes  # nothing else ends it early
    assert made.threads == 1 and made.seed == 7 and made.matmul == "mkl"
    if recipe.network == "attention":
        assert made.training.schedule == "linear" and made.training.keep == 5 and not made.training.patience


def test_a_network_reads_the_words_of_the_tables_as_they_are() -> None:
    for name in ("attention", "joint", "cslm"):
        build = Build(CONFIG, small_plan(name))
        task = training.network_task(build, build.plan.networks[0])
        target = config_file.from_mapping(task.content, task.preset or None).data.target
        assert (target.tokenize, target.normalize, target.case, target.escaped) == (
            False,
            False,
            "keep",
            True,
        )
        assert target.subword == "none" and target.language == "fr" and target.min_count == 2


def test_monolingual_text_is_for_the_cslm_where_the_plan_says_so(tmp_path: Path) -> None:
    config = replace(CONFIG, output=str(tmp_path))
    (tmp_path / "build" / "corpus").mkdir(parents=True)
    (tmp_path / "build" / "corpus" / "lm.target").touch()
    with_text = replace(small_plan("cslm"), monolingual_network=True)
    assert training.data_section(Build(config, with_text), "cslm")["train_text"] == "corpus/lm.target"
    assert (
        training.data_section(Build(config, small_plan("cslm")), "cslm")["train_text"]
        == "corpus/train.target"
    )
    assert "alignment" in training.data_section(Build(config, with_text), "joint")


@pytest.fixture
def root_level() -> Iterator[None]:
    yield
    for package in ("nmt", "smt_bridge"):
        logging.getLogger(package).setLevel(logging.NOTSET)


def test_a_finished_network_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_level: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / training.LOGS).mkdir()
    build = Build(CONFIG, small_plan("attention", "joint"))
    trained: list[str] = []
    taken: list[tuple[str, object]] = []
    monkeypatch.setattr("smt_bridge.build.training.run_training", lambda config: trained.append(config.run))
    monkeypatch.setattr("nmt.runs.directory.find_step", lambda run, which: 12)
    monkeypatch.setattr(
        "nmt.runs.checkpoint.write_average", lambda run, output, steps, last: taken.append((run.name, steps))
    )
    train = training.start_worker(str(tmp_path), logging.INFO, training.train_network)
    attention, joint = (training.network_task(build, one) for one in build.plan.networks)
    train(attention)
    train(joint)
    assert trained == ["runs/attention", "runs/joint"]
    assert taken == [("attention", None), ("joint", [12])]  # the mean of the last; the best
    memory = tmp_path / "networks" / attention.name / "matmul.tsv"
    noted = memory.read_bytes()
    assert b"\tmkl\t" in noted
    memory.unlink()  # as after a kill just before it is written
    (tmp_path / "networks" / attention.name / "version").touch()
    train(attention)
    assert len(trained) == 2 and memory.read_bytes() == noted
