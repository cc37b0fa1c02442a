"""A short-list network and a count model as one model of all words (after Schwenk 2007), whose probabilities
sum to one.

A word of the short-list has the network's p(w | h). The network's p(UNK | h) is shared among all other words
in the proportions of the count model:

    p(w | h) = p_net(UNK | h) p_count(w | h) / (1 - Σ p_count(v | h) over the short-list's v)
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.ngram.count_models import NgramModel
from nmt.ngram.text_scorer import BOS, EOS, UNK, Floats, Ints

LEAST = 1e-12  # minimum mass outside the short-list, which is 0 if the list has all words


class UnknownShares:
    """Distributes p(UNK) over the words outside the short-list. Probabilities are those of a count model."""

    def __init__(self, model: NgramModel, shortlist: Collection[str]) -> None:
        """`shortlist`: the words that the network knows, besides the end of a sentence."""
        self.model = model
        self.inside = np.array(
            [word == EOS or (word in shortlist and word not in (BOS, UNK)) for word in model.words]
        )
        self.masses = masses(model, self.inside)
        self.shortlist = shortlist

    def logs(self, texts: Sequence[Sequence[str]]) -> list[Floats]:
        """For each word of each text natural log(p_count(w | h) / mass outside the short-list), and 0 for
        words of the short-list; the end of the text is included."""
        if not texts:
            return []
        model, shortlist = self.model, self.shortlist
        flat, first, starts = model.flatten(texts)
        flags = (flag for text in texts for flag in (False, *(word not in shortlist for word in text), False))
        outside = np.fromiter(flags, bool, len(flat))
        nodes = model.nodes(flat, first)
        mass = np.full(len(flat), self.masses[0][0])
        for n in range(1, model.order):  # the longest context in the model decides
            context = np.concatenate([[-1], nodes[n - 1][:-1]])
            context[first == np.arange(len(flat))] = -1
            mass = np.where(context >= 0, self.masses[n][context], mass)
        share = np.where(outside, model.flat_scores(flat, first) - np.log(np.maximum(1 - mass, LEAST)), 0.0)
        return [part[1:] for part in np.split(share, starts[1:])]


def masses(model: NgramModel, inside: NDArray[np.bool_]) -> list[Floats]:
    """Σ p(v | context) over the words marked `inside` (V,): for the empty context (1,), then for each node of
    levels 1 to order - 1.

    Σ_v p(v | h) = Σ p(hv) over the n-grams in the model + back-off(h) (Σ_v p(v | h') - Σ p(v | h') of the
    same words)
    """
    V = len(model.words)
    levels = [np.array([(10.0 ** model.levels[0].log10[inside]).sum()])]
    for n in range(1, model.order):
        contexts, longer = model.levels[n - 1], model.levels[n]
        grams = model.grams(n + 1)
        words = inside[grams[:, -1]]
        parents = longer.keys[words] // V
        here = np.bincount(parents, 10.0 ** longer.log10[words], len(contexts.keys))
        shorter = np.exp(model.last_scores(grams[words][:, 1:]))
        below = np.bincount(parents, shorter, len(contexts.keys))
        levels.append(here + 10.0**contexts.backoff * (suffix_masses(model, levels, model.grams(n)) - below))
    return levels


def suffix_masses(model: NgramModel, levels: Sequence[Floats], contexts: Ints) -> Floats:
    """Mass after each context without its first word, shortened further if the model lacks that context:
    word ids (M, n) -> (M,). `levels`: the result of `masses` for shorter contexts."""
    M, n = contexts.shape
    mass = np.full(M, levels[0][0])
    if n == 1:
        return mass
    nodes = model.nodes(contexts[:, 1:].reshape(-1), np.repeat(np.arange(M) * (n - 1), n - 1))
    for size in range(1, n):
        node = nodes[size - 1][n - 2 :: n - 1]
        mass = np.where(node >= 0, levels[size][node], mass)
    return mass
