"""Data selection by cross-entropy difference (Moore and Lewis 2010; for parallel text Axelrod et al. 2011).

A line resembles the text of the domain if H_in(line) - H_general(line) is low: cross-entropies per word of
n-gram models of similar size, in natural logarithms and including the end symbol. For parallel text the
differences of both sides are added.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.ngram import estimators
from nmt.ngram.count_models import NgramModel
from nmt.ngram.estimators import FALLBACK_DISCOUNTS, KneserNeyConfig
from nmt.ngram.selection_config import SelectionConfig
from nmt.ngram.text_scorer import UNK, Floats, Ints

BLOCK = 20000  # lines scored together


@dataclass
class Side:
    """The in-domain and the general model of one language, and the vocabulary of both."""

    vocabulary: frozenset[str]
    in_domain: NgramModel
    general: NgramModel

    def read(self, line: str) -> list[str]:
        """Split a line into words; those outside the vocabulary become <unk>."""
        return known_words(line, self.vocabulary)

    def differences(self, lines: Sequence[str]) -> Floats:
        """Cross-entropy difference H_in - H_general of each line, per word; inf for an empty line: (n,)"""
        texts = [self.read(line) for line in lines]
        in_domain, general = (
            np.array([scores.sum() for scores in model.scores(texts)])
            for model in (self.in_domain, self.general)
        )
        lengths = np.array([len(text) + 1 for text in texts])
        return np.where(lengths > 1, (general - in_domain) / lengths, np.inf)


def known_words(line: str, vocabulary: frozenset[str]) -> list[str]:
    """Split a line into words; those outside the vocabulary become UNK."""
    return [word if word in vocabulary else UNK for word in files.split_words(line)]


def learn(in_domain: str, general: str, config: SelectionConfig) -> Side:
    """Estimate the two models of a language on the file `in_domain` and on a sample of the file `general`.
    DataError for bad or empty text, and for in-domain text without frequent words."""
    return estimate(in_domain, general_sample(in_domain, general, config), config)


def general_sample(in_domain: str, general: str, config: SelectionConfig) -> list[str]:
    """Sample lines of the general text, with about as many words as the in-domain text. DataError for bad
    text, and for general text without words."""
    words = sum(len(files.split_words(line)) for line in files.read_lines(in_domain))
    return sample(general, words, config.seed)


def estimate(in_domain: str, general: Iterable[str], config: SelectionConfig) -> Side:
    """Estimate the two models on the file `in_domain` and general lines. Errors as from `learn`."""
    counts = Counter(word for line in files.read_lines(in_domain) for word in files.split_words(line))
    vocabulary = frozenset(word for word, count in counts.items() if count >= config.min_count)
    if not vocabulary:
        raise DataError(
            f"{in_domain}: no word occurs {config.min_count} times; a larger sample of the domain is needed"
        )
    settings = KneserNeyConfig(order=config.order, discount_fallback=FALLBACK_DISCOUNTS)
    models = [
        estimators.estimate_kneser_ney((known_words(line, vocabulary) for line in text), settings)
        for text in (files.read_lines(in_domain), general)
    ]
    return Side(vocabulary, *models)


def lengths(path: str) -> Ints:
    """The number of words of each line of a file: (n,). DataError for bad text."""
    return np.fromiter((len(files.split_words(line)) for line in files.read_lines(path)), np.int64)


def sample(path: str, words: int, seed: int) -> list[str]:
    """Sample lines at random, with about `words` words in total, in the order of the file; all lines if the
    file has fewer words. DataError for bad text, and for a file without words."""
    counts = lengths(path)
    if not counts.any():
        raise DataError(f"{path}: no words, expected general text")
    order = np.random.default_rng(seed).permutation(len(counts))
    sampled = np.zeros(len(counts), bool)
    sampled[order[: int(np.searchsorted(np.cumsum(counts[order]), words)) + 1]] = True
    return [line for line, keep in zip(files.read_lines(path), sampled, strict=True) if keep]


def scores(
    sides: Sequence[Side], paths: Sequence[str], progress: Callable[[int], None] = lambda count: None
) -> Floats:
    """Cross-entropy difference of each line of the general text `paths`, summed over both sides of parallel
    text: (n,). `progress` is called with the number of lines of each block. DataError as from
    `files.parallel`."""
    differences_by_block = []
    for block in blocks(files.parallel(*paths)):
        differences_by_block.append(differences(sides, block))
        progress(len(block))
    return np.concatenate(differences_by_block) if differences_by_block else np.zeros(0)


def differences(sides: Sequence[Side], rows: Sequence[tuple[str, ...]]) -> Floats:
    """Sum the differences over both sides of each pair of lines: (n,)"""
    columns = zip(*rows, strict=True)
    parts = [side.differences(lines) for side, lines in zip(sides, columns, strict=True)]
    return np.sum(parts, 0) if len(parts) > 1 else parts[0]


def concatenate(parts: Iterable[Sequence[str]]) -> Floats:
    """Parse the differences of all blocks, which were written as text in full precision: (n,)"""
    return np.array([float(value) for part in parts for value in part], np.float64)


def blocks(rows: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Group rows into blocks of BLOCK."""
    rows = iter(rows)
    while block := list(islice(rows, BLOCK)):
        yield block


def best(values: Floats, count: int) -> Ints:
    """Indices of the lines with the lowest differences, at most `count`, best first; ties in the order of the
    text. Empty lines are never selected."""
    order = np.argsort(values, kind="stable")[:count]
    return order[np.isfinite(values[order])]


def within(values: Floats, counts: Ints, words: int) -> Ints:
    """Indices of the best lines, as by `best`, of at most `words` words. `counts`: the words of each line."""
    order = best(values, len(values))
    return order[: int(np.searchsorted(np.cumsum(counts[order]), words, side="right"))]


@dataclass
class Trial:
    """Perplexity of the development text under a model of this many of the best lines."""

    lines: int
    perplexity: float


def search_size(side: Side, path: str, dev: str, order: Ints, config: SelectionConfig) -> list[Trial]:
    """Estimate models from all lines of `path` in `order`, from the best half, the best quarter ... of them,
    at most `config.steps` models; returns their perplexities on the development text `dev`. `path`: general
    text in the language of `side`; `order`: its line indices, best first. DataError for bad text, and if
    `dev` has no words."""
    texts = [side.read(line) for line in files.read_lines(dev)]
    if not any(texts):
        raise DataError(f"{dev}: no words, expected a development text of the domain")
    trials = []
    for step in range(config.steps):
        count = len(order) >> step
        if not count:
            break
        selected = np.zeros(int(order.max()) + 1, bool)
        selected[order[:count]] = True
        lines = (line for line, keep in zip(files.read_lines(path), selected, strict=False) if keep)
        settings = KneserNeyConfig(order=config.order, discount_fallback=FALLBACK_DISCOUNTS)
        log_probs = estimators.estimate_kneser_ney(map(side.read, lines), settings).scores(texts)
        perplexity = math.exp(-sum(float(part.sum()) for part in log_probs) / sum(map(len, log_probs)))
        trials.append(Trial(lines=count, perplexity=perplexity))
    return trials


def write(inputs: Sequence[str], outputs: Sequence[str], order: Ints) -> None:
    """Write the selected lines of each side, in the order of the text; each file is written completely or not
    at all. `order`: line indices, in any order. UserError if a file cannot be written."""
    selected = np.zeros(int(order.max(initial=-1)) + 1, bool)
    selected[order] = True
    rows = zip(files.parallel(*inputs), selected, strict=False)
    files.write_parallel(outputs, (row for row, keep in rows if keep))


def check(in_domain: Sequence[str], general: Sequence[str], outputs: Sequence[str]) -> None:
    """ConfigError unless all arguments have one file, or all have two."""
    if not len(in_domain) == len(general) == len(outputs) or len(in_domain) > 2:
        raise ConfigError(
            "--in-domain, --general and --output: expected one file each, or two each for parallel text, "
            f"found {len(in_domain)}, {len(general)} and {len(outputs)}"
        )
