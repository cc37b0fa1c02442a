"""Texts as numbers, for the n-gram models that score whole texts at once: N tokens, texts one after the
other."""

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LN10 = math.log(10)
BOS, EOS, UNK = "<s>", "</s>", "<unk>"
MINUS_ALL = -99.0  # log10 p of an n-gram with p = 0, as in SRILM
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class NgramTextScorer(ABC):
    """Interface of n-gram models that score flat texts."""

    begin: int  # number of <s>
    end: int  # number of </s>

    @abstractmethod
    def encode(self, words: Sequence[str]) -> list[int]:
        """Map words to numbers; words without a unigram become <unk>."""

    @abstractmethod
    def flat_scores(self, text: Ints, first: Ints) -> Floats:
        """Natural log p of each token given the previous ones of its sentence: (N,). `first` (N,): the index
        at which the sentence of each token begins."""

    def last_scores(self, grams: Ints) -> Floats:
        """Natural log p of the last word of each row of word ids, given the others: (M, n) -> (M,)"""
        M, n = grams.shape
        return self.flat_scores(grams.ravel(), np.repeat(np.arange(M) * n, n))[n - 1 :: n]

    def flatten(self, texts: Sequence[Sequence[str]], whole: bool = True) -> tuple[Ints, Ints, Ints]:
        """Concatenate texts. Returns the ids of their words, (N,), the index at which the text of each word
        begins, (N,), and the index at which each text begins, (texts,). `whole`: add <s> and </s> to each
        text."""
        prefix, suffix = ([self.begin], [self.end]) if whole else ([], [])
        lengths = np.array([len(text) + 2 * whole for text in texts], np.int64)
        starts = np.cumsum(lengths) - lengths
        words = (word for text in texts for word in (*prefix, *self.encode(text), *suffix))
        return np.fromiter(words, np.int64, int(lengths.sum())), np.repeat(starts, lengths), starts

    def scores(self, texts: Sequence[Sequence[str]], whole: bool = True) -> list[Floats]:
        """Natural log p of each word of each text. `whole`: texts are sentences, after <s> and with </s>."""
        if not texts:
            return []
        if len(texts) == 1:  # in a tenth of the time
            ids = self.encode(texts[0])
            flat = np.frombuffer(array("q", [self.begin, *ids, self.end] if whole else ids), np.int64)
            return [self.flat_scores(flat, np.zeros(len(flat), np.int64))[int(whole) :]]
        flat, first, starts = self.flatten(texts, whole)
        log_probs = self.flat_scores(flat, first)
        return [part[1:] if whole else part for part in np.split(log_probs, starts[1:])]
