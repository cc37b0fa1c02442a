"""Rankers: weights that put the hypotheses of a list in the order of their sentence BLEU, by a margin loss or
a logistic one.

Only the hypotheses near the top of a list can become its best. So both rank in rounds, and the weights of a
round decide what the next one compares. The result is the round with the best BLEU on the pool. Each round is
a convex problem with one solution, so there is no starting point.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmt.settings import choice, number
from smt_bridge.tuning import bundle
from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.kbmira import sentence_bleu
from smt_bridge.tuning.losses import pairwise_hinge, structured_hinge
from smt_bridge.tuning.pool import Floats, Ints, Pool, first_of_highest, normalize
from smt_bridge.tuning.pro import logistic
from smt_bridge.tuning.tuner import Point, Progress, silent


@dataclass
class Ranker:
    """What margin and logistic have in common: rounds, and the pairs that a round compares."""

    rounds: int = number(8, least=1, help="times that margin and logistic choose what they compare")
    pairs: int = number(20, least=1, help="pairs that margin and logistic draw for each sentence and round")
    top: int = number(
        3, least=2, help="entries of each list, by score, that pairs are drawn from after round 1"
    )

    def tune(
        self,
        pool: Pool,
        start: Floats | None,
        seed: int,
        *,
        others: Sequence[Floats] = (),
        threads: int = 1,
        progress: Progress = silent,
    ) -> Point:
        """See Tuner."""
        rng = np.random.default_rng(seed)
        lists, scale = scaled(pool)
        best = Point(np.zeros(len(scale)), -1.0)
        weights = None
        for done in range(1, self.rounds + 1):
            weights = self.rank(lists, weights, rng)
            score = pool.bleu(weights / scale)
            if score > best.bleu:
                best = Point(normalize(weights / scale), score)
            progress(done, self.rounds)
        return best

    def rank(self, lists: "ScaledLists", before: Floats | None, rng: np.random.Generator) -> Floats:
        """Weights of scaled features from those of the round before: (D,)"""
        raise NotImplementedError


@dataclass
class Margin(Ranker):
    """Hinge losses. structured: the entry with the highest sum of score and BLEU should lead every other
    entry of its list by their difference in BLEU. pairs: so should the better entry of each pair."""

    hinge: str = choice("structured", "pairs", help="margin: one entry against its whole list, or pairs")
    regularization: float = number(0.1, above=0, help="L2 regularization of margin")
    tolerance: float = number(
        0.01, above=0, below=1, help="share of its cost by which margin may miss the least"
    )

    def rank(self, lists: "ScaledLists", before: Floats | None, rng: np.random.Generator) -> Floats:
        """See Ranker; by the bundle method."""
        if self.hinge == "pairs":
            pairs = lists.draw(before, self.pairs, self.top, rng)
            loss = pairwise_hinge(lists.differences(pairs), pairs.gaps)
        else:
            hopes = first_of_highest(lists.gains + lists.scores(before), lists.starts)
            margins = lists.of_all(lists.gains[hopes]) - lists.gains
            loss = structured_hinge(lists.features, lists.starts, hopes, margins)
        return bundle.minimize(loss, lists.features.shape[1], self.regularization, self.tolerance)


@dataclass
class Logistic(Ranker):
    """The logistic loss of pairs, each weighted by its difference in BLEU."""

    ridge: float = number(1e-3, above=0, help="L2 regularization of pro and logistic, for each pair")

    def rank(self, lists: "ScaledLists", before: Floats | None, rng: np.random.Generator) -> Floats:
        """See Ranker; by Newton's method."""
        pairs = lists.draw(before, self.pairs, self.top, rng)
        return logistic(lists.differences(pairs), self.ridge, pairs.gaps)


class Pairs(NamedTuple):
    """Pairs of entries of one list each, as rows of the pool; the first has the higher BLEU."""

    better: Ints  # (N,)
    worse: Ints
    gaps: Floats  # differences in gain


@dataclass
class ScaledLists:
    """The lists as rankers see them: no result depends on the units of a feature or of the gains."""

    features: Floats  # (N, D), each with the root mean square 1 within sentences
    gains: Floats  # (N,), sentence BLEU; an entry is 1 below the best of its list on average
    starts: Ints  # (S + 1,)

    def of_all(self, values: Floats) -> Floats:
        """A value of each list for all its entries: (S,) -> (N,)"""
        return np.repeat(values, np.diff(self.starts))

    def scores(self, weights: Floats | None) -> Floats:
        """(N,); all equal without weights"""
        return np.zeros(len(self.features)) if weights is None else self.features @ weights

    def differences(self, pairs: Pairs) -> Floats:
        """(N, D)"""
        return self.features[pairs.better] - self.features[pairs.worse]

    def draw(self, weights: Floats | None, count: int, top: int, rng: np.random.Generator) -> Pairs:
        """`count` random pairs of each list, less those of equal BLEU: of the entries with the `top` highest
        scores, or of all without weights."""
        sizes = np.diff(self.starts)
        order = np.arange(len(self.features))
        if weights is not None:
            order = np.lexsort((-self.scores(weights), np.repeat(np.arange(len(sizes)), sizes)))
            sizes = np.minimum(sizes, top)
        one, other = order[self.starts[:-1] + rng.integers(0, sizes, (2, count, len(sizes)))].reshape(2, -1)
        gaps = self.gains[one] - self.gains[other]
        one, other = np.where(gaps > 0, one, other), np.where(gaps > 0, other, one)
        kept = gaps != 0
        return Pairs(one[kept], other[kept], np.abs(gaps[kept]))


def scaled(pool: Pool) -> tuple[ScaledLists, Floats]:
    """The lists, and what their features were divided by, (D,). Constant features are 0."""
    starts, sizes = pool.starts[:-1], np.diff(pool.starts)
    means = np.add.reduceat(pool.features, starts) / sizes[:, None]
    features = np.where(pool.constant(), 0.0, pool.features - np.repeat(means, sizes, 0))
    scale = np.sqrt((features**2).mean(0))
    scale[scale == 0] = 1
    gains = sentence_bleu(pool.stats, np.ones(COLUMNS))
    behind = (np.repeat(np.maximum.reduceat(gains, starts), sizes) - gains).mean()
    return ScaledLists(features / scale, gains / (behind or 1.0), pool.starts), scale
