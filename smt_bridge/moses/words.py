"""Words of Moses' files as networks read them: tables, n-best lists and search hold tokenized words with
escapes.

A run with SentencePiece reads raw text, blanks included. The words of a table, joined by blanks, are a text
of a kind that it has never seen, and its scores would mean nothing."""

from collections.abc import Sequence
from pathlib import Path

from nmt.errors import ConfigError
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import unescape


def check_reads_words(path: str | Path, **raw: bool) -> None:
    """ConfigError for a model that reads raw text on one of its sides. `path`: of the model, for messages;
    `raw`: by side, whether it reads raw text."""
    sides = " and ".join(side for side, reads_raw in raw.items() if reads_raw)
    if sides:
        raise ConfigError(
            f"{path}: reads raw text (SentencePiece; {sides}), but phrase tables, n-best lists and search "
            "have tokenized words, which it would score wrongly; use a run of words or BPE (subword: bpe) "
            "that was trained on text tokenized as they are; nmt-score scores pairs of raw text"
        )


def units(words: Sequence[str], text: TextPipeline) -> list[str]:
    """Unescape Moses' words and cut them into the units of a network."""
    return text.cut(list(map(unescape, words)))
