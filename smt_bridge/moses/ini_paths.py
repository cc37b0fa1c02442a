"""Absolute paths in a moses.ini that is written into another folder, or read by a program that changes
folders."""

import os
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import ConfigError
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini

KEYS = ("path", "source_vocab", "target_vocab")
ENDINGS = ("", ".gz", ".minphr", ".minlexr")  # added by Moses itself


def whole(ini: Ini, roots: Sequence[str | Path]) -> Ini:
    """The same ini with absolute paths. A relative path is searched in `roots` in turn; if it is nowhere, it
    is taken as one of the first. ConfigError for a path with a blank."""
    lines = list(ini.lines)
    for feature in ini.features:
        found = {key: absolute(feature.options[key], roots) for key in KEYS if feature.options.get(key)}
        for path in found.values():
            if len(path.split()) > 1:
                raise ConfigError(
                    f"{ini.path}:{feature.row + 1}: {path!r} contains a blank, which a moses.ini cannot "
                    "hold; move the model, or write this output beside it"
                )
        lines[feature.row] = moses_ini.with_options(lines[feature.row], found)
    return moses_ini.parse(ini.path, lines)


def absolute(path: str, roots: Sequence[str | Path]) -> str:
    """A path below the first of `roots` that has it."""
    places = [os.path.abspath(os.path.join(root, path)) for root in roots]
    return next(
        (place for place in places if any(os.path.exists(place + ending) for ending in ENDINGS)), places[0]
    )
