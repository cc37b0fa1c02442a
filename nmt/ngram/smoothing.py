"""Other estimates from counts than Kneser-Ney's: Katz back-off, stupid back-off, add-k. All of them are
written as ARPA files.

c counts, h a context, h' the context without its first word, V words that can follow (with <unk> and </s>,
without <s>). Arrays are of the M n-grams of one length."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nmt import settings
from nmt.errors import DataError
from nmt.ngram.arpa import Floats, Ints, NgramModel, NgramOrder
from nmt.ngram.counting import Counted, count, finish, log10_of, numbered
from nmt.ngram.kneser_ney import FALLBACK, KneserNeyConfig
from nmt.settings import number

log = logging.getLogger(__name__)

NOTHING = 1e-12  # mass below which a context leaves nothing to its lower order
BOS_ID = 1


@dataclass
class SmoothingConfig(KneserNeyConfig):
    """How a model is estimated: what all estimators have in common, and the options of these."""

    katz_cutoff: int = number(5, least=2, most=100, help="katz: counts above this are not discounted")
    backoff_factor: float = number(
        0.4, above=0, most=1, help="stupid-backoff: factor of each step to a shorter context"
    )
    add: float = number(1.0, above=0, help="add-k: what is added to each count; 1 is Laplace's rule")


@dataclass
class Estimate:
    """log10 p of each n-gram, order by order, and the weight of the lower order after each context of one
    word less."""

    log10: list[Floats]
    gammas: list[Floats]


Estimator = Callable[[list[Counted], SmoothingConfig], Estimate]


def estimate(sentences: Iterable[Sequence[str]], config: SmoothingConfig, kind: str) -> NgramModel:
    """The model of some sentences by one of ESTIMATORS. DataError for an empty corpus, or one too small for
    Good-Turing's discounts."""
    settings.check(config, "--")
    text = numbered(sentences, config.skip_symbols)
    return made(text.words, count(text, config.order), config, kind)


def made(vocabulary: list[str], counted: list[Counted], config: SmoothingConfig, kind: str) -> NgramModel:
    """The model of counts."""
    found = ESTIMATORS[kind](counted, config)
    found.log10[0][BOS_ID] = 0.0  # <s>, as lmplz writes it
    levels = [
        NgramOrder(keys=here.keys, log10=log10, backoff=np.zeros(len(log10)))
        for here, log10 in zip(counted, found.log10, strict=True)
    ]
    rows = [np.arange(len(here.keys)) for here in counted]
    return finish(vocabulary, levels, found.gammas, rows)


def counts_of(here: Counted, n: int) -> tuple[Ints, Ints, Floats]:
    """The counts of the n-grams (M,), their contexts as nodes of the order below (M,), and c(h ·) of each
    context. <s> follows nothing, so that its unigram counts 0."""
    raw = here.raw.copy()
    if n == 1:
        raw[BOS_ID] = 0
    parent = here.parents
    return raw, parent, np.bincount(parent, raw).astype(np.float64)


# ---- Katz --------------------------------------------------------------------------------------------------


def katz(counted: list[Counted], config: SmoothingConfig) -> Estimate:
    """Back-off by Katz (1987): p(w | h) = d c(hw) / c(h) of an n-gram that was seen, α(h) p(w | h') of
    others, where α(h) makes the sum 1. d is Good-Turing's discount of counts up to `katz_cutoff`. A context
    whose counts are all above it counts one word more than it has, as in SRILM, so that something is left.
    What the unigrams leave is that of <unk>."""
    found, lower = Estimate([], []), np.zeros(0)
    for n, here in enumerate(counted, 1):
        raw, parent, total = counts_of(here, n)
        probs = discounted(raw, n, config) / total[parent]
        seen = np.bincount(parent, probs)
        probs *= np.where(seen > 1 - NOTHING, total / (total + 1), 1.0)[parent]
        seen = np.bincount(parent, probs)
        if n == 1:
            probs[0] += 1 - seen[0]
            found.gammas.append(np.zeros(1))
        else:
            left = 1 - np.bincount(parent, lower[here.suffix])  # of the lower order, for words not seen here
            none = left < NOTHING
            probs /= np.where(none, seen, 1.0)[parent]
            found.gammas.append(np.where(none, 0.0, (1 - seen) / np.where(none, 1.0, left)))
        found.log10.append(log10_of(probs))
        lower = probs
    return found


def discounted(counts: Ints, n: int, config: SmoothingConfig) -> Floats:
    """Counts less what Good-Turing's estimate takes from them, or with --discount-fallback, where there is
    too little text, less absolute discounts."""
    occurring, kept = counts[counts > 0], counts.astype(np.float64)
    if not len(occurring):
        return kept
    for cutoff in range(config.katz_cutoff, 1, -1):
        factors = good_turing(occurring, cutoff)
        if factors is not None:
            if cutoff < config.katz_cutoff:
                log.warning("%d-grams: counts above %d are not discounted", n, cutoff)
            return kept * factors[np.minimum(counts, cutoff + 1)]
    if not config.discount_fallback:
        if n == 1:  # a vocabulary without rare words
            log.warning("1-grams: counts are not discounted, too few words are rare")
            return kept
        raise DataError(
            f"too little text for Good-Turing's discounts of {n}-grams; --discount-fallback subtracts "
            f"{', '.join(map(str, FALLBACK))} instead, --estimator add-k needs none"
        )
    log.warning("%d-grams: subtracting %s", n, ", ".join(f"{d:g}" for d in config.discount_fallback))
    taken: Floats = np.array([0.0, *config.discount_fallback])
    return kept - taken[np.minimum(counts, 3)]


def good_turing(counts: Ints, cutoff: int) -> Floats | None:
    """Discount factors of the counts 0 .. cutoff + 1, the last one 1, or None where they are not between 0
    and 1:  d_r = (r* / r - A) / (1 - A),  r* = (r + 1) t_{r+1} / t_r,  A = (cutoff + 1) t_{cutoff+1} / t_1,
    where t_r n-grams occur r times."""
    t = np.bincount(np.minimum(counts, cutoff + 2), minlength=cutoff + 3).astype(np.float64)
    if not t[1 : cutoff + 2].all():
        return None
    r = np.arange(1, cutoff + 1)
    above = (cutoff + 1) * t[cutoff + 1] / t[1]
    if above == 1:
        return None
    factors = ((r + 1) * t[r + 1] / t[r] / r - above) / (1 - above)
    found: Floats = np.array([1.0, *factors, 1.0])
    return found if ((found > 0) & (found <= 1)).all() else None


# ---- without discounts -------------------------------------------------------------------------------------


def stupid_backoff(counted: list[Counted], config: SmoothingConfig) -> Estimate:
    """Scores of Brants et al. (2007): c(hw) / c(h) of an n-gram that was seen, else `backoff_factor` times
    the score after h'. They do not sum to 1. A context that the text does not have costs nothing, since ARPA
    files have no weight for it; the unknown word has p = 0 unless the text has it."""
    found = Estimate([], [np.zeros(1)])
    for n, here in enumerate(counted, 1):
        raw, parent, total = counts_of(here, n)
        found.log10.append(log10_of(raw / total[parent]))
        found.gammas.append(np.full(len(raw), config.backoff_factor))
    return found


def add_k(counted: list[Counted], config: SmoothingConfig) -> Estimate:
    """p(w | h) = (c(hw) + k) / (c(h) + k V), of the highest order alone, or of the order that fits behind the
    beginning of a sentence. Unseen n-grams back off to 1 / V with weight k V / (c(h) + k V), which is the
    same rule, so that shorter n-grams are all written as 1 / V."""
    V, order = len(counted[0].keys) - 1, len(counted)
    found = Estimate([], [np.zeros(1)])
    contexts_count = np.zeros(1, bool)  # is a context of the order below one that words are predicted from?
    for n, here in enumerate(counted, 1):
        raw, parent, total = counts_of(here, n)
        full = contexts_count if n > 1 else np.array([order == 1])
        probs = np.where(full[parent], (raw + config.add) / (total + config.add * V)[parent], 1 / V)
        if n > 1:
            weight = config.add * V / (total + config.add * V)
            found.gammas.append(np.where(full[: len(weight)], weight, 1.0))
        found.log10.append(log10_of(probs))
        contexts_count = here.begins | (n == order - 1)
    return found


ESTIMATORS: dict[str, Estimator] = {"katz": katz, "stupid-backoff": stupid_backoff, "add-k": add_k}
