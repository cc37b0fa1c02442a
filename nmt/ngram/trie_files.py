"""Folders of mapped n-gram models (`nmt/io/mapped.py`): the arrays of a TrieModel."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nmt.errors import DataError
from nmt.io import files, manifest, mapped
from nmt.ngram.trie_model import TrieModel

KIND = "TrieModel"


def is_trie(path: str | Path) -> bool:
    """Whether a path is a folder of mapped arrays."""
    return mapped.is_mapped(path)


def identity_file(path: str | Path) -> Path:
    """The file that changes whenever the content of a model does: that of an ARPA or KenLM model itself, the
    manifest of a folder."""
    return Path(path) / manifest.FILE if is_trie(path) else Path(path)


def write_trie(folder: str | Path, model: TrieModel, sources: Sequence[str]) -> None:
    """Write a model to an existing, empty folder; the manifest comes last. `sources`: the files that it was
    made from. UserError if that fails."""
    fields = model._asdict()
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in fields.items() if name not in arrays}
    mapped.write(Path(folder), KIND, arrays, numbers, sources)


def load_trie(folder: str | Path, verify: bool = False) -> TrieModel:
    """Map the model of a folder. Checksums and indices are verified once on a machine, or with `verify`.
    DataError for a folder that is damaged, or has something else."""
    stamp = stamp_of(folder)
    opened = mapped.load(folder, stamp, verify)
    if opened.kind != KIND or {*opened.arrays, *opened.numbers} != set(TrieModel._fields):
        raise DataError(
            f"{folder}: holds {opened.kind[:40]!r} of this or another version, expected an n-gram model of "
            "nmt-ngram compile; compile it again"
        )
    model = TrieModel(**opened.arrays, **opened.numbers)  # type: ignore[arg-type]  # checked below
    if not opened.verified:
        if not model.is_sound():
            raise DataError(f"{folder}: damaged: sizes or indices do not agree; compile the model again")
        mapped.write_stamp(stamp, opened)
    return model


def stamp_of(folder: str | Path) -> Path:
    """The file in the user's cache that says that a folder has been verified."""
    name = hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:24]
    return files.cache_folder() / f"verified-{name}"
