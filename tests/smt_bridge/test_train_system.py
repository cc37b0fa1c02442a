"""The folder of smt-train: one process at a time, nobody else's files."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import locks
from nmt.work.executors import ExecutorConfig
from smt_bridge.config import TrainConfig
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.train_system import EXTRACTION, TABLE, record_settings, train
from tests.smt_bridge.extraction.test_tables import random_corpus, write


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    for name in ("source", "target"):
        (tmp_path / name).write_text("a b\n")
    return TrainConfig(str(tmp_path / "source"), str(tmp_path / "target"))


def test_one_process_at_a_time(config: TrainConfig, tmp_path: Path) -> None:
    with (
        locks.locked(tmp_path / "model", "smt-train"),
        pytest.raises(UserError, match="model: in use by smt-train, process"),
    ):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model").exists()


def test_nobody_elses_folder_is_touched(config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.part1").write_text("x")
    with pytest.raises(ConfigError, match="is not empty, and not a folder of smt-train"):
        train(tmp_path / "mine", config)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.part1"]


def test_only_its_own_parts_are_swept(config: TrainConfig, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    record_settings(model, config)
    for name in ("notes.part1", "phrase-table.gz.part.gz.part7-1", "lm.arpa.gz.part7-0"):
        (model / name).write_text("x")
    record_settings(model, config)
    assert sorted(path.name for path in model.iterdir()) == ["notes.part1", "train.json"]


def test_other_settings_and_texts_are_refused(config: TrainConfig, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    record_settings(model, config)
    record_settings(model, replace(config, extract=ExtractConfig(memory=2.0)))  # affects no result
    with pytest.raises(ConfigError, match=f"{model}: was started with another order, extract; name"):
        record_settings(model, replace(config, order=2, extract=ExtractConfig(max_length=3)))
    Path(config.source).write_text("a c\n")
    with pytest.raises(ConfigError, match="was started with another source; name"):
        record_settings(model, config)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_damaged_settings(text: str, config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(text)
    with pytest.raises(DataError, match=r"train\.json: damaged; remove"):
        record_settings(tmp_path, config)


def test_settings_out_of_range(config: TrainConfig, tmp_path: Path) -> None:
    config.extract = ExtractConfig(max_length=9)
    with pytest.raises(ConfigError, match=r"extract\.max_length: 9 is out of range, expected 1 to 8"):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model").exists()


@pytest.mark.ci
def test_several_workers_make_the_same_model(tmp_path: Path) -> None:
    """Also where they were killed, and one process alone resumes: here with a folder that is just begun."""
    inputs = write(random_corpus(3, 40, 8), tmp_path)
    config = TrainConfig(inputs.source, inputs.target, inputs.alignment, order=2)
    train(tmp_path / "one", config)
    train(tmp_path / "two", config, ExecutorConfig(workers=2))
    (tmp_path / "two" / TABLE).unlink()
    (tmp_path / "two" / EXTRACTION).mkdir()
    train(tmp_path / "two", config)
    names = [path.name for path in (tmp_path / "one").iterdir()]
    assert sorted(names) == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        if not name.startswith("."):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
