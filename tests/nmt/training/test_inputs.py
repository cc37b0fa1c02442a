"""A run goes on with the files that it was started with, or not at all."""

import os
from pathlib import Path

import pytest

from nmt.data.corpora import CorpusConfig
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, DataError
from nmt.runs import directory as run_directory
from nmt.training import inputs


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    for name in ("s", "t", "d", "e"):
        (tmp_path / name).write_text(f"{name}\n")
    config = DataConfig(
        train_source=str(tmp_path / "s"),
        train_target=str(tmp_path / "t"),
        dev_source=str(tmp_path / "d"),
        dev_target=str(tmp_path / "e"),
    )
    with run_directory.writing(tmp_path / "run") as new:
        inputs.save(inputs.take(config), new)
    return config


@pytest.mark.parametrize("name", ["s", "t", "d", "e"])
def test_another_text_is_refused(name: str, config: DataConfig, tmp_path: Path) -> None:
    inputs.check(config, tmp_path / "run")
    os.utime(tmp_path / name, ns=(5, 5))
    inputs.check(config, tmp_path / "run")  # copied or touched: the text is the same
    (tmp_path / name).write_text("X\n")
    with pytest.raises(
        DataError,
        match=rf"/{name}: has changed since .*run was started with it \(data\.(train|dev)_(source|target)\)",
    ):
        inputs.check(config, tmp_path / "run")
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"/{name}: cannot read"):
        inputs.check(config, tmp_path / "run")


def test_the_corpora_of_a_list_are_noted_too(tmp_path: Path) -> None:
    for name in ("s", "t", "u", "v"):
        (tmp_path / name).write_text(f"{name}\n")
    first, second = (
        CorpusConfig(source=str(tmp_path / pair[0]), target=str(tmp_path / pair[1])) for pair in ("st", "uv")
    )
    config = DataConfig(corpora=[first, second])
    with run_directory.writing(tmp_path / "run") as new:
        inputs.save(inputs.take(config), new)
    inputs.check(config, tmp_path / "run")
    (tmp_path / "v").write_text("X\n")
    with pytest.raises(DataError, match=r"/v: has changed since .* \(data\.corpora\[1\]\.target\)"):
        inputs.check(config, tmp_path / "run")


def test_damage_is_told_and_an_old_run_knows_nothing(config: DataConfig, tmp_path: Path) -> None:
    inputs.check(config, tmp_path / "older")
    (tmp_path / "run" / "manifest.json").unlink()
    for text in ("", "[]", "5", '{"train_source": 5}', "[" * 9000):
        (tmp_path / "run" / "inputs.json").write_text(text)
        if text != "[]":
            with pytest.raises(CheckpointError, match=r"inputs\.json: damaged"):
                inputs.check(config, tmp_path / "run")


def test_of_pipes_nothing_is_noted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert inputs.take(DataConfig(train_text=str(tmp_path / "pipe"), dev_text="-")) == {}
