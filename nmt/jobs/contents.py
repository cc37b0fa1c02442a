"""The files that a job reads wherever it is computed, such as models: they are not sent, but have to be the
same there."""

import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from nmt import manifest
from nmt.errors import DataError


def of(paths: Iterable[str | Path]) -> dict[str, str]:
    """The checksum of each file, by its absolute path. DataError for one that cannot be read."""
    return {os.path.abspath(path): manifest.digest(path) for path in paths}


def check(contents: Mapping[str, str]) -> None:
    """DataError unless the files are the same here."""
    for path, expected in contents.items():
        try:
            found = manifest.digest(path)
        except DataError as error:
            raise DataError(
                f"{error} on {platform.node()}; workers read models from the same path"
            ) from error
        if found != expected:
            raise DataError(f"{path}: is another file on {platform.node()} than where the job was started")
