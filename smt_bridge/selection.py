"""Data selection by cross-entropy difference (Moore and Lewis 2010; for parallel text Axelrod et al. 2011).

A line is like the in-domain text when H_in(line) - H_general(line) is low: cross-entropies a word, natural
logarithm, end symbol counted, by n-gram models of like size. Of parallel text the differences of both sides
are added.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.lm import kneser_ney
from nmt.lm.arpa import UNK, NgramModel
from nmt.lm.kneser_ney import FALLBACK, KneserNeyConfig
from smt_bridge.config import SelectionConfig

BLOCK = 20000  # lines scored together
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class Side:
    """One language: the two models that are compared, and the words both know."""

    known: frozenset[str]
    inside: NgramModel
    general: NgramModel

    def read(self, line: str) -> list[str]:
        return [word if word in self.known else UNK for word in files.split_words(line)]

    def differences(self, lines: Sequence[str]) -> Floats:
        """H_in - H_general of each line, inf for an empty one: (n,)"""
        texts = [self.read(line) for line in lines]
        inside, general = (
            np.array([scores.sum() for scores in model.scores(texts)])
            for model in (self.inside, self.general)
        )
        lengths = np.array([len(text) + 1 for text in texts])
        return np.where(lengths > 1, (general - inside) / lengths, np.inf)


def learn(inside: str, general: str, config: SelectionConfig) -> Side:
    """The two models of a language. DataError for text without words."""
    counts = Counter(word for line in files.read_lines(inside) for word in files.split_words(line))
    words = sum(counts.values())
    known = frozenset(word for word, count in counts.items() if count >= config.min_count)
    if not known:
        raise DataError(
            f"{inside}: no word occurs {config.min_count} times; a larger sample of the domain is needed"
        )
    side = Side(known, *[NgramModel([UNK, "<s>", "</s>"], [])] * 2)
    settings = KneserNeyConfig(config.order, discount_fallback=FALLBACK)
    side.inside = kneser_ney.estimate(map(side.read, files.read_lines(inside)), settings)
    side.general = kneser_ney.estimate(map(side.read, sample(general, words, config.seed)), settings)
    return side


def sample(path: str, words: int, seed: int) -> list[str]:
    """Lines drawn at random, about so many words in all, in one pass over the file; all of them where there
    are not more.

    Each line gets a random number; those with the lowest numbers are kept as long as there is room.
    """
    lengths = np.fromiter((len(files.split_words(line)) for line in files.read_lines(path)), np.int64)
    order = np.random.default_rng(seed).permutation(len(lengths))
    kept = np.zeros(len(lengths), bool)
    kept[order[: int(np.searchsorted(np.cumsum(lengths[order]), words)) + 1]] = True
    return [line for line, keep in zip(files.read_lines(path), kept, strict=True) if keep]


def scores(
    sides: Sequence[Side], paths: Sequence[str], progress: Callable[[int], None] = lambda count: None
) -> Floats:
    """The difference of each line of the general text, of parallel text the sum over its sides: 8 bytes a
    line are held."""
    found = []
    for block in blocks(files.parallel(*paths)):
        found.append(
            sum(side.differences(lines) for side, lines in zip(sides, zip(*block, strict=True), strict=True))
        )
        progress(len(block))
    return np.concatenate(found) if found else np.zeros(0)


def blocks(rows: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    rows = iter(rows)
    while block := list(islice(rows, BLOCK)):
        yield block


def best(values: Floats, count: int) -> Ints:
    """The lines of the lowest differences, at most `count`, best first; equal ones in the order of the text,
    empty lines never."""
    order = np.argsort(values, kind="stable")[:count]
    return order[np.isfinite(values[order])]


def within(values: Floats, lengths: Ints, words: int) -> Ints:
    """The best lines that have so many words together: as `best`."""
    order = best(values, len(values))
    return order[: int(np.searchsorted(np.cumsum(lengths[order]), words, side="right"))]


@dataclass
class Trial:
    """A size that was tried: a model of so many of the best lines, and what it makes of the development
    text."""

    lines: int
    perplexity: float


def search_size(side: Side, path: str, dev: str, order: Ints, config: SelectionConfig) -> list[Trial]:
    """A model of the best lines, of a half, a quarter ... of them: the development text's perplexity by each,
    largest first."""
    texts = [side.read(line) for line in files.read_lines(dev)]
    if not any(texts):
        raise DataError(f"{dev}: no words, expected a development text of the domain")
    trials = []
    for step in range(config.steps):
        count = len(order) >> step
        if not count:
            break
        kept = np.zeros(int(order.max()) + 1, bool)
        kept[order[:count]] = True
        lines = (line for line, keep in zip(files.read_lines(path), kept, strict=False) if keep)
        model = kneser_ney.estimate(
            map(side.read, lines), KneserNeyConfig(config.order, discount_fallback=FALLBACK)
        )
        found = model.scores(texts)
        trials.append(
            Trial(count, math.exp(-sum(float(part.sum()) for part in found) / sum(map(len, found))))
        )
    return trials


def check(inside: Sequence[str], general: Sequence[str], outputs: Sequence[str]) -> None:
    """ConfigError unless all have as many sides."""
    if not len(inside) == len(general) == len(outputs) or len(inside) > 2:
        raise ConfigError(
            "--in-domain, --general and --output: expected one file each, or two each for parallel text, "
            f"found {len(inside)}, {len(general)} and {len(outputs)}"
        )
