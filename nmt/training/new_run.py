"""What is checked before a run directory is made."""

from pathlib import Path

from nmt.data.corpus import ALIGNMENTS, VECTORS
from nmt.errors import ConfigError
from nmt.runs import directory as run_directory
from nmt.training import inputs, side_languages
from nmt.training.run_config import RunConfig, value_of
from nmt.training.subwords import LearningSide, check_sides

SIDE_FILES = ("vocab_file", "codes")
FILES = (
    "init_from", "data.train_source", "data.train_target", "data.phrase_table", "data.dev_source",
    "data.dev_target", "data.train_text", "data.dev_text",
    *(f"data.{key}" for key in (*ALIGNMENTS, *VECTORS)),
    *(f"data.{side}.{key}" for side in ("source", "target") for key in SIDE_FILES),
)  # fmt: skip


def check(config: RunConfig, given: str) -> None:
    """Before a run is made: nothing that is read lies in its folder, its languages are known, the run that it
    starts from is there. `given`: the file of the configuration; empty where there is none.

    ConfigError or CheckpointError before any work.
    """
    if config.init_from:
        run_directory.check_version(run_directory.resolve(config.init_from))
    read = {"CONFIG.yaml": given, **{key: str(value_of(config, key)) for key in FILES}}
    read |= {f"data.{key}": path for key, path in inputs.listed(config.data)}
    for key, path in read.items():
        if path and inside(path, config.run):
            raise ConfigError(
                f"{key} {path}: lies in the run directory {config.run}, which this command makes; name "
                "another directory with run="
            )
    side_languages.check(config)
    sides = side_languages.sides(config)
    if all(config.data.phrase_table or side_languages.paths(config.data, name) for name in sides):
        check_sides(config.data, *(LearningSide.of(name, config.data) for name in sides))


def inside(path: str, folder: str) -> bool:
    """Is a path a folder, or below it, links followed?"""
    return Path(folder).resolve() in (Path(path).resolve(), *Path(path).resolve().parents)
