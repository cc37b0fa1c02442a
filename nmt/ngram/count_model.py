"""Count-based n-gram models from files: ARPA with our own reader, KenLM's binary formats with the package
kenlm."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nmt.errors import ConfigError, DataError
from nmt.ngram import arpa
from nmt.ngram.arpa import EOS, LN10, Floats

KENLM = b"mmap lm "  # every binary file of KenLM begins with it


class CountModel(Protocol):
    """A count-based n-gram model: scores of texts of words."""

    @property
    def order(self) -> int:
        """Words of the longest n-grams."""
        ...

    @property
    def vocab_size(self) -> int:
        """Words that the model knows, </s> included, <unk> and <s> not; 0 where the file does not say."""
        ...

    def knows(self, word: str) -> bool:
        """Has the word a unigram of its own?"""
        ...

    def scores(self, texts: Sequence[Sequence[str]], whole: bool = True) -> list[Floats]:
        """log p, natural, of each word of each text. `whole`: sentences, read after <s> and with </s> as
        their last word."""
        ...


class KenLM:
    """A KenLM binary. Words are scored one by one, since KenLM's own sentence scorer splits at more than
    blanks."""

    vocab_size = 0

    def __init__(self, path: str) -> None:
        self.kenlm, self.model = load_kenlm(path)
        self.order = int(self.model.order)

    def knows(self, word: str) -> bool:
        """Has the word a unigram of its own?"""
        return word in self.model

    def scores(self, texts: Sequence[Sequence[str]], whole: bool = True) -> list[Floats]:
        """log p, natural, of each word of each text; see CountModel."""
        return [self.text_scores(words, whole) for words in texts]

    def text_scores(self, words: Sequence[str], whole: bool) -> Floats:
        """log p, natural, of each word of a text."""
        state, after = self.kenlm.State(), self.kenlm.State()
        if whole:
            self.model.BeginSentenceWrite(state)
        else:
            self.model.NullContextWrite(state)
        scores = []
        for word in [*words, EOS] if whole else words:
            scores.append(self.model.BaseScore(state, word, after))
            state, after = after, state
        return LN10 * np.array(scores, np.float64)


def load_count_model(path: str | Path) -> CountModel:
    """An n-gram model from an ARPA file, .gz too, or a KenLM binary. ConfigError where a binary file needs
    the package kenlm and it is not installed, DataError for a file that is not an n-gram model."""
    path = str(path)
    if not os.path.isfile(path):
        raise DataError(f"{path}: cannot read: no such file, expected an ARPA or KenLM file")
    if arpa.is_arpa(path):
        return arpa.read(path)
    with open(path, "rb") as stream:
        head = stream.read(len(KENLM))
    if head != KENLM:
        raise DataError(
            f"{path}: not an ARPA or KenLM file: it begins neither with \\data\\ nor with "
            f"{KENLM.decode().strip()!r}"
        )
    return KenLM(path)


def load_kenlm(path: str) -> tuple[Any, Any]:
    """The module kenlm and a model."""
    try:
        import kenlm
    except ImportError as error:
        raise ConfigError(
            f"{path}: a binary model needs the package kenlm; install it with: pip install "
            "'nmt-smt[kenlm]', "
            "or give the ARPA file"
        ) from error
    try:
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        return kenlm, kenlm.Model(path, config)
    except (OSError, RuntimeError, ValueError) as error:
        text = str(error).split("\n")[0].split("Byte:")[0]
        raise DataError(f"{path}: not a KenLM file, or of another version ({text[:150]})") from error
