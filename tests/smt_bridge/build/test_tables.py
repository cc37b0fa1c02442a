"""Alignment and tables of a build."""

import gzip
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import DataError
from nmt.io import files
from smt_bridge import train_system
from smt_bridge.build import corpus, tables
from smt_bridge.build.config import Build, check_files, recorded_files
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.config import TrainConfig
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.build.builds import config, small_plan
from tests.smt_bridge.decoder.models import write_model


@pytest.fixture
def build(tmp_path: Path, grammar: ModuleType) -> Build:
    made = Build(config(tmp_path, grammar), small_plan())
    corpus.prepare(made)
    tables.align(made)
    return made


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def test_both_texts_are_aligned_together(build: Build) -> None:
    """dev.en are the first lines of train.en, and get their links."""
    texts = BuildTexts(build.work)
    train, dev = lines(build.work / tables.ALIGNMENT), lines(build.work / tables.DEV_ALIGNMENT)
    assert len(train) == len(texts.lines("train.source")) and len(dev) == 20
    place = texts.lines("train.source").index(texts.lines("dev.source")[0])
    assert dev[0] == train[place] and "0-0" in dev[0]


@pytest.mark.ci  # compiles the extraction
def test_the_tables_of_the_development_set(build: Build) -> None:
    """All rows whose source occurs in it, with the count model of the whole."""
    tables.train(build)
    assert {f"model/{name}" for name in train_system.RESULTS} <= recorded_files(build.work, ("model/*",))
    tables.filter_to_dev(build)
    dev = build.work / tables.DEV
    text = "".join(f" {line} \n" for line in BuildTexts(build.work).lines("dev.source"))
    whole, kept = lines(build.work / "model" / "phrase-table.gz"), lines(dev / "phrase-table.gz")
    assert kept == [row for row in whole if f" {row.split(' ||| ')[0]} " in text]
    assert 0 < len(kept) < len(whole)
    ini = moses_ini.read(str(dev / tables.BASE))
    for feature in ini.features:
        assert "path" not in feature.options or (dev / feature.options["path"]).exists()


def test_a_development_set_without_any_phrase_of_the_training_text_is_named(
    build: Build, tmp_path: Path
) -> None:
    files.write_text(BuildTexts(build.work).path("dev.source"), ["kein Wort davon"])
    model = build.work / tables.MODEL
    write_model(model, 1)
    (model / "table").rename(model / train_system.TABLE)
    (model / "reordering").rename(model / train_system.REORDERING)
    with pytest.raises(DataError, match=rf"^{tmp_path}/dev\.en: no phrase of it is in {tmp_path}/train\.en"):
        tables.filter_to_dev(build)


def test_a_half_trained_model_is_checked_too(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed training goes on with the tables that it has."""

    def killed(folder: Path, config: TrainConfig, passed: Callable[[], None]) -> None:
        files.write_text(folder / train_system.TABLE, ["a ||| b"])
        passed()
        raise KeyboardInterrupt

    monkeypatch.setattr(train_system, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        tables.train(build)
    assert check_files(build.work, ()) == []
    files.write_text(build.work / "model" / train_system.TABLE, ["a ||| c"])
    with pytest.raises(DataError, match=rf"model/{train_system.TABLE}: was changed"):
        check_files(build.work, ())
