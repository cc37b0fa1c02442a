"""Gathers the translation options of a sentence span by span, and scores them."""

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.arrays import Floats, Int32s, Int64s, OptionArrays, constraints
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.feature_lines import UNKNOWN
from smt_bridge.decoder.features.protocol import SearchFeature, check_values
from smt_bridge.decoder.model import SearchModel, WeightedFeature
from smt_bridge.decoder.sentence import (
    UNKNOWN_WORD,
    ExtraOption,
    GatheredOptions,
    Sentence,
    future_costs,
    span_index,
    spans,
    target_words,
)
from smt_bridge.decoder.system import PhraseBasedSystem
from smt_bridge.decoder.table import PhraseTable
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine
from smt_bridge.moses.ini import Weights

# ---- row scores --------------------------------------------------------------------------------------------

NO_ROWS = np.zeros(0, np.int64)
NOT_LOOKED_UP = -1  # id of a word in a language model
REMEMBERED = 1 << 20  # rows in RowScores.best, after which it is emptied


class RowValues(NamedTuple):
    """Scores of O rows of a phrase table."""

    score: Floats  # (O,) without language models
    bound: Floats  # (O,) see OptionArrays
    estimate: Floats  # (O,) with language models without context, for future costs


class RowScores:
    """Scores of a phrase table's rows under given weights, computed for the rows that a sentence needs, and
    cached. Several threads may share it. L: language models; V: words of the table; O: rows of a call."""

    def __init__(
        self, system: PhraseBasedSystem, settings: SearchSettings, weights: Weights, model: SearchModel
    ) -> None:
        self.system, self.weights, self.model = system, weights, model
        # With oov-feature=1 a language model has a second weight.
        self.oov_weights = {
            number: weights[name][1] for number, name in enumerate(system.lm_names) if len(weights[name]) > 1
        }
        limits = [limit for limit in (settings.table_limit, settings.max_options) if limit]
        self.limit = min(limits, default=system.table.rows)
        self.default_reordering = np.array(system.default_reordering)
        kind = system.reordering
        self.reordering_weights = (
            np.array(kind.spread(weights[system.reordering_name]))
            if system.reordering_name
            else np.zeros(kind.probabilities)
        )
        self.lm_ids = np.full((len(model.word_lms), len(system.table.words)), NOT_LOOKED_UP, np.int32)
        self.best: dict[int, Int64s] = {}  # source node -> its rows within the table limit, best first
        self.remembered = 0  # rows in `best`

    def best_rows(self, nodes: Sequence[int]) -> dict[int, Int64s]:
        """The rows of source nodes within the table limit, best first: node -> rows. Best is the highest
        estimate, see RowValues."""
        cached = {node: rows for node in nodes if (rows := self.best.get(node)) is not None}
        new = sorted({*nodes} - cached.keys())
        if not new:
            return cached
        ranges = [self.system.table.node_rows(node) for node in new]
        rows = np.concatenate([np.arange(each.start, each.stop) for each in ranges])
        sizes = np.array([len(each) for each in ranges])
        owner = np.repeat(np.arange(len(new)), sizes)
        order = np.lexsort((-self.values(rows).estimate, owner))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # of a row within its node
        best_rows = np.split(rows[order[rank < self.limit]], np.cumsum(np.minimum(sizes, self.limit))[:-1])
        chosen = dict(zip(new, best_rows, strict=True))
        if self.remembered > REMEMBERED:
            self.best, self.remembered = {}, 0
        self.best.update(chosen)
        self.remembered += sum(map(len, best_rows))
        return cached | chosen

    def values(self, rows: Int64s) -> RowValues:
        """Score rows under the weights: (O,) -> (O,) each"""
        system, table = self.system, self.system.table
        text, starts = table.target_words(rows)
        ids = self.lm_words(text)
        score = weighted_sum(table.log_scores(rows), self.weights[system.table_name])
        score -= system.weight("WordPenalty", self.weights) * np.diff(starts)
        score += system.weight("PhrasePenalty", self.weights)
        score += self.oov_scores(text, starts)
        estimates, bounds = np.zeros(len(rows)), np.zeros(len(rows))
        for number, (lm, weight) in enumerate(
            zip(self.model.word_lms, self.model.early_weights, strict=True)
        ):
            alone, upper = lm.phrases(ids[number], starts)
            estimates += weight * alone
            # A negative weight rewards unlikely words, so there is no upper bound.
            bounds += weight * upper if weight >= 0 else math.inf
        return RowValues(score=score, bound=np.maximum(bounds, estimates), estimate=score + estimates)

    def lm_words(self, text: Int32s) -> Int32s:
        """Ids of words of the table in each language model: (W,) -> (L, W)"""
        ids: Int32s = self.lm_ids.take(text, axis=1)  # in rows, as compiled code wants it, for any L
        if ids.size and ids.min() == NOT_LOOKED_UP:
            words = self.system.table.words
            for word in np.unique(text[(ids == NOT_LOOKED_UP).any(0)]).tolist():
                self.lm_ids[:, word] = [lm.number(words[word]) for lm in self.model.word_lms]
            ids = self.lm_ids.take(text, axis=1)
        return ids

    def oov_scores(self, text: Int32s, starts: Int64s) -> Floats:
        """Weighted number of words that are unknown to language models with oov-feature=1, of phrases
        text[starts[i] : starts[i + 1]]: (O,)"""
        total, words = np.zeros(len(starts) - 1), self.system.table.words
        for number, weight in self.oov_weights.items():
            knows = self.model.word_lms[number].knows
            distinct, inverse = np.unique(text, return_inverse=True)
            outside = np.array([not knows(words[word]) for word in distinct.tolist()], bool)
            counted = np.concatenate([[0], np.cumsum(outside[inverse])])
            total += weight * (counted[starts[1:]] - counted[starts[:-1]])
        return total

    def reordering(self, rows: Int64s) -> NDArray[np.floating]:
        """Reordering scores of rows, natural logarithms: (O,) -> (O, P). Rows that the reordering table lacks
        have the default scores of the ini. All are 0 without a reordering table."""
        if not self.system.reordering_name:
            return np.zeros((len(rows), self.system.reordering.probabilities), np.float32)
        values = self.system.table.log_reordering(rows)
        missing = np.isnan(values[:, :1])
        return np.where(missing, self.default_reordering, values) if missing.any() else values

    def forward_ids(self, rows: Int64s, paired: NDArray[np.bool_]) -> Int32s:
        """Number the rows of a sentence so that rows with equal forward scores have equal numbers: (O,), (O,)
        -> (O,). The number is -1 for rows that are not `paired` and for those that the reordering table
        lacks. All are -1 if there are no forward scores."""
        kind = self.system.reordering
        if not kind.forward:
            return np.full(len(rows), -1, np.int32)
        values = self.system.table.log_reordering(rows)[:, -kind.size :]
        return number_rows(values, paired & ~np.isnan(values).any(1))


def weighted_sum(scores: NDArray[np.floating], weights: Sequence[float]) -> Floats:
    """Sum columns by their weights, from left to right, so that the sum of a row does not depend on the other
    rows: (O, F) -> (O,)"""
    total = np.zeros(len(scores))
    for column, weight in zip(scores.T, weights, strict=True):
        total += column.astype(np.float64) * weight
    return total


def number_rows(values: NDArray[np.floating], listed: NDArray[np.bool_]) -> Int32s:
    """Number the rows of a matrix so that equal rows have equal numbers; -1 where they are not `listed`:
    (O, K), (O,) -> (O,)"""
    numbers = np.zeros(len(values), np.int64)
    for column in values.T:  # column by column is faster than sorting rows
        distinct, inverse = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(distinct) + inverse, return_inverse=True)[1]
    return np.where(listed, numbers, -1).astype(np.int32)


# ---- forced ------------------------------------------------------------------------------------------------
# Translations forced by the input line.


def forced_options(
    forced: Sequence[ForcedTranslation],
    policy: str,
    table: PhraseTable,
    node: int,
    first: int,
    last: int,
    rows: Int64s,
) -> tuple[Int64s, list[ExtraOption]]:
    """Apply the translations that a line forces to the span from word `first` to word `last`. Returns those
    of its table rows `rows` that remain, and the forced options of exactly this span. `node`: the span's
    source node in the table; `policy`: [xml-input] of Moses, of which three change the options:

    exclusive    forced translations replace the rows of all spans that overlap with theirs
    inclusive    they compete with the rows
    constraint   a row remains if it overlaps with no forced translation, or contains the first one that it
                 overlaps with

    A single translation may also be marked as exclusive, whatever the policy.
    """
    overlapping = [option for option in forced if option.first <= last and first <= option.last]
    if any(option.exclusive or policy == "exclusive" for option in overlapping):
        rows = rows[:0]
    elif overlapping and policy == "constraint":
        rows = rows[
            np.array([holds_forced(table.text(row), first, last, overlapping[0]) for row in rows], np.bool_)
        ]
    return rows, [
        forced_extra(option, table, node)
        for option in overlapping
        if (option.first, option.last) == (first, last)
    ]


def holds_forced(target: list[str], first: int, last: int, option: ForcedTranslation) -> bool:
    """Whether a row of the table, with the source span from `first` to `last` and the target words `target`,
    contains a forced translation in both."""
    starts = range(len(target) - len(option.words) + 1)
    inside = first <= option.first and option.last <= last
    return inside and any(target[start : start + len(option.words)] == option.words for start in starts)


def forced_extra(option: ForcedTranslation, table: PhraseTable, node: int) -> ExtraOption:
    """The option of a forced translation. Its log probability is split evenly among the table's scores; its
    reordering scores are those of the same phrase pair in the table. `node`: its source node in the table."""
    columns = table.columns
    pair = next((row for row in table.node_rows(node) if table.text(row) == option.words), None)
    return ExtraOption(
        option.words,
        list(option.points),
        unknown=False,
        scores=np.full(columns, np.float32(option.log_prob) / np.float32(columns)),
        pair=pair,
        raw=option.raw,
    )


# ---- options -----------------------------------------------------------------------------------------------


DIGITS = set("0123456789")
EPSILON = "*EPS*"  # Moses' empty word, dropped if the table does not contain it


class OptionBuilder:
    """Gathers and scores the options of sentences under given weights."""

    def __init__(
        self,
        system: PhraseBasedSystem,
        settings: SearchSettings,
        weights: Weights,
        model: SearchModel,
        features: Sequence[WeightedFeature[SearchFeature]],
    ) -> None:
        self.system, self.settings, self.weights, self.model = system, settings, weights, model
        self.features = features
        self.rows = RowScores(system, settings, weights, model)
        self.longest = min(settings.max_phrase_length, system.table.longest)

    def gather(self, line: MarkedLine) -> Sentence:
        """Collect the options of a line with at least one word: rows of the table within its limit that
        contain no phrase to avoid, and translations forced by the line. A word with neither becomes an
        unknown word, unless an exclusive translation covers it."""
        longest = min(
            max([self.longest, *(option.last - option.first + 1 for option in line.forced)]), len(line.words)
        )
        exclusive = (option for option in line.forced if option.exclusive)
        owned = {word for option in exclusive for word in range(option.first, option.last + 1)}
        gathered = GatheredOptions()
        nodes = self.system.table.nodes(line.words, longest).tolist()
        best = self.rows.best_rows([node for node in nodes if node])
        for first, last in spans(len(line.words), longest):
            node = nodes[first * longest + last - first]
            rows, extras = best[node] if node else NO_ROWS, list[ExtraOption]()
            if line.avoided:
                texts = map(self.system.table.text, rows)
                rows = rows[np.array([not line.avoided.occurs(words) for words in texts], np.bool_)]
            if line.forced:
                rows, extras = forced_options(
                    line.forced, self.settings.xml_input, self.system.table, node, first, last, rows
                )
            if first == last and first not in owned and not len(rows) and not extras:
                extras = [self.unknown_word(line.words[first])]
            gathered.add(first, last, rows, extras)
        return self.sentence(line.words, gathered, longest)

    def unknown_word(self, word: str) -> ExtraOption:
        """The option that copies an unknown word or, with `drop_unknown`, translates it to nothing unless it
        has digits. The empty word and EPSILON are always translated to nothing."""
        if word in ("", EPSILON) or (self.settings.drop_unknown and not DIGITS & set(word)):
            return ExtraOption([], [])
        return ExtraOption([word], [(0, 0)])

    def sentence(self, words: list[str], gathered: GatheredOptions, longest: int) -> Sentence:
        """Convert gathered options to arrays. `longest`: number of words of the longest span."""
        table, extras, rows = self.system.table, gathered.extras, np.concatenate(gathered.rows)
        outside, extra_ids = self.word_numbers(extras)
        extra_cut = np.cumsum([0, *(len(extra.words) for extra in extras)])
        at = np.maximum(rows, 0)
        start, length, text = target_words(
            rows, table.lengths(at), table.target[at], table.target_parent, table.target_word, extra_cut,
            extra_ids,
        )  # fmt: skip
        sizes = np.array([len(rows) for rows in gathered.rows])
        first, last = (np.repeat(side, sizes) for side in np.array(gathered.spans, np.int32).T)
        return Sentence(
            words=words,
            table=table,
            rows=rows,
            extras=extras,
            first=first,
            last=last,
            text=text,
            start=start,
            length=length,
            outside=outside,
            longest=longest,
        )

    def word_numbers(self, extras: Sequence[ExtraOption]) -> tuple[list[str], Int32s]:
        """The distinct words of extra options that are not in the table; also returns the ids (W,) of all
        their words, as in Sentence.text."""
        words, outside = self.system.table.words, dict[str, int]()
        ids = [
            word_id if word_id >= 0 else len(words) + outside.setdefault(word, len(outside))
            for extra in extras
            for word in extra.words
            for word_id in (words.find(word),)
        ]
        return list(outside), np.array(ids, np.int32)

    def score(
        self, sentence: Sentence, line: MarkedLine, stop: threading.Event | None = None
    ) -> OptionArrays:
        """Score the options of a sentence for the search. `line`: its walls and zones become constraints.
        ConfigError if a feature gives scores of another shape, or that are not finite. Raises Stopped once
        `stop` is set."""
        rows, scores, n = sentence.rows, self.rows, len(sentence.words)
        score, bound, estimate = scores.values(np.maximum(rows, 0))
        pair = sentence.pairs()
        paired, pair = pair >= 0, np.maximum(pair, 0)
        values = np.where(paired[:, None], scores.reordering(pair), scores.default_reordering)
        backward, forward = self.split_reordering((values * scores.reordering_weights).astype(np.float64))
        lm_words = self.lm_words(sentence)
        for option in np.flatnonzero(rows < 0):
            (part,) = sentence.slices([int(option)])
            score[option] = self.extra_score(sentence.extras[-1 - rows[option]])
            estimate[option] = score[option] + self.lm_estimate(lm_words[:, part])
            bound[option] = 0.0 if (self.model.early_weights >= 0).all() else math.inf
        for weighted in self.features:
            values = weighted.feature.of_options(sentence)
            gain = check_values(weighted.feature, values, sentence.size) @ weighted.weights
            score += gain
            estimate += gain
        first, number = span_index(sentence.first, sentence.last, n, sentence.longest)
        return OptionArrays(
            score=score,
            bound=bound,
            backward=backward,
            forward=forward,
            forward_id=scores.forward_ids(pair, paired),
            start=sentence.start,
            length=sentence.length,
            words=lm_words,
            first=first,
            number=number,
            future=future_costs(n, sentence.longest, first, number, estimate, stop),
            constraints=constraints(n, line.walls, line.zones),
        )

    def split_reordering(self, scores: Floats) -> tuple[Floats, Floats]:
        """Split reordering scores, (O, P), into those relative to what precedes and to what follows, (O, K)
        each; zeros for a direction that the model does not have."""
        kind = self.system.reordering
        nothing = np.zeros((len(scores), kind.size))
        return (
            scores[:, : kind.size].copy() if kind.backward else nothing,
            scores[:, -kind.size :].copy() if kind.forward else nothing,
        )

    def extra_score(self, extra: ExtraOption) -> float:
        """Weighted score of an option that is not in the table, without that of language models."""
        score = self.system.weight("PhrasePenalty", self.weights) - self.system.weight(
            "WordPenalty", self.weights
        ) * len(extra.words)
        if extra.unknown:
            score += UNKNOWN_WORD * self.system.weight(UNKNOWN, self.weights)
        for number, weight in self.rows.oov_weights.items():
            score += weight * sum(not self.model.word_lms[number].knows(word) for word in extra.words)
        if extra.scores is not None:
            score += float(extra.scores @ np.array(self.weights[self.system.table_name]))
        return score

    def lm_estimate(self, ids: Int32s) -> float:
        """Weighted language model score of a phrase without context: (L, words) -> score"""
        alone = [lm.phrase(words.tolist()) for lm, words in zip(self.model.word_lms, ids, strict=True)]
        return float(np.dot(self.model.lm_weights, alone)) + self.model.stand_in * alone[0]

    def lm_words(self, sentence: Sentence) -> Int32s:
        """Word ids of the sentence's options in each language model: (L, W)"""
        text, size = sentence.text, len(self.system.table.words)
        beyond = np.flatnonzero(text >= size)
        ids = self.rows.lm_words(np.where(text < size, text, 0))
        for number, lm in enumerate(self.model.word_lms):
            ids[number, beyond] = [lm.number(sentence.outside[word]) for word in text[beyond] - size]
        return ids
