"""The files that a training reads: none lies in the run that it makes, and the run is resumed with the same
ones or not at all."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from nmt.data.corpus import ALIGNMENTS, VECTORS, DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import files, manifest
from nmt.runs import directory as run_directory
from nmt.runs.directory import INPUTS
from nmt.training.config import RunConfig, check_languages, get_value, side_paths, text_sides
from nmt.training.subwords import LearningSide, check_sides

# ---- inputs ------------------------------------------------------------------------------------------------


STAMPED_KEYS = (
    "train_source", "train_target", "phrase_table", "dev_source", "dev_target", "train_text", "dev_text",
    *ALIGNMENTS, *VECTORS,
)  # fmt: skip


def named_files(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the regular files that a configuration names; nothing can be said of pipes."""
    values = [(item.name, getattr(config, item.name)) for item in fields(config) if item.name in STAMPED_KEYS]
    for key, path in (*values, *listed_files(config)):
        if path and path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
            yield key, path


def listed_files(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the files of the corpora of a list."""
    for index, corpus in enumerate(config.corpora):
        yield f"corpora[{index}].source", corpus.source
        yield f"corpora[{index}].target", corpus.target


def take_stamps(config: DataConfig) -> dict[str, manifest.Stamp]:
    """Stamps of all of them, by key."""
    return {key: manifest.stamp(path) for key, path in named_files(config)}


def save_stamps(stamps: dict[str, manifest.Stamp], new: Path) -> None:
    """Write them into a folder."""
    files.write_text(new / INPUTS, [json.dumps(stamps, indent=1)])


def check_inputs(config: DataConfig, directory: Path) -> None:
    """DataError for a file that has changed since the run was started."""
    inputs_path = directory / INPUTS
    try:
        with manifest.opened(directory, INPUTS, manifest.load(directory)) as stream:
            recorded = dict(json.load(stream))
        changed = [
            (key, path)
            for key, path in named_files(config)
            if key in recorded and not manifest.unchanged(path, recorded[key])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{inputs_path}: damaged; copy it again") from error
    for key, path in changed:
        raise DataError(
            f"{path}: has changed since {directory} was started with it (data.{key}); bring it back, or "
            "start another run"
        )


# ---- new run -----------------------------------------------------------------------------------------------
# What is checked before a run directory is made.


SIDE_FILES = ("vocab_file", "codes")
PATH_KEYS = (
    "init_from", "data.train_source", "data.train_target", "data.phrase_table", "data.dev_source",
    "data.dev_target", "data.train_text", "data.dev_text",
    *(f"data.{key}" for key in (*ALIGNMENTS, *VECTORS)),
    *(f"data.{side}.{key}" for side in ("source", "target") for key in SIDE_FILES),
)  # fmt: skip


def check_new_run(config: RunConfig, config_path: str) -> None:
    """Before a run is made: nothing that is read lies in its folder, its languages are known, the run that it
    starts from is there. `given`: the file of the configuration; empty where there is none.

    ConfigError or CheckpointError before any work.
    """
    if config.init_from:
        run_directory.check_version(run_directory.resolve(config.init_from))
    read = {"CONFIG.yaml": config_path, **{key: str(get_value(config, key)) for key in PATH_KEYS}}
    read |= {f"data.{key}": path for key, path in listed_files(config.data)}
    for key, path in read.items():
        if path and is_inside(path, config.run):
            raise ConfigError(
                f"{key} {path}: lies in the run directory {config.run}, which this command makes; name "
                "another directory with run="
            )
    check_languages(config)
    sides = text_sides(config)
    if all(config.data.phrase_table or side_paths(config.data, name) for name in sides):
        check_sides(config.data, *(LearningSide.of(name, config.data) for name in sides))


def is_inside(path: str, folder: str) -> bool:
    """Is a path a folder, or below it, links followed?"""
    return Path(folder).resolve() in (Path(path).resolve(), *Path(path).resolve().parents)
