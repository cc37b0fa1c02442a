"""The settings that a long piece of work was begun with, as JSON in its folder: whoever goes on with it has
to have the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt import files
from nmt.errors import DataError


def read(place: Path) -> dict[str, Any] | None:
    """None where nothing was begun. DataError for a damaged file, and for one that is not ours."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(place) from error
    if not isinstance(found, dict):
        raise damaged(place)
    return found


def damaged(place: Path) -> DataError:
    return DataError(f"{place}: damaged; remove {place.parent} to start anew")


def write(place: Path, settings: Mapping[str, Any]) -> None:
    files.write_text(place, [json.dumps(settings)])


def changed(before: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """The settings that are not what they were; tuples are lists once they have been written and read."""
    now = json.loads(json.dumps(settings))
    return [key for key in now if now[key] != before.get(key)]
