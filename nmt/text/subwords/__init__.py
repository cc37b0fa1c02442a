"""Subword units, registered in `SUBWORDS`: split words into units, join units to words."""

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from nmt.errors import DataError
from nmt.io import files
from nmt.text.subwords.bpe import BPE, load_codes
from nmt.text.subwords.protocol import LearnSettings, Sampler, Subwords, TrainingText
from nmt.text.subwords.sentencepiece import Pieces, SentencePieceBPE, Unigram, is_model, kind_of_model

SUBWORDS: dict[str, type[Subwords]] = {"bpe": BPE, "unigram": Unigram, "sentencepiece-bpe": SentencePieceBPE}
PIECES: dict[str, type[Pieces]] = {kind.kind: kind for kind in (Unigram, SentencePieceBPE)}
HEAD = 200  # bytes that distinguish a model from text
AUTO, NONE = "auto", "none"
# The values of a setting, its default first. A view of SUBWORDS, so that kinds that plugins add count, too.
CHOICES = cast(Mapping[str, object], ChainMap(SUBWORDS, {AUTO: None, NONE: None}))


def file_kind(path: str | Path) -> str:
    """The kind of the subwords in a file, a name in SUBWORDS, by its content: bpe for all that is not a
    SentencePiece model. DataError for a model of an unsupported kind, and for a file that cannot be read."""
    with files.open_bytes(path) as stream:
        data = stream.read(HEAD)
        if not is_model(data):
            return BPE.kind
        kind = kind_of_model(data + stream.read())
    if kind not in SUBWORDS:
        raise DataError(
            f"{path}: is a SentencePiece model of {kind} units, expected unigram or BPE; learn another with "
            "nmt-subword"
        )
    return kind


def load(path: str | Path) -> Subwords:
    """Load subwords: a SentencePiece model or BPE codes. DataError for another file or an unreadable one."""
    kind = file_kind(path)
    if kind == BPE.kind:
        return load_codes(path)
    with files.open_bytes(path) as stream:
        return PIECES[kind](stream.read(), str(path))


def side_file(directory: Path, side: str) -> Path | None:
    """Path of the subwords of one side of a run; None if its units are whole words."""
    paths = (directory / f"{side}.{kind.suffix}" for kind in SUBWORDS.values())
    return next((path for path in paths if path.exists()), None)


__all__ = [
    "AUTO",
    "CHOICES",
    "NONE",
    "SUBWORDS",
    "LearnSettings",
    "Sampler",
    "Subwords",
    "TrainingText",
    "file_kind",
    "load",
    "side_file",
]
