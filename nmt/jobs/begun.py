"""The settings that a long piece of work was started with, as JSON in its folder: whoever resumes it has to
give the same ones."""

import json
from collections.abc import Mapping
from pathlib import Path

from nmt import files, foreign, locks
from nmt.errors import DataError


def read(place: Path) -> dict[str, object] | None:
    """The settings; None where nothing was started. DataError for a damaged file, and for one that is not
    ours."""
    try:
        found = json.loads(foreign.read(place).decode("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(place) from error
    if not isinstance(found, dict):
        raise damaged(place)
    return found


def is_ours(folder: Path, name: str) -> bool:
    """Was work begun in a folder, whose settings are in the file `name`, or can it begin there: is nothing in
    it but a lock, and what is left of settings whose writing was killed?"""
    if not folder.is_dir():
        return not folder.exists()
    names = [path.name for path in folder.iterdir()]
    return name in names or all(one == locks.FILE or one.startswith(f"{name}.part") for one in names)


def damaged(place: Path) -> DataError:
    """The error for settings that cannot be read."""
    return DataError(f"{place}: damaged; remove {place.parent} to start over")


def write(place: Path, settings: Mapping[str, object]) -> None:
    """Write the settings, as the work starts."""
    files.write_text(place, [json.dumps(settings)])


def changed(before: Mapping[str, object], settings: Mapping[str, object]) -> list[str]:
    """The names of settings that are not what they were. Tuples become lists when they are written and
    read."""
    now = json.loads(json.dumps(settings))
    return [key for key in now if now[key] != before.get(key)]
