"""Whole paths in a moses.ini: for one that is written into another folder, or read by a program that changes
folders."""

import os
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import ConfigError
from smt_bridge import moses_ini
from smt_bridge.moses_ini import Ini

KEYS = ("path", "source_vocab", "target_vocab")
ENDINGS = ("", ".gz", ".minphr", ".minlexr")  # that Moses adds by itself


def whole(ini: Ini, roots: Sequence[str | Path]) -> Ini:
    """The same ini with absolute paths. A relative one is looked for in `roots` in turn; one that is nowhere
    is taken as in the first."""
    lines = list(ini.lines)
    for feature in ini.features:
        found = {key: absolute(feature.options[key], roots) for key in KEYS if feature.options.get(key)}
        for path in found.values():
            if len(path.split()) > 1:
                raise ConfigError(
                    f"{ini.path}:{feature.row + 1}: {path!r} has a blank, which no moses.ini can hold; move "
                    "the model, or this output beside it"
                )
        lines[feature.row] = moses_ini.with_options(lines[feature.row], found)
    return moses_ini.parse(ini.path, lines)


def absolute(path: str, roots: Sequence[str | Path]) -> str:
    places = [os.path.abspath(os.path.join(root, path)) for root in roots]
    return next(
        (place for place in places if any(os.path.exists(place + ending) for ending in ENDINGS)), places[0]
    )
