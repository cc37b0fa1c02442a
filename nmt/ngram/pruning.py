"""Entropy pruning of back-off models (Stolcke 1998): removes n-grams that change the model little.

p(w | h) is the probability of an n-gram hw, h' its context h without the first word, α(h) the back-off
weight of the context. Without the n-gram, the model gives w the probability α2(h) p(w | h'), where α2(h) is
the weight that makes all probabilities after h sum to 1 again. The relative entropy of the two models is

    D = -p(h) { p(w | h) [ln p(w | h') + ln α2(h) - ln p(w | h)] + r(h) [ln α2(h) - ln α(h)] }

with r(h) = 1 - Σ p(w | h) over the n-grams of the context; p(h) is the product of the probabilities of its
words. The perplexity rises by the factor e^D. The shorter n-grams of a Kneser-Ney model are estimated for
backing off and do not give p(h) of a text (Chelba et al. 2010), so that p(h) may come from another model.

M n-grams of one length, C n-grams of the length below (contexts). Arrays hold log10, as ARPA files do.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.ngram.count_models import NgramModel, keep_ngrams
from nmt.ngram.text_scorer import LN10, Floats, Ints, NgramTextScorer

LEAST_MASS = 1e-7  # of words without an n-gram: below, it is mostly the rounding of the file's digits
MOST_DIFFERENCE = 0.01  # of a sum of probabilities and 1, in a model that can be pruned


@dataclass
class BackoffMasses:
    """The probability mass that the n-grams of one length leave to other words after each context: (C,)"""

    own: Floats  # r(h) = 1 - Σ p(w | h)
    lower: Floats  # 1 - Σ p(w | h'), over the same words

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Whether the back-off weight of a context, own / lower, can be computed."""
        return (self.own > LEAST_MASS) & (self.lower > LEAST_MASS)


def prune_by_entropy(
    model: NgramModel, threshold: float, history: NgramTextScorer | None = None
) -> NgramModel:
    """Remove the n-grams of two words and more without which the perplexity rises by less than `threshold`
    (0.01: by 1%), each judged alone, and compute the back-off weights anew. All unigrams stay, and n-grams
    with which a retained longer one begins. A threshold of 0 returns the model itself. DataError for a model
    whose probabilities do not sum to 1 after each context.

    `history`: model that gives p(h); by default the model itself.
    """
    if not threshold:
        return model
    suffixes, histories = suffix_nodes(model), history_log10(model, history)
    retained = [np.ones(len(level.keys), bool) for level in model.levels]
    needed = np.zeros(len(model.levels[-1].keys), bool)  # n-grams with which longer ones begin
    for n in range(model.order, 1, -1):
        increase = perplexity_increase(model, n, suffixes[n - 1], histories[n - 2])
        retained[n - 1] = needed | (increase >= threshold)
        needed = np.zeros(len(model.levels[n - 2].keys), bool)
        needed[model.levels[n - 1].keys[retained[n - 1]] // len(model.words)] = True
    return recompute_backoffs(keep_ngrams(model, retained))


def history_log10(model: NgramModel, history: NgramTextScorer | None) -> list[Floats]:
    """log10 p of the n-grams of each order but the highest, as products of the probabilities of their words
    in the model `history`, by default the model itself: (M,) each. <s> counts as often as </s>."""
    numbers = np.array(history.encode(model.words) if history else [], np.int64)
    histories: list[Floats] = []
    for n, level in enumerate(model.levels[:-1], 1):
        if history is None:
            of_last = level.log10.copy()
        else:
            of_last = history.last_scores(numbers[model.grams(n)]) / LN10
        if n == 1:
            of_last[model.begin] = of_last[model.end]
        else:
            of_last += histories[-1][level.keys // len(model.words)]
        histories.append(of_last)
    return histories


def perplexity_increase(model: NgramModel, n: int, suffix: Ints, history: Floats) -> Floats:
    """The relative increase of perplexity, e^D - 1, if one n-gram of order n is removed: (M,); infinity where
    words without an n-gram have no probability after the context.

    `suffix`: see `suffix_nodes`; `history` (C,): log10 p of the contexts. DataError as from `check_sums`.
    """
    lower = lower_log10(model, n, suffix)
    masses = backoff_masses(model, n, lower)
    check_sums(model, n, masses)
    contexts = model.levels[n - 1].keys // len(model.words)
    own, defined = masses.own[contexts], masses.defined[contexts]
    log_p = LN10 * model.levels[n - 1].log10
    p = np.exp(log_p)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weight = np.log(masses.own / masses.lower)[contexts]
        log_new_weight = np.log((own + p) / (masses.lower[contexts] + 10**lower))
        of_word = np.where(p > 0, p * (LN10 * lower + log_new_weight - log_p), 0.0)
        entropy = -(10 ** history[contexts]) * (of_word + own * (log_new_weight - log_weight))
    increase: Floats = np.where(defined, np.expm1(entropy), np.inf)
    return increase


def suffix_nodes(model: NgramModel) -> list[Ints]:
    """For each order, the node of each n-gram without its first word, in the order below: (M,) each; -1 where
    the model lacks it. Unigrams have the empty context, 0."""
    V = len(model.words)
    suffixes = [np.zeros(V, np.int64)]
    for n, level in enumerate(model.levels[1:], 2):
        words = level.keys % V
        if n == 2:
            suffixes.append(words)
            continue
        context = suffixes[-1][level.keys // V]
        suffix = np.full(len(words), -1, np.int64)
        present = np.flatnonzero(context >= 0)
        suffix[present] = model.find(n - 1, context[present] * V + words[present])
        suffixes.append(suffix)
    return suffixes


def lower_log10(model: NgramModel, n: int, suffix: Ints) -> Floats:
    """log10 p(w | h') of the n-grams of order n: (M,). `suffix` (M,): see `suffix_nodes`."""
    below = model.levels[n - 2].log10
    values: Floats = below[suffix]
    missing = np.flatnonzero(suffix < 0)
    if len(missing):
        values[missing] = model.last_scores(model.grams(n)[missing, 1:]) / LN10
    return values


def backoff_masses(model: NgramModel, n: int, lower: Floats) -> BackoffMasses:
    """Sum up the n-grams of order n after each context. `lower` (M,): log10 p(w | h') of each."""
    level, contexts = model.levels[n - 1], model.levels[n - 1].keys // len(model.words)
    sums = [
        np.bincount(contexts, 10**values, len(model.levels[n - 2].keys)).astype(np.float64)
        for values in (level.log10, lower)
    ]
    return BackoffMasses(1 - sums[0], 1 - sums[1])


def check_sums(model: NgramModel, n: int, masses: BackoffMasses) -> None:
    """DataError if the probabilities after a context of n - 1 words do not sum to 1, given the masses that
    the n-grams of order n leave."""
    weights = 10 ** model.levels[n - 2].backoff
    # A context without a defined weight leaves nothing to other words, whatever the file has.
    difference = np.where(masses.defined, masses.own - weights * masses.lower, np.minimum(masses.own, 0))
    worst = int(np.abs(difference).argmax())
    if abs(difference[worst]) > MOST_DIFFERENCE:
        context = model.text(model.grams(n - 1)[worst])
        raise DataError(
            f"the probabilities after {context!r} sum to {1 - difference[worst]:.3g}, expected 1; only a "
            "model of probabilities can be pruned, not one of stupid-backoff"
        )


def recompute_backoffs(model: NgramModel) -> NgramModel:
    """Return the model with back-off weights such that the probabilities after each context sum to 1. A
    context that leaves nothing to other words keeps its weight."""
    suffixes, levels = suffix_nodes(model), [replace(level) for level in model.levels]
    weighted = NgramModel(model.words, levels)
    for n in range(2, model.order + 1):  # weights of longer contexts depend on those of shorter ones
        masses = backoff_masses(weighted, n, lower_log10(weighted, n, suffixes[n - 1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.log10(masses.own / masses.lower)
        levels[n - 2].backoff = np.where(masses.defined, weights, levels[n - 2].backoff)
    levels[-1].backoff = np.zeros(len(levels[-1].keys))
    return weighted
