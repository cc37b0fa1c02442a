"""Interpolated modified Kneser-Ney estimation (Chen and Goodman 1998), the same numbers as KenLM's lmplz.

All n-grams are held in memory as arrays, about `BYTES` bytes a word and order: a hundred million words of
order 5 take 30 GB. For larger text use lmplz, whose files are the same.
"""

import logging
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt import settings
from nmt.errors import ConfigError, DataError
from nmt.lm.arpa import BOS, EOS, UNK, Floats, Ints, Level, NgramModel, trimmed
from nmt.settings import number

log = logging.getLogger(__name__)

BYTES = 60
FALLBACK = (0.5, 1.0, 1.5)
MINUS_ALL = -99.0  # log10 p of what can never follow


@dataclass
class KneserNeyConfig:
    order: int = number(5, least=1, most=20)  # KenLM itself is built for at most 6 unless told otherwise
    prune: tuple[int, ...] = number(
        (0,),
        least=0,
        # n-grams that occur at most so often are left out, for each order; the last value holds for all
        # longer
        # ones
    )
    interpolate_unigrams: bool = (
        True  # unigrams share mass with all words, <unk> among them; else <unk> alone gets it, as SRILM does
    )
    discount_fallback: tuple[float, ...] = number(
        (), least=0, most=3
    )  # D1, D2, D3+ for orders with too little text to tell; empty: an error
    skip_symbols: bool = False  # leave <s> and </s> out of the text instead of refusing it

    def check(self) -> None:
        """ConfigError for a value out of range."""
        settings.check(self, "--")
        if (
            not self.prune
            or self.prune[0] != 0
            or list(self.prune) != sorted(self.prune)
            or len(self.prune) > self.order
        ):
            raise ConfigError(
                f"--prune {' '.join(map(str, self.prune))}: expected at most {self.order} numbers that "
                "never "
                "fall, the first of them 0"
            )
        if self.discount_fallback and (
            len(self.discount_fallback) != 3
            or any(not 0 <= d <= k for k, d in enumerate(self.discount_fallback, 1))
        ):
            raise ConfigError("--discount-fallback: expected three discounts, at most 1, 2 and 3")

    def threshold(self, n: int) -> int:
        return self.prune[min(n, len(self.prune)) - 1]


@dataclass
class Text:
    """A corpus as numbers: `<s> words </s>` of every sentence, one after the other."""

    words: list[str]  # <unk>, <s>, </s>, then in order of appearance
    ids: NDArray[np.int32]  # (N,)


@dataclass
class Counted:
    """The n-grams of one length: M of them, in order of their keys."""

    keys: Ints  # parent * V + last word
    raw: Ints  # how often
    suffix: Ints  # all words but the first, as a node of the level below
    begins: NDArray[np.bool_]  # is <s> its first word?


def estimate(sentences: Iterable[Sequence[str]], config: KneserNeyConfig) -> NgramModel:
    """The model of some sentences. DataError for an empty corpus, or one too small to have discounts."""
    config.check()
    text = numbered(sentences, config.skip_symbols)
    counted = count(text, config.order)
    levels: list[Level] = []
    gammas: list[Floats] = []
    rows: list[Ints] = []  # of each level, the n-grams that are not pruned
    lower = np.zeros(0)
    for n, here in enumerate(counted, 1):
        adjusted = adjust(here, counted[n] if n < config.order else None)
        words = np.ones(len(adjusted), bool)
        if n == 1:
            words[:2] = adjusted[0] > 0, False  # <s> follows nothing; <unk> only where the text has it
            adjusted[~words] = 0
        discounts = discounts_of(adjusted[words], n, config.discount_fallback)
        kept = (here.raw > config.threshold(n)) | (n == 1)
        probs, gamma, lower = interpolate(here, adjusted, discounts, kept, lower, n, len(text.words), config)
        gammas.append(gamma)
        with np.errstate(divide="ignore"):
            log10 = np.where(probs > 0, np.log10(probs), MINUS_ALL)
        if n == 1:
            log10[1] = 0.0  # <s>, as lmplz writes it
        levels.append(Level(here.keys, log10, np.zeros(len(log10))))
        rows.append(np.flatnonzero(kept))
    return finish(text.words, levels, gammas, rows)


def numbered(sentences: Iterable[Sequence[str]], skip_symbols: bool = False) -> Text:
    """Words to numbers. A word <unk> is the unknown word; <s> and </s> in a sentence are an error, or left
    out."""
    numbers = {UNK: 0, BOS: 1, EOS: 2}
    ids = array("i")
    for line, words in enumerate(sentences, 1):
        if BOS in words or EOS in words:
            if not skip_symbols:
                raise DataError(
                    f"line {line}: the text contains {BOS if BOS in words else EOS}, which stands for its "
                    "edges; remove it, or use --skip-symbols"
                )
            words = [word for word in words if word not in (BOS, EOS)]
        ids.append(1)
        ids.extend([numbers.setdefault(word, len(numbers)) for word in words])
        ids.append(2)
    if not len(numbers) > 3 and 0 not in ids:
        raise DataError("no words to estimate a language model from")
    return Text(list(numbers), np.frombuffer(ids, np.int32))


def count(text: Text, order: int) -> list[Counted]:
    """The n-grams of every length, in no sentence across its edges."""
    V, N = len(text.words), len(text.ids)
    words = text.ids.astype(np.int64)
    place = np.arange(N) - np.maximum.accumulate(
        np.where(words == 1, np.arange(N), 0)
    )  # in its sentence, <s> at 0
    levels = [
        Counted(np.arange(V), np.bincount(words, minlength=V), np.zeros(V, np.int64), np.arange(V) == 1)
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
        levels.append(Counted(keys, raw, suffix, levels[-1].begins[keys // V]))
    return levels


def adjust(here: Counted, above: Counted | None) -> Ints:
    """Of the highest order how often; of others after how many different words, or how often where nothing
    can stand before: (M,)"""
    if above is None:
        return here.raw.copy()
    return np.where(here.begins, here.raw, np.bincount(above.suffix, minlength=len(here.raw)))


def discounts_of(counts: Ints, n: int, fallback: Sequence[float]) -> Floats:
    """0, D1, D2 and D3+ from the counts of counts. DataError where there are too few to tell, unless there is
    a fallback."""
    t = [int(np.count_nonzero(counts == k)) for k in range(5)]
    if all(t[1:4]):
        y = t[1] / (t[1] + 2 * t[2])
        found = [k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3)]
        if all(0 <= d <= k for k, d in enumerate(found, 1)):
            return np.array([0.0, *found])
        problem = f"discounts of {n}-grams are out of range ({', '.join(f'{d:.3g}' for d in found)})"
    else:
        problem = (
            f"no {n}-gram occurs "
            f"{('once', 'twice', 'three times')[[bool(k) for k in t[1:4]].index(False)]}, which discounts "
            "need"
        )
    if not fallback:
        raise DataError(
            f"too little text: {problem}; --discount-fallback takes {', '.join(map(str, FALLBACK))} instead"
        )
    log.warning("%s: taking %s", problem, ", ".join(f"{d:g}" for d in fallback))
    return np.array([0.0, *fallback])


def interpolate(
    here: Counted,
    adjusted: Ints,
    discounts: Floats,
    kept: NDArray[np.bool_],
    lower: Floats,
    n: int,
    V: int,
    config: KneserNeyConfig,
) -> tuple[Floats, Floats, Floats]:
    """p of each n-gram, (M,), the weight of the lower order after each of its contexts, and p of all, the
    pruned ones too.

    p(w | h) = (a(hw) - D) / Σ a(h·) + γ(h) p(w | h'), where γ(h) is what the discounts and the pruned n-grams
    leave.
    """
    parent = here.keys // V if n > 1 else np.zeros(V, np.int64)
    contexts = int(parent.max(initial=-1)) + 1
    taken = np.where(kept, discounts[np.minimum(adjusted, 3)], adjusted)
    total = np.maximum(np.bincount(parent, adjusted, contexts), 1)
    gamma = np.bincount(parent, taken, contexts) / total
    if n > 1:
        below = lower[here.suffix]
    else:
        below = (
            np.where(np.arange(V) == 1, 0.0, 1 / (V - 1))
            if config.interpolate_unigrams
            else np.where(np.arange(V) == 0, 1.0, 0.0)
        )
    probs = (adjusted - taken) / total[parent] + gamma[parent] * below
    return probs, gamma, probs


def finish(words: list[str], levels: list[Level], gammas: list[Floats], rows: list[Ints]) -> NgramModel:
    """Back-off weights to the contexts they belong to; of each level only the given rows stay."""
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
        model.levels.append(Level(keys, level.log10[kept], level.backoff[kept]))
    return trimmed(model)
