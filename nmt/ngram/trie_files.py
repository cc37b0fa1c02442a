"""Folders of mapped n-gram models (`nmt/io/mapped.py`): the arrays of a TrieModel."""

from pathlib import Path

from nmt.io import files, manifest, mapped
from nmt.ngram.trie_model import TrieModel


def identity_file(path: str | Path) -> Path:
    """The file that changes whenever the content of a model does: that of an ARPA or KenLM model itself, the
    manifest of a folder."""
    return Path(path) / manifest.FILE if mapped.is_mapped(path) else Path(path)


def load_trie(folder: str | Path, verify: bool = False) -> TrieModel:
    """Map the model of a folder. Checksums and indices are verified once on a machine, or with `verify`.
    DataError for a folder that is damaged, or has something else."""
    return mapped.load_record(folder, TrieModel, "nmt-ngram compile", stamp_of(folder), verify)


def stamp_of(folder: str | Path) -> Path:
    """The file in the user's cache that says that a folder has been verified."""
    return mapped.stamp_file(files.cache_folder(), folder)
