"""Batch MIRA on n-best lists (Cherry and Foster 2012), as Moses' kbmira: no random restarts, made for many
features.

For each sentence in turn: hope = best of model score plus BLEU, fear = best of model score minus BLEU; the
weights move so that hope beats fear by their difference in BLEU. BLEU of a sentence is counted on top of a
decayed sum of those before it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smt_bridge.tuning.bleu import COLUMNS, ORDER
from smt_bridge.tuning.mert import Point
from smt_bridge.tuning.pool import Floats, Pool, normalize


@dataclass
class MiraConfig:
    passes: int = 60  # over the sentences
    rate: float = 0.01  # C: the largest step
    decay: float = 0.999  # of the background statistics


def kbmira(
    pool: Pool,
    start: Floats,
    seed: int,
    config: MiraConfig | None = None,
    tell: Callable[[int], None] = lambda count: None,
) -> Point:
    """The average weights of the pass with the best BLEU on the pool."""
    config = config or MiraConfig()
    rng = np.random.default_rng(seed)
    free = ~pool.constant()
    weights = np.where(free, start, 0.0)
    total, steps = np.zeros_like(weights), 0
    background = np.ones(COLUMNS)
    best = Point(weights, -1.0)
    groups = [slice(*pair) for pair in zip(pool.starts[:-1], pool.starts[1:], strict=True)]
    for _ in range(config.passes):
        for sentence in rng.permutation(len(groups)):
            rows = groups[sentence]
            features, stats = pool.features[rows], pool.stats[rows]
            scores, gains = features @ weights, sentence_bleu(stats, background)
            hope, fear = int(np.argmax(scores + gains)), int(np.argmax(scores - gains))
            if gains[hope] > gains[fear]:
                difference = np.where(free, features[hope] - features[fear], 0.0)
                loss = gains[hope] - gains[fear] - difference @ weights
                norm = difference @ difference
                if loss > 0 and norm > 0:
                    weights = weights + min(config.rate, loss / norm) * difference
            background = config.decay * (background + stats[int(np.argmax(scores))])
            total += weights
            steps += 1
        average = total / steps
        score = pool.bleu(average)
        if score > best.bleu:
            best = Point(average.copy(), score)
        tell(1)
    return Point(normalize(best.weights), best.bleu)


def sentence_bleu(stats: Floats, background: Floats) -> Floats:
    """BLEU of background plus each row, times its reference length, so that one sentence still counts in it:
    (n, 9) -> (n,)"""
    sums = stats + background
    logs = (np.log(sums[:, 0 : 2 * ORDER : 2]) - np.log(sums[:, 1 : 2 * ORDER : 2])).mean(1)
    return np.asarray(np.exp(logs + np.minimum(0.0, 1 - sums[:, -1] / sums[:, 1])) * sums[:, -1])
