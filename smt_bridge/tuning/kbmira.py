"""Batch MIRA on n-best lists (Cherry and Foster 2012), as in Moses' kbmira. It needs no random restarts, and
suits many features, sparse ones included.

For each sentence in turn, hope is the hypothesis with the best sum of model score and BLEU, and fear the one
with the best difference; the weights move so that hope beats fear by their difference in BLEU. The BLEU of a
sentence is computed on top of decayed statistics of the sentences before it: those of their best hypotheses
by the model, as with kbmira's --model-bg, whose default takes hope's.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from nmt.config.settings import number
from smt_bridge.tuning.bleu import COLUMNS, ORDER
from smt_bridge.tuning.pool import Floats, Pool
from smt_bridge.tuning.tuner import Progress, TuningPoint, silent

LEAST = np.finfo(float).tiny  # of background statistics, which have logarithms


@dataclass
class Kbmira:
    """Batch MIRA; the result is the average weights up to the pass whose average is best on the pool."""

    takes_sparse: ClassVar[bool] = True

    passes: int = number(60, least=1, help="passes of kbmira over the sentences")
    max_step: float = number(
        0.01, above=0, help="largest step of kbmira's updates, C of Cherry and Foster 2012"
    )
    decay: float = number(0.999, least=0, most=1, help="decay of the background statistics of kbmira")

    def tune(
        self, pool: Pool, start: Floats | None, seed: int, progress: Progress = silent, **unused: object
    ) -> TuningPoint:
        """Run batch MIRA from `start`, or from zero weights; parameters as in `Tuner.tune`, of which `others`
        and `threads` are not used."""
        rng = np.random.default_rng(seed)
        free = ~pool.constant()
        weights = np.where(free, 0.0 if start is None else start, 0.0)
        total, updates = np.zeros_like(weights), 0
        background = np.ones(COLUMNS)
        best = TuningPoint(weights, -1.0)
        groups = [slice(*ends) for ends in pairwise(pool.starts)]
        sparse = list(pool.sparse.groups(pool.starts)) if pool.sparse else None
        dense = len(pool.names)
        for number_of_pass in range(1, self.passes + 1):
            for sentence in rng.permutation(len(groups)):
                rows = groups[sentence]
                features, stats = pool.features[rows], pool.stats[rows]
                scores, gains = features @ weights[:dense], sentence_bleu(stats, background)
                if sparse:
                    scores = scores + sparse[sentence].dot(weights[dense:])
                hope, fear = int(np.argmax(scores + gains)), int(np.argmax(scores - gains))
                if gains[hope] > gains[fear]:
                    difference = np.zeros_like(weights)
                    difference[:dense] = features[hope] - features[fear]
                    if sparse:
                        sparse[sentence].add_to(difference[dense:], hope, 1.0)
                        sparse[sentence].add_to(difference[dense:], fear, -1.0)
                    difference[~free] = 0.0
                    loss = gains[hope] - gains[fear] - difference @ weights
                    norm = difference @ difference
                    if loss > 0 and norm > 0:
                        weights = weights + min(self.max_step, loss / norm) * difference
                background = np.maximum(LEAST, self.decay * (background + stats[int(np.argmax(scores))]))
                total += weights
                updates += 1
            average = total / updates
            score = pool.bleu(average)
            if score > best.bleu:
                best = TuningPoint(average.copy(), score)
            progress(number_of_pass, self.passes)
        return TuningPoint(pool.normalize(best.weights), best.bleu)


def sentence_bleu(stats: Floats, background: Floats) -> Floats:
    """BLEU of the background plus each row, times the reference length of the sum, so that a single sentence
    still matters: (n, 9) -> (n,)"""
    sums = stats + background
    logs = (np.log(sums[:, 0 : 2 * ORDER : 2]) - np.log(sums[:, 1 : 2 * ORDER : 2])).mean(1)
    return np.asarray(np.exp(logs + np.minimum(0.0, 1 - sums[:, -1] / sums[:, 1])) * sums[:, -1])
