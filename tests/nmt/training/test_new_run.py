"""What nmt-train checks before it makes a run directory: nothing that it reads is in there."""

from pathlib import Path

import pytest

from nmt.cli import train
from nmt.data.corpora import CorpusConfig
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError
from nmt.text.pipeline import SideConfig
from nmt.training import new_run
from nmt.training.run_config import RunConfig


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
        new_run.check(config, str(folder / "config.yaml"))


def test_nor_do_the_corpora_of_a_list(folder: Path) -> None:
    good = CorpusConfig(source=str(folder / "text"), target=str(folder / "text"))
    inside = CorpusConfig(source=str(folder / "text"), target=str(folder / "run" / "text"))
    config = RunConfig(run=str(folder / "run"), data=DataConfig(corpora=[good, inside]))
    with pytest.raises(ConfigError, match=r"data\.corpora\[1\]\.target .*lies in the run directory"):
        new_run.check(config, str(folder / "config.yaml"))


def test_nor_do_vocabularies_codes_weights_and_the_configuration(folder: Path) -> None:
    inside, run = str(folder / "run" / "text"), str(folder / "run")
    for data in (
        DataConfig(source=SideConfig(vocab_file=inside)),
        DataConfig(target=SideConfig(codes=f"{run}/none")),
    ):
        with pytest.raises(ConfigError, match="lies in the run directory"):
            new_run.check(RunConfig(run=run, data=data), str(folder / "config.yaml"))
    (folder / "run" / "version").write_text("nmt-run 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="init_from"):
        new_run.check(RunConfig(run=run, init_from=run), str(folder / "config.yaml"))
    with pytest.raises(CheckpointError, match="no such run directory"):
        new_run.check(RunConfig(run=run, init_from=str(folder / "none")), str(folder / "config.yaml"))
    with pytest.raises(ConfigError, match=r"CONFIG\.yaml"):
        new_run.check(RunConfig(run=run), str(folder / "run" / "config.yaml"))
    new_run.check(
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
