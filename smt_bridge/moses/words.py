"""The words of Moses' files for networks: tables, n-best lists and search hold tokenized words with escapes.

A run of SentencePiece reads raw text, blanks and all. Joined by blanks, the words of a table are another text
to it, and its scores are those of a text that it has never seen.
"""

from collections.abc import Sequence
from pathlib import Path

from nmt.errors import ConfigError
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import unescape


def check_reads_words(path: str | Path, **raw: bool) -> None:
    """ConfigError for a model that reads raw text on one of its sides. `path`: of the model, for messages;
    `raw`: by side, whether it does."""
    sides = " and ".join(side for side, reads_raw in raw.items() if reads_raw)
    if sides:
        raise ConfigError(
            f"{path}: reads raw text (SentencePiece; {sides}), but phrase tables, n-best lists and search "
            "have tokenized words, which it would score wrongly; use a run of words or BPE (subword: bpe) "
            "that was trained on text tokenized as they are; nmt-score scores pairs of raw text"
        )


def units(words: Sequence[str], text: TextPipeline) -> list[str]:
    """Moses' words as the units of a network that reads words: unescaped, cut."""
    return text.cut(list(map(unescape, words)))
