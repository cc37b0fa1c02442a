"""Absolute paths in a moses.ini that is written into another folder, or read by a program that changes
folders."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from nmt.errors import ConfigError
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini

KEYS = ("path", "source_vocab", "target_vocab")
ENDINGS = ("", ".gz", ".minphr", ".minlexr")  # added by Moses itself


def whole(ini: Ini, roots: Sequence[str | Path]) -> Ini:
    """The same ini with absolute paths. A relative path is searched in `roots` in turn; if it is nowhere, it
    is taken as one of the first. ConfigError for a path with a blank."""
    return replaced(ini, lambda path: absolute(path, roots))


def moved(ini: Ini, output: str | Path) -> Ini:
    """The same ini for another file: in another folder its paths are absolute, found from here, else from
    beside the ini, so that they lead to the same files. What does not exist stays as it is. ConfigError for a
    path with a blank."""
    folder = Path(ini.path).parent
    if Path(output).parent.resolve() == folder.resolve():
        return ini
    return replaced(ini, lambda path: found(path, [".", folder]) or path)


def beside_alone(ini: Ini) -> str:
    """The folder of an ini with a path that is found there, and not from here; empty without one."""
    folder = str(Path(ini.path).parent)
    paths = [feature.options[key] for feature in ini.features for key in KEYS if feature.options.get(key)]
    return folder if any(found(path, [folder]) and not found(path, ["."]) for path in paths) else ""


def replaced(ini: Ini, place: Callable[[str], str]) -> Ini:
    """The same ini with other paths. ConfigError for a path with a blank."""
    lines = list(ini.lines)
    for feature in ini.features:
        paths = {key: place(feature.options[key]) for key in KEYS if feature.options.get(key)}
        for path in paths.values():
            if len(path.split()) > 1:
                raise ConfigError(
                    f"{ini.path}:{feature.row + 1}: {path!r} contains a blank, which a moses.ini cannot "
                    "hold; move the model, or write this output beside it"
                )
        lines[feature.row] = moses_ini.with_options(lines[feature.row], paths)
    return moses_ini.parse(ini.path, lines)


def absolute(path: str, roots: Sequence[str | Path]) -> str:
    """A path below the first of `roots` that has it, else below the first."""
    return found(path, roots) or os.path.abspath(os.path.join(roots[0], path))


def found(path: str, roots: Sequence[str | Path]) -> str:
    """A path below the first of `roots` that has it; empty where none has."""
    places = [os.path.abspath(os.path.join(root, path)) for root in roots]
    return next((place for place in places if any(os.path.exists(place + ending) for ending in ENDINGS)), "")
