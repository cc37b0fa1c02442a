"""What the training and development files of a run were when it was started: a run goes on with these or not
at all."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from nmt import files, manifest
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, DataError
from nmt.run_directory import INPUTS

KEYS = ("train_source", "train_target", "phrase_table", "dev_source", "dev_target", "train_text", "dev_text")


def named(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the regular files that a configuration names; of pipes nothing can be told."""
    for item in fields(config):
        path = getattr(config, item.name)
        if (
            item.name in KEYS
            and path
            and path != "-"
            and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode))
        ):
            yield item.name, path


def take(config: DataConfig) -> dict[str, Any]:
    """Stamps of all of them, by key."""
    return {key: manifest.stamp(path) for key, path in named(config)}


def save(stamps: dict[str, Any], new: Path) -> None:
    files.write_text(new / INPUTS, [json.dumps(stamps, indent=1)])


def check(config: DataConfig, directory: Path) -> None:
    """DataError for a file that is not what it was when the run was started. Of runs of version 0.5 nothing
    is known."""
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
