"""What the weights make of each row of the table: its score, what the language models may add, its
reordering; and the rows of each source phrase that the table limit keeps."""

import math

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.arrays import Floats, Int64s
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.model import SearchModel
from smt_bridge.decoder.system import System
from smt_bridge.moses.weights import Weights

NO_ROWS = np.zeros(0, np.int64)


class RowScores:
    """The R rows of a table under some weights; L language models, V words of the table."""

    def __init__(
        self, system: System, settings: SearchSettings, weights: Weights, model: SearchModel
    ) -> None:
        self.system, self.weights, self.model = system, weights, model
        table = system.table
        # A language model's second weight is that of oov-feature=1.
        self.oov_weights = {
            number: weights[name][1] for number, name in enumerate(system.lm_names) if len(weights[name]) > 1
        }
        self.word_ids = np.array(
            [[lm.number(word) for word in table.vocabulary] for lm in model.word_lms], np.int32
        ).reshape(len(model.word_lms), -1)  # (L, V)
        lengths = np.diff(table.cut)[table.target]
        score = (
            table.scores @ np.array(weights[system.table_name])
            - system.weight("WordPenalty", weights) * lengths
            + system.weight("PhrasePenalty", weights)
        )
        self.score: Floats = score + self.oov_scores()[table.target]  # (R,) without language models
        estimates, bounds = self.lm_estimates()
        self.bound: Floats = np.maximum(bounds, estimates)[table.target]  # (R,) see Options
        self.estimate: Floats = self.score + estimates[table.target]  # (R,) for future costs
        self.set_up_reordering()
        self.kept, self.kept_starts = self.best_rows(settings)

    def of(self, source: bytes) -> Int64s:
        """The rows of a source phrase that the table limit keeps, best first."""
        number = self.system.table.sources.get(source)
        return (
            NO_ROWS if number is None else self.kept[self.kept_starts[number] : self.kept_starts[number + 1]]
        )

    def oov_scores(self) -> Floats:
        """What oov-feature=1 makes of each target phrase, weighted: (T,) the number of words that a language
        model does not know."""
        table, total = self.system.table, np.zeros(len(self.system.table.cut) - 1)
        for number, weight in self.oov_weights.items():
            knows = self.model.word_lms[number].knows
            outside = np.array([not knows(word) for word in table.vocabulary], bool)
            counted = np.concatenate([[0], np.cumsum(outside[table.words])])
            total += weight * (counted[table.cut[1:]] - counted[table.cut[:-1]])
        return total

    def lm_estimates(self) -> tuple[Floats, Floats]:
        """What the language models give each target phrase without context, and the most that they give it in
        any, weighted: (T,), (T,)"""
        table = self.system.table
        estimates, bounds = np.zeros(len(table.cut) - 1), np.zeros(len(table.cut) - 1)
        for number, (lm, weight) in enumerate(zip(self.model.word_lms, self.model.lm_weights, strict=True)):
            alone, most = lm.phrases(self.word_ids[number][table.words], table.cut)
            estimates += (weight + (self.model.stand_in if number == 0 else 0.0)) * alone
            # A negative weight rewards unlikely words: no bound.
            bounds += weight * most if weight >= 0 else math.inf
        return estimates, bounds

    def set_up_reordering(self) -> None:
        """Reordering of each row, (R, 6), as it is and weighted; the ini's default where the reordering table
        has no row."""
        table, system = self.system.table, self.system
        self.default_reordering = np.array(system.default_reordering)
        self.reordering: NDArray[np.floating] = (
            table.reordering if system.reordering_name else np.zeros((table.rows, 6), np.float32)
        )
        if self.default_reordering.any():
            self.reordering = np.where((table.forward < 0)[:, None], self.default_reordering, self.reordering)
        self.reordering_weights = (
            np.array(self.weights[system.reordering_name]) if system.reordering_name else np.zeros(6)
        )
        self.row_reordering = (self.reordering * self.reordering_weights).astype(np.float64)

    def best_rows(self, settings: SearchSettings) -> tuple[Int64s, Int64s]:
        """The rows that the table limit keeps, best first within each source; where each source starts."""
        table = self.system.table
        limits = [limit for limit in (settings.table_limit, settings.max_options) if limit]
        limit = min(limits, default=table.rows)
        source_of = np.repeat(np.arange(len(table.starts) - 1), np.diff(table.starts))
        order = np.lexsort((-self.estimate, source_of))
        rank = np.arange(len(order)) - table.starts[source_of]  # `order` keeps sources together
        kept_of = np.minimum(np.diff(table.starts), limit)
        return order[rank < limit], np.concatenate([[0], np.cumsum(kept_of)])
