"""Interpolated modified Kneser-Ney estimation (Chen and Goodman 1998), with the numbers of KenLM's lmplz.

All n-grams are held in memory as arrays, about `BYTES` bytes per word and order: a hundred million words at
order 5 take 30 GB. For larger text use lmplz, which writes the same files.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt import settings
from nmt.errors import ConfigError, DataError
from nmt.ngram.arpa import Floats, Ints, NgramModel, NgramOrder
from nmt.ngram.counting import Counted, count, finish, log10_of, numbered
from nmt.settings import number, setting

log = logging.getLogger(__name__)

BYTES = 60  # of memory, for each word and order
FALLBACK = (0.5, 1.0, 1.5)  # discounts of lmplz --discount_fallback


@dataclass
class KneserNeyConfig:
    """How a Kneser-Ney model is estimated: the options of nmt-ngram, which are those of lmplz."""

    order: int = number(
        5, least=1, most=20, help="length of the longest n-grams"
    )  # KenLM is built for up to 6
    prune: tuple[int, ...] = number(
        (0,),
        least=0,
        help="drop n-grams that occur at most N times, one N for each order; the last N holds for all longer "
        "ones",
    )
    interpolate_unigrams: bool = setting(
        True, help="unigrams share mass with all words, <unk> included; else <unk> alone gets it, as in SRILM"
    )
    discount_fallback: tuple[float, ...] = number(
        (),
        least=0,
        most=3,
        help="discounts D1, D2, D3+ where there is too little text for them; without D: 0.5 1 1.5",
    )
    skip_symbols: bool = setting(False, help="remove <s> and </s> from the text instead of refusing it")

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
                f"--prune {' '.join(map(str, self.prune))}: expected at most {self.order} non-decreasing "
                "numbers, the first of them 0"
            )
        if self.discount_fallback and (
            len(self.discount_fallback) != 3
            or any(not 0 <= d <= k for k, d in enumerate(self.discount_fallback, 1))
        ):
            raise ConfigError("--discount-fallback: expected three discounts, at most 1, 2 and 3")

    def threshold(self, n: int) -> int:
        """n-grams of this order that occur at most this often are dropped."""
        return self.prune[min(n, len(self.prune)) - 1]


def estimate(sentences: Iterable[Sequence[str]], config: KneserNeyConfig) -> NgramModel:
    """The model of some sentences. DataError for an empty corpus, or one too small to have discounts."""
    config.check()
    text = numbered(sentences, config.skip_symbols)
    return made(text.words, count(text, config.order), config)


def made(vocabulary: list[str], counted: list[Counted], config: KneserNeyConfig) -> NgramModel:
    """The model of counts. DataError for too few to have discounts."""
    levels: list[NgramOrder] = []
    gammas: list[Floats] = []
    rows: list[Ints] = []  # of each order, the n-grams that are not pruned
    lower = np.zeros(0)
    for n, here in enumerate(counted, 1):
        adjusted = adjust(here, counted[n] if n < config.order else None)
        words = np.ones(len(adjusted), bool)
        if n == 1:
            words[:2] = adjusted[0] > 0, False  # <s> follows nothing; <unk> only where the text has it
            adjusted[~words] = 0
        discounts = discounts_of(adjusted[words], n, config.discount_fallback)
        kept = (here.raw > config.threshold(n)) | (n == 1)
        probs, gamma, lower = interpolate(here, adjusted, discounts, kept, lower, n, len(vocabulary), config)
        gammas.append(gamma)
        log10 = log10_of(probs)
        if n == 1:
            log10[1] = 0.0  # <s>, as lmplz writes it
        levels.append(NgramOrder(keys=here.keys, log10=log10, backoff=np.zeros(len(log10))))
        rows.append(np.flatnonzero(kept))
    return finish(vocabulary, levels, gammas, rows)


def adjust(here: Counted, above: Counted | None) -> Ints:
    """Adjusted counts, (M,): of the highest order how often an n-gram occurs; of others after how many
    different words, or how often where nothing can precede it."""
    if above is None:
        return here.raw.copy()
    return np.where(here.begins, here.raw, np.bincount(above.suffix, minlength=len(here.raw)))


def discounts_of(counts: Ints, n: int, fallback: Sequence[float]) -> Floats:
    """0, D1, D2 and D3+ from the counts of counts. DataError where these are too few, unless there is a
    fallback."""
    t = [int(np.count_nonzero(counts == k)) for k in range(5)]
    if all(t[1:4]):
        y = t[1] / (t[1] + 2 * t[2])
        found = [k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3)]
        if all(0 <= d <= k for k, d in enumerate(found, 1)):
            return np.array([0.0, *found])
        problem = f"discounts of {n}-grams are out of range ({', '.join(f'{d:.3g}' for d in found)})"
    else:
        missing = ("once", "twice", "three times")[[bool(k) for k in t[1:4]].index(False)]
        problem = f"no {n}-gram occurs {missing}, which discounts need"
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
    """p of each n-gram, (M,), the weight of the lower order after each context, and p of all n-grams, pruned
    ones included.

    p(w | h) = (a(hw) - D) / Σ a(h·) + γ(h) p(w | h'), where γ(h) is what the discounts and the pruned n-grams
    leave.
    """
    parent = here.parents
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
