"""Converts words of Moses' tables, n-best lists and search, which are tokenized and escaped, to what networks
read.

A run with SentencePiece reads raw text, including blanks. It has never seen tokenized words joined by blanks,
and would score them wrongly."""

from collections.abc import Sequence
from pathlib import Path

from nmt.errors import ConfigError
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import unescape


def check_reads_words(path: str | Path, **raw: bool) -> None:
    """ConfigError if a model reads raw text on any side. `path`: path of the model, for messages; `raw`:
    whether it reads raw text, by name of the side."""
    sides = " and ".join(side for side, reads_raw in raw.items() if reads_raw)
    if sides:
        raise ConfigError(
            f"{path}: reads raw text (SentencePiece; {sides}), but phrase tables, n-best lists and search "
            "have tokenized words, which it would score wrongly; use a run of words or BPE (subword: bpe) "
            "that was trained on text tokenized as they are; nmt-score scores pairs of raw text"
        )


def units(words: Sequence[str], text: TextPipeline) -> list[str]:
    """Unescape words and split them into the units of a network, words or subwords. `text`: its text
    pipeline."""
    return text.cut(list(map(unescape, words)))
