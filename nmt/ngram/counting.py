"""N-grams of a text counted in arrays, and back-off models made of what an estimator computes from them.

M n-grams of one length, N tokens of the text, V words.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.ngram.arpa import BOS, EOS, UNK, Floats, Ints, NgramModel, NgramOrder, trimmed

MINUS_ALL = -99.0  # log10 p of what never follows


@dataclass
class NumberedText:
    """A corpus as numbers: `<s> words </s>` of every sentence, one after the other."""

    words: list[str]  # <unk>, <s>, </s>, then in order of appearance
    ids: NDArray[np.int32]  # (N,)


@dataclass
class Counted:
    """The M n-grams of one length, in order of their keys, with their counts."""

    keys: Ints  # parent * V + last word
    raw: Ints  # number of occurrences
    suffix: Ints  # all words but the first, as a node of the order below
    begins: NDArray[np.bool_]  # is its first word <s>?
    vocab_size: int  # V

    @property
    def parents(self) -> Ints:
        """All words but the last, as a node of the order below; of unigrams the empty context, 0."""
        return self.keys // self.vocab_size


def numbered(sentences: Iterable[Sequence[str]], skip_symbols: bool = False) -> NumberedText:
    """Words to numbers, as `number` does it. DataError for a text without words, too."""
    text = number(sentences, skip_symbols)
    if not len(text.words) > 3 and 0 not in text.ids:
        raise nothing()
    return text


def nothing() -> DataError:
    """The error for a text without words."""
    return DataError("no words to estimate a language model from")


def number(sentences: Iterable[Sequence[str]], skip_symbols: bool, first: int = 1) -> NumberedText:
    """Words to numbers. A word <unk> is the unknown word; <s> and </s> in a sentence are an error, or
    removed. `first`: the number of the first line."""
    numbers = {UNK: 0, BOS: 1, EOS: 2}
    ids = array("i")
    for line, words in enumerate(sentences, first):
        if BOS in words or EOS in words:
            if not skip_symbols:
                raise DataError(
                    f"line {line}: the text contains {BOS if BOS in words else EOS}, which marks the edges "
                    "of sentences; remove it, or use --skip-symbols"
                )
            words = [word for word in words if word not in (BOS, EOS)]
        ids.append(1)
        ids.extend([numbers.setdefault(word, len(numbers)) for word in words])
        ids.append(2)
    return NumberedText(list(numbers), np.frombuffer(ids, np.int32))


def count(text: NumberedText, order: int) -> list[Counted]:
    """The n-grams of every length; none crosses the edges of a sentence."""
    V, N = len(text.words), len(text.ids)
    words = text.ids.astype(np.int64)
    starts = np.maximum.accumulate(np.where(words == 1, np.arange(N), 0))
    place = np.arange(N) - starts  # in its sentence, <s> at 0
    levels = [
        Counted(
            keys=np.arange(V),
            raw=np.bincount(words, minlength=V),
            suffix=np.zeros(V, np.int64),
            begins=np.arange(V) == 1,
            vocab_size=V,
        )
    ]
    node = words  # of the n-gram that ends at each token
    for n in range(2, order + 1):
        ends = np.flatnonzero(place >= n - 1)
        keys, which, raw = np.unique(
            node[ends - 1] * V + words[ends], return_inverse=True, return_counts=True
        )
        suffix = np.empty(len(keys), np.int64)
        suffix[which] = node[ends]
        node = np.full(N, -1, np.int64)
        node[ends] = which
        begins = levels[-1].begins[keys // V]
        levels.append(Counted(keys=keys, raw=raw, suffix=suffix, begins=begins, vocab_size=V))
    return levels


def log10_of(probs: Floats) -> Floats:
    """log10 p of each n-gram, MINUS_ALL where p is 0."""
    with np.errstate(divide="ignore"):
        return np.where(probs > 0, np.log10(probs), MINUS_ALL)


def finish(words: list[str], levels: list[NgramOrder], gammas: list[Floats], rows: list[Ints]) -> NgramModel:
    """The model with each back-off weight at its context; of each order only the given rows stay."""
    V = len(words)
    for level, gamma in zip(levels, gammas[1:], strict=False):
        weight = np.concatenate([gamma, np.zeros(len(level.keys) - len(gamma))])
        with np.errstate(divide="ignore"):
            level.backoff = np.where(weight > 0, np.log10(weight), 0.0)
    model = NgramModel(words, [])
    renumbered = np.arange(V)
    for n, (level, kept) in enumerate(zip(levels, rows, strict=True), 1):
        keys = level.keys[kept]
        if n > 1:
            keys = renumbered[keys // V] * V + keys % V
        renumbered = np.full(len(level.keys), -1, np.int64)
        renumbered[kept] = np.arange(len(kept))
        model.levels.append(NgramOrder(keys=keys, log10=level.log10[kept], backoff=level.backoff[kept]))
    return trimmed(model)
