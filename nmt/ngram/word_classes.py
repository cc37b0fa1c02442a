"""Word classes: learned from text, in files `word<TAB>class` like those of mkcls (Och 1999), and in place of
words."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nmt.config.settings import number
from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.io.numbers import shown
from nmt.lazy import LazyPart
from nmt.ngram.counting import SYMBOLS, Counts, CountSettings
from nmt.ngram.text_scorer import UNK, Floats, Ints

log = logging.getLogger(__name__)

WordClasses = dict[str, int]  # the class of each word
PAIRS = CountSettings(order=2)  # how n-grams are counted from which classes are learned


@dataclass
class ClassConfig:
    """How words are put into classes."""

    classes: int = number(200, least=1, help="number of word classes")
    rounds: int = number(
        15, least=1, help="most rounds, in each of which every word may move; fewer if hardly any does"
    )


def learn_classes(counts: Counts, config: ClassConfig) -> WordClasses:
    """Put the words of a text into classes by the exchange algorithm, from the counts of its bigrams. Classes
    are numbered from 1, the most frequent first. <s>, </s> and <unk> stay outside, each by itself.

    At first, words are dealt out to the classes in order of their frequency. Same counts, same classes. Fewer
    words than classes have a class each, with a warning. DataError for a text of <unk> alone."""
    words, (unigrams, pairs) = counts[0], counts[1][:2]
    size, symbols = len(words), len(SYMBOLS)
    if size == symbols:
        raise DataError(f"no words but {UNK} to put into classes")
    count = min(config.classes, size - symbols)
    if count < config.classes:
        log.warning("%d words for %d classes: each word is a class", count, config.classes)
    order = np.argsort(-unigrams.raw[symbols:], kind="stable") + symbols
    classes = np.arange(size) + count  # the symbols, which are numbered first, have the last classes
    classes[order] = np.arange(len(order)) % count
    bigrams = Bigrams(pairs.parents, pairs.keys % size, pairs.raw)
    classes = cluster(bigrams, classes, count + symbols, symbols, config.rounds)
    frequency = np.bincount(classes[symbols:], unigrams.raw[symbols:], minlength=count)
    rank = np.empty(count, np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(1, count + 1)
    return dict(zip(words[symbols:], rank[classes[symbols:]].tolist(), strict=True))


def write_classes(path: str | Path, classes: WordClasses) -> None:
    """Write the class of each word, sorted by word. UserError if that fails."""
    files.write_text(path, (f"{word}\t{classes[word]}" for word in sorted(classes)))


def read_classes(path: str | Path) -> WordClasses:
    """Read the classes of `write_classes`, or of mkcls. DataError for any other line, for a word that occurs
    twice, and for a file without words."""
    classes: WordClasses = {}
    for row, line in enumerate(files.read_lines(path), 1):
        word, tab, text = line.partition("\t")
        try:
            if not tab or files.split_words(word) != [word]:
                raise ValueError
            index = numbers.count(text)
        except ValueError as error:
            raise DataError(
                f"{path}:{row}: expected 'word<TAB>class', the class a whole number, found {shown(line)}"
            ) from error
        if word in classes:
            raise DataError(f"{path}:{row}: {shown(word)} has a class above; remove one of them")
        classes[word] = index
    if not classes:
        raise DataError(f"{path}: no words, expected lines 'word<TAB>class'")
    return classes


def class_lines(classes: WordClasses, lines: Iterable[str]) -> Iterator[str]:
    """Replace each word of tokenized lines by the number of its class, or by UNK if it has none."""
    names = {word: str(index) for word, index in classes.items()}
    for line in lines:
        yield " ".join([names.get(word, UNK) for word in files.split_words(line)])


# ---- exchange algorithm ------------------------------------------------------------------------------------
# Classes from bigrams (Kneser and Ney 1993; Martin, Liermann and Ney 1998; Och 1999), which like Brown et al.
# (1992) maximize the mutual information of classes of neighboring words.
#
# The log-likelihood of a class bigram model p(w | v) = p(class of w | class of v) p(w | class of w) is, but
# for a constant, F = Σ_cd f(N_cd) - Σ_c f(L_c) - Σ_c f(R_c), f(x) = x log x, with counts N of neighboring
# classes, L and R of classes as the first and as the second word. Each word in turn moves to the class in
# which F is greatest, until hardly any moves. Only the terms of F that a word takes part in are computed
# (Martin, Liermann and Ney 1998), over the classes that occur beside it.
#
# V words, C classes, P distinct bigrams.


ROUNDS = 8  # at most; later ones gain next to nothing
STILL_SHARE = 0.002  # share of the words that move in the last round
EQUAL = 1e-6  # gains that differ by less are rounding errors
BLOCK = 4096  # words of a compiled call; signals are handled between calls
COMPILED_MOVES = LazyPart("nmt.ngram.exchange_moves:compiled_moves")


class Bigrams(NamedTuple):
    """The distinct bigrams of a text, as word ids, with their counts."""

    first: Ints  # (P,)
    second: Ints  # (P,)
    counts: Ints  # (P,)

    @classmethod
    def of(cls, text: NDArray[np.integer], size: int) -> Self:
        """The bigrams of a text (n,) of `size` (V) different words."""
        codes, counts = np.unique(text[:-1].astype(np.int64) * size + text[1:], return_counts=True)
        return cls(codes // size, codes % size, counts)


class Neighbors(NamedTuple):
    """The words that occur on one side of each word, with counts; those of word w are the entries starts[w]
    to starts[w + 1]."""

    starts: Ints  # (V + 1,)
    words: Ints  # (P,)
    counts: Floats  # (P,)

    def by_class(self, word: int, classes: Ints, count: int) -> Floats:
        """How often a word of each class occurs next to the word, (C,), leaving out the word itself.
        `classes` (V,): the class of each word; `count`: C."""
        span = slice(self.starts[word], self.starts[word + 1])
        others, counts = self.words[span], self.counts[span]
        return sums_at(classes[others], counts * (others != word), count)


def neighbors(first: Ints, second: Ints, counts: Ints, size: int) -> Neighbors:
    """Group distinct bigrams, given by both words and their counts (P,), by their first word. `size`: V."""
    order = np.argsort(first, kind="stable")
    starts = np.searchsorted(first[order], np.arange(size + 1))
    return Neighbors(starts, second[order], counts[order].astype(np.float64))


def sums_at(index: Ints, values: NDArray[np.number], count: int) -> Floats:
    """Sum the values that share an index: (n,), (n,) -> (count,)"""
    return np.asarray(np.bincount(index, values, minlength=count), np.float64)


def f(x: Floats) -> Floats:
    """x log x of counts, with 0 log 0 = 0"""
    return np.asarray(x * np.log(np.maximum(x, 1.0)))


class WordNeighbors(NamedTuple):
    """How often each word occurs, and beside which others."""

    following: Neighbors
    preceding: Neighbors
    self_pairs: Floats  # (V,) how often it follows itself
    as_first: Floats  # (V,) occurrences as the first word of a bigram
    as_second: Floats  # (V,)

    @classmethod
    def of(cls, bigrams: Bigrams, size: int) -> Self:
        """Sum up the bigrams of a text of `size` (V) different words."""
        first, second, counts = bigrams
        self_pairs = np.zeros(size)
        self_pairs[first[first == second]] = counts[first == second]
        return cls(
            neighbors(first, second, counts, size), neighbors(second, first, counts, size), self_pairs,
            sums_at(first, counts, size), sums_at(second, counts, size),
        )  # fmt: skip


class ClassCounts(NamedTuple):
    """How often each class occurs, and before which others; the arrays change as words move."""

    sizes: Ints  # (C,) number of words
    pairs: Floats  # (C, C) how often a word of the second class follows one of the first
    left: Floats  # (C,) occurrences of its words as the first one of a bigram
    right: Floats  # (C,)


class Exchange:
    """An assignment of words to classes, and the counts that F is computed from."""

    def __init__(self, bigrams: Bigrams, classes: Ints, count: int, closed: int = 0) -> None:
        """`classes` (V,): the initial assignment; `count`: C; `closed`: how many of the last classes keep
        their words and get no others."""
        self.classes, self.count, self.open = classes.copy(), count, count - closed
        self.words = WordNeighbors.of(bigrams, len(classes))
        codes = classes[bigrams.first] * count + classes[bigrams.second]
        pairs = sums_at(codes, bigrams.counts, count * count)
        self.totals = ClassCounts(
            np.bincount(classes, minlength=count), pairs.reshape(count, count),
            sums_at(classes, self.words.as_first, count), sums_at(classes, self.words.as_second, count),
        )  # fmt: skip

    def objective(self) -> float:
        """The value of F for the current classes."""
        totals = self.totals
        return float(f(totals.pairs).sum() - f(totals.left).sum() - f(totals.right).sum())

    def beside(self, word: int) -> tuple[Floats, Floats]:
        """How often each class occurs after and before a word, leaving out the word itself: (C,), (C,)"""
        words = self.words
        return (
            words.following.by_class(word, self.classes, self.count),
            words.preceding.by_class(word, self.classes, self.count),
        )

    def put(self, word: int, index: int, following: Floats, preceding: Floats, sign: int) -> None:
        """Add the counts of a word to those of a class, or remove them if `sign` is -1. `following`,
        `preceding`: see `beside`."""
        words, totals = self.words, self.totals
        totals.pairs[index] += sign * following
        totals.pairs[:, index] += sign * preceding
        totals.pairs[index, index] += sign * words.self_pairs[word]
        totals.left[index] += sign * words.as_first[word]
        totals.right[index] += sign * words.as_second[word]
        totals.sizes[index] += sign

    def gains(self, word: int, following: Floats, preceding: Floats) -> Floats:
        """Increase of F if the word, which is in no class now, is put into each open class: (open,)"""
        words, totals = self.words, self.totals
        next_classes, previous_classes = np.flatnonzero(following), np.flatnonzero(preceding)
        rows, columns = totals.pairs[:, next_classes], totals.pairs[previous_classes]
        total = (f(rows + following[next_classes]) - f(rows)).sum(1)
        total += (f(columns.T + preceding[previous_classes]) - f(columns.T)).sum(1)
        inside = totals.pairs.diagonal()
        separate = f(inside + following) - f(inside) + f(inside + preceding) - f(inside)  # were in both sums
        joint = f(inside + following + preceding + words.self_pairs[word]) - f(inside)
        total += joint - separate
        total -= f(totals.left + words.as_first[word]) - f(totals.left)
        total -= f(totals.right + words.as_second[word]) - f(totals.right)
        return np.asarray(total[: self.open])

    def move(self, word: int) -> bool:
        """Move a word to the class in which F is greatest, the first of several; returns whether it moved. It
        stays if no other class is better, or if its class has no other word."""
        current = int(self.classes[word])
        if self.totals.sizes[current] == 1:
            return False
        following, preceding = self.beside(word)
        self.put(word, current, following, preceding, -1)
        gains = self.gains(word, following, preceding)
        highest = gains.max()
        best = current if gains[current] >= highest - EQUAL else int((gains >= highest - EQUAL).argmax())
        self.put(word, best, following, preceding, 1)
        self.classes[word] = best
        return best != current

    def move_all(self, words: Ints) -> int:
        """`move` for each of the words in turn; returns how many moved. Compiled where numba is installed."""
        compiled = COMPILED_MOVES.load()
        if not callable(compiled):
            return sum(self.move(word) for word in words.tolist())
        moved = 0
        for start in range(0, len(words), BLOCK):
            block = words[start : start + BLOCK]
            moved += compiled(block, self.words, self.totals, self.classes, self.open)
        return moved


def cluster(bigrams: Bigrams, classes: Ints, count: int, closed: int = 0, rounds: int = ROUNDS) -> Ints:
    """Improve the `count` classes (V,) of words by the exchange algorithm; returns the new classes and logs
    each round. Frequent words move first. Words without bigrams keep their class. `closed`: see `Exchange`;
    `rounds`: at most so many."""
    if not len(bigrams.counts) or count - closed < 2:
        return classes
    work = Exchange(bigrams, classes, count, closed)
    seen = work.words.as_first + work.words.as_second
    order = np.argsort(-seen, kind="stable")
    order = order[(seen[order] > 0) & (classes[order] < work.open)]
    for done in range(1, rounds + 1):
        moved = work.move_all(order)
        log.info("word classes: round %d moved %d of %d words", done, moved, len(order))
        if moved <= STILL_SHARE * len(order):
            break
    return work.classes
