"""Stamps of the training and development files of a run: it is resumed with the same ones or not at all."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from nmt import files, manifest
from nmt.data.corpus import ALIGNMENTS, VECTORS, DataConfig
from nmt.errors import CheckpointError, DataError
from nmt.runs.directory import INPUTS

KEYS = (
    "train_source", "train_target", "phrase_table", "dev_source", "dev_target", "train_text", "dev_text",
    *ALIGNMENTS, *VECTORS,
)  # fmt: skip


def named(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the regular files that a configuration names; nothing can be said of pipes."""
    given = [(item.name, getattr(config, item.name)) for item in fields(config) if item.name in KEYS]
    for key, path in (*given, *listed(config)):
        if path and path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
            yield key, path


def listed(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the files of the corpora of a list."""
    for place, corpus in enumerate(config.corpora):
        yield f"corpora[{place}].source", corpus.source
        yield f"corpora[{place}].target", corpus.target


def take(config: DataConfig) -> dict[str, manifest.Stamp]:
    """Stamps of all of them, by key."""
    return {key: manifest.stamp(path) for key, path in named(config)}


def save(stamps: dict[str, manifest.Stamp], new: Path) -> None:
    """Write them into a folder."""
    files.write_text(new / INPUTS, [json.dumps(stamps, indent=1)])


def check(config: DataConfig, directory: Path) -> None:
    """DataError for a file that has changed since the run was started. Version 0.5 kept no stamps."""
    place = directory / INPUTS
    if not place.exists():
        return
    try:
        with manifest.opened(directory, INPUTS, manifest.read(directory)) as stream:
            before = dict(json.load(stream))
        changed = [
            (key, path)
            for key, path in named(config)
            if key in before and not manifest.unchanged(path, before[key])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{place}: damaged; copy it again") from error
    for key, path in changed:
        raise DataError(
            f"{path}: has changed since {directory} was started with it (data.{key}); bring it back, or "
            "start another run"
        )
