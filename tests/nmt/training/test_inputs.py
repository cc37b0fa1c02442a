"""A run goes on with the files that it was started with, or not at all."""

import os
from pathlib import Path

import pytest

from nmt.cli import train
from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import manifest
from nmt.runs import directory as run_directory
from nmt.text.pipeline import SideConfig
from nmt.training import inputs
from nmt.training.config import RunConfig

# ---- test inputs -------------------------------------------------------------------------------------------


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
        inputs.save_stamps(inputs.take_stamps(config), new)
    return config


@pytest.mark.parametrize("name", ["s", "t", "d", "e"])
def test_another_text_is_refused(name: str, config: DataConfig, tmp_path: Path) -> None:
    inputs.check_inputs(config, tmp_path / "run")
    os.utime(tmp_path / name, ns=(5, 5))
    inputs.check_inputs(config, tmp_path / "run")  # copied or touched: the text is the same
    (tmp_path / name).write_text("X\n")
    with pytest.raises(
        DataError,
        match=rf"/{name}: has changed since .*run was started with it \(data\.(train|dev)_(source|target)\)",
    ):
        inputs.check_inputs(config, tmp_path / "run")
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"/{name}: cannot read"):
        inputs.check_inputs(config, tmp_path / "run")


def test_the_corpora_of_a_list_are_noted_too(tmp_path: Path) -> None:
    for name in ("s", "t", "u", "v"):
        (tmp_path / name).write_text(f"{name}\n")
    first, second = (
        CorpusConfig(source=str(tmp_path / pair[0]), target=str(tmp_path / pair[1])) for pair in ("st", "uv")
    )
    config = DataConfig(corpora=[first, second])
    with run_directory.writing(tmp_path / "run") as new:
        inputs.save_stamps(inputs.take_stamps(config), new)
    inputs.check_inputs(config, tmp_path / "run")
    (tmp_path / "v").write_text("X\n")
    with pytest.raises(DataError, match=r"/v: has changed since .* \(data\.corpora\[1\]\.target\)"):
        inputs.check_inputs(config, tmp_path / "run")


def test_damaged_stamps_are_refused(config: DataConfig, tmp_path: Path) -> None:
    for text in ("", "[]", "5", '{"train_source": 5}', "[" * 9000):
        (tmp_path / "run" / "inputs.json").write_text(text)
        manifest.write(tmp_path / "run", ["inputs.json"])
        if text != "[]":
            with pytest.raises(CheckpointError, match=r"inputs\.json: damaged"):
                inputs.check_inputs(config, tmp_path / "run")


def test_of_pipes_nothing_is_noted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert inputs.take_stamps(DataConfig(train_text=str(tmp_path / "pipe"), dev_text="-")) == {}


# ---- test new run ------------------------------------------------------------------------------------------
# What nmt-train checks before it makes a run directory: nothing that it reads is in there.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    for name in ("text", "run/text", "run/config.yaml", "config.yaml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "run" / "text")
    return tmp_path


@pytest.mark.parametrize(
    "key",
    [
        "train_source",
        "train_target",
        "dev_source",
        "dev_target",
        "phrase_table",
        "train_text",
        "dev_text",
        "alignment",
        "dev_alignment",
    ],
)
@pytest.mark.parametrize("name", ["run/text", "link", "run"])
def test_no_text_lies_in_the_folder_that_is_made(folder: Path, key: str, name: str) -> None:
    data = DataConfig()
    setattr(data, key, str(folder / name))
    config = RunConfig(run=str(folder / "run"), data=data)
    with pytest.raises(ConfigError, match=f"data.{key} .*lies in the run directory"):
        inputs.check_new_run(config, str(folder / "config.yaml"))


def test_nor_do_the_corpora_of_a_list(folder: Path) -> None:
    good = CorpusConfig(source=str(folder / "text"), target=str(folder / "text"))
    inside = CorpusConfig(source=str(folder / "text"), target=str(folder / "run" / "text"))
    config = RunConfig(run=str(folder / "run"), data=DataConfig(corpora=[good, inside]))
    with pytest.raises(ConfigError, match=r"data\.corpora\[1\]\.target .*lies in the run directory"):
        inputs.check_new_run(config, str(folder / "config.yaml"))


def test_nor_do_vocabularies_codes_weights_and_the_configuration(folder: Path) -> None:
    inside, run = str(folder / "run" / "text"), str(folder / "run")
    for data in (
        DataConfig(source=SideConfig(vocab_file=inside)),
        DataConfig(target=SideConfig(codes=f"{run}/none")),
    ):
        with pytest.raises(ConfigError, match="lies in the run directory"):
            inputs.check_new_run(RunConfig(run=run, data=data), str(folder / "config.yaml"))
    (folder / "run" / "version").write_text("nmt-run 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="init_from"):
        inputs.check_new_run(RunConfig(run=run, init_from=run), str(folder / "config.yaml"))
    with pytest.raises(CheckpointError, match="no such run directory"):
        inputs.check_new_run(RunConfig(run=run, init_from=str(folder / "none")), str(folder / "config.yaml"))
    with pytest.raises(ConfigError, match=r"CONFIG\.yaml"):
        inputs.check_new_run(RunConfig(run=run), str(folder / "run" / "config.yaml"))
    inputs.check_new_run(
        RunConfig(run=run, data=DataConfig(source=SideConfig("en"), train_source=str(folder / "text"))),
        str(folder / "config.yaml"),
    )


@pytest.mark.parametrize("option", [[], ["--overwrite"]])
def test_the_command_leaves_what_it_refuses_to_read(
    folder: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's configuration in the folder of the run would be replaced by the resolved one."""
    given = folder / "run" / "config.yaml"
    given.write_text(
        f"run: {folder}/run\ndata: {{train_source: {folder}/text, train_target: {folder}/text}}\n",
        encoding="utf-8",
    )
    before = given.read_bytes()
    assert train.main([str(given), *option]) == 2
    assert (
        "lies in the run directory" in capsys.readouterr().err
        and given.read_bytes() == before
        and (folder / "run" / "text").exists()
    )
