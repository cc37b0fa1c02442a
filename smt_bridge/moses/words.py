"""Converts words of Moses' tables, n-best lists and search, which are tokenized and escaped, to what networks
read.

A run with SentencePiece reads raw text, in which blanks are characters. It gets the words detokenized by
Moses' rules of its language, as nmt-score would get the finished text: `l&apos; homme .` -> `l'homme.`
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nmt.errors import ConfigError
from nmt.text import scripts
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import Tokenizer, unescape


def check_reads_words(path: str | Path, **raw: bool) -> None:
    """ConfigError if a model reads raw text on any side, for features that need its words one by one.
    `path`: path of the model, for messages; `raw`: whether it reads raw text, by name of the side."""
    sides = " and ".join(side for side, reads_raw in raw.items() if reads_raw)
    if sides:
        raise ConfigError(
            f"{path}: reads raw text (SentencePiece; {sides}), but this needs units of each word; use a "
            "run of words or BPE (subword: bpe) that was trained on text tokenized as they are"
        )


def check_detokenizes(path: str | Path, **sides: TextPipeline) -> None:
    """ConfigError if a model reads raw text of a language whose rules to join words are unknown. `path`: path
    of the model, for messages; `sides`: its text pipelines by name of the side."""
    for side, text in sides.items():
        if text.raw:
            try:
                scripts.check_language_code(language_of(text), f"{side}.language")
            except ConfigError as error:
                raise ConfigError(
                    f"{path}: reads raw text (SentencePiece), to which words are joined by the rules of its "
                    f"language: {error}"
                ) from error


def units(words: Sequence[str], text: TextPipeline) -> list[str]:
    """Unescape words and split them into the units of a network: words, subwords, or for a network that reads
    raw text the pieces of their detokenized text. `text`: its text pipeline."""
    return unescaped_units(list(map(unescape, words)), text)


def unescaped_units(words: list[str], text: TextPipeline) -> list[str]:
    """Split words without escapes into the units of a network, as `units` does."""
    if text.raw:
        return text.for_text(False).units(rules(language_of(text)).text(words))
    return text.cut(words)


def language_of(text: TextPipeline) -> str:
    return text.tokenizer.settings[0]


@cache
def rules(language: str) -> Tokenizer:
    """The tokenizer of a language, whose inverse joins words."""
    return Tokenizer(language, normalize=False)
