"""Gathers the translation options of a sentence span by span, and scores them."""

import math
import threading
from collections.abc import Sequence

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


class RowScores:
    """Scores of a phrase table's rows under given weights. R: rows; T: distinct target phrases; L: language
    models; V: words of the table's vocabulary."""

    def __init__(
        self, system: PhraseBasedSystem, settings: SearchSettings, weights: Weights, model: SearchModel
    ) -> None:
        self.system, self.weights, self.model = system, weights, model
        table = system.table
        # With oov-feature=1 a language model has a second weight.
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
        self.bound: Floats = np.maximum(bounds, estimates)[table.target]  # (R,) see OptionArrays
        self.estimate: Floats = self.score + estimates[table.target]  # (R,) for future costs
        self.set_up_reordering()
        self.top_rows, self.top_starts = self.best_rows(settings)

    def of(self, source: bytes) -> Int64s:
        """The rows of a source phrase within the table limit, best first."""
        number = self.system.table.sources.get(source)
        return (
            NO_ROWS
            if number is None
            else self.top_rows[self.top_starts[number] : self.top_starts[number + 1]]
        )

    def oov_scores(self) -> Floats:
        """Weighted number of each target phrase's words that are unknown to language models with
        oov-feature=1: (T,)"""
        table, total = self.system.table, np.zeros(len(self.system.table.cut) - 1)
        for number, weight in self.oov_weights.items():
            knows = self.model.word_lms[number].knows
            outside = np.array([not knows(word) for word in table.vocabulary], bool)
            counted = np.concatenate([[0], np.cumsum(outside[table.words])])
            total += weight * (counted[table.cut[1:]] - counted[table.cut[:-1]])
        return total

    def lm_estimates(self) -> tuple[Floats, Floats]:
        """Weighted language model scores of each target phrase without context; also returns upper bounds for
        any context: (T,), (T,)"""
        table = self.system.table
        estimates, bounds = np.zeros(len(table.cut) - 1), np.zeros(len(table.cut) - 1)
        for number, (lm, weight) in enumerate(zip(self.model.word_lms, self.model.lm_weights, strict=True)):
            alone, most = lm.phrases(self.word_ids[number][table.words], table.cut)
            estimates += (weight + (self.model.stand_in if number == 0 else 0.0)) * alone
            # A negative weight rewards unlikely words, so there is no upper bound.
            bounds += weight * most if weight >= 0 else math.inf
        return estimates, bounds

    def set_up_reordering(self) -> None:
        """Compute the reordering scores of each row (R, 6), both unweighted and weighted. Rows that the
        reordering table lacks get the ini's defaults."""
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
        """Rows within the table limit, best first for each source; also returns the offsets of the
        sources."""
        table = self.system.table
        limits = [limit for limit in (settings.table_limit, settings.max_options) if limit]
        limit = min(limits, default=table.rows)
        source_of = np.repeat(np.arange(len(table.starts) - 1), np.diff(table.starts))
        order = np.lexsort((-self.estimate, source_of))
        rank = np.arange(len(order)) - table.starts[source_of]  # `order` keeps sources together
        kept_of = np.minimum(np.diff(table.starts), limit)
        return order[rank < limit], np.concatenate([[0], np.cumsum(kept_of)])


# ---- forced ------------------------------------------------------------------------------------------------
# Translations forced by the input line, under each policy of Moses' [xml-input].
#
# exclusive    they replace the table's options of all spans that overlap with theirs
# inclusive    they compete with the table's options
# constraint   an option of the table remains if it overlaps with no forced translation, or contains the first
#              one that it overlaps with
#
# A single translation may also be marked as exclusive.


TableRows = NDArray[np.int64]


def forced_options(
    forced: Sequence[ForcedTranslation],
    policy: str,
    table: PhraseTable,
    source: bytes,
    first: int,
    last: int,
    rows: TableRows,
) -> tuple[TableRows, list[ExtraOption]]:
    """The rows of the table that remain for a span; also returns the forced options of exactly this span."""
    overlapping = [option for option in forced if option.first <= last and first <= option.last]
    if any(option.exclusive or policy == "exclusive" for option in overlapping):
        rows = rows[:0]
    elif overlapping and policy == "constraint":
        rows = rows[
            np.array([holds_forced(table.text(row), first, last, overlapping[0]) for row in rows], np.bool_)
        ]
    return rows, [
        forced_extra(option, table, source)
        for option in overlapping
        if (option.first, option.last) == (first, last)
    ]


def holds_forced(target: list[str], first: int, last: int, option: ForcedTranslation) -> bool:
    """Whether a row of the table contains a forced translation in both its source and its target."""
    starts = range(len(target) - len(option.words) + 1)
    inside = first <= option.first and option.last <= last
    return inside and any(target[start : start + len(option.words)] == option.words for start in starts)


def forced_extra(option: ForcedTranslation, table: PhraseTable, source: bytes) -> ExtraOption:
    """The option of a forced translation. Its log probability is split evenly among the table's scores; its
    reordering scores are those of the same phrase pair in the table."""
    columns = table.scores.shape[1]
    pair = next((row for row in table.of(source) if table.text(row) == option.words), None)
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
        self.longest = min(
            settings.max_phrase_length, max(source.count(b" ") + 1 for source in system.table.sources)
        )
        self.numbers = {word: number for number, word in enumerate(system.table.vocabulary)}

    def gather(self, line: MarkedLine) -> Sentence:
        """Collect the options of a line with at least one word: rows of the table and translations forced by
        the line; a word with neither is an unknown word."""
        longest = min(
            max([self.longest, *(option.last - option.first + 1 for option in line.forced)]), len(line.words)
        )
        owned = {
            word
            for option in line.forced
            if option.exclusive
            for word in range(option.first, option.last + 1)
        }  # words covered by an exclusive translation
        gathered = GatheredOptions()
        for first, last, text in spans(line.words, longest):
            rows, extras = self.rows.of(text), list[ExtraOption]()
            if line.avoided:
                texts = map(self.system.table.text, rows)
                rows = rows[np.array([not line.avoided.occurs(words) for words in texts], np.bool_)]
            if line.forced:
                rows, extras = forced_options(
                    line.forced, self.settings.xml_input, self.system.table, text, first, last, rows
                )
            if first == last and first not in owned and not len(rows) and not extras:
                extras = [self.unknown_word(line.words[first])]
            gathered.add(first, last, rows, extras)
        return self.sentence(line.words, gathered, longest)

    def unknown_word(self, word: str) -> ExtraOption:
        """The option that copies an unknown word or, with `drop_unknown`, translates it to nothing. Words
        with digits are always copied."""
        if word in ("", EPSILON) or (self.settings.drop_unknown and not DIGITS & set(word)):
            return ExtraOption([], [])
        return ExtraOption([word], [(0, 0)])

    def sentence(self, words: list[str], gathered: GatheredOptions, longest: int) -> Sentence:
        """Convert gathered options to arrays."""
        table, extras, rows = self.system.table, gathered.extras, np.concatenate(gathered.rows)
        outside, extra_ids = self.word_numbers(extras)
        extra_cut = np.cumsum([0, *(len(extra.words) for extra in extras)])
        start, length, text = target_words(rows, table.target, table.cut, table.words, extra_cut, extra_ids)
        sizes = np.array([len(rows) for rows in gathered.rows])
        first, last = np.array(gathered.spans, np.int32).T
        return Sentence(
            words=words,
            table=table,
            rows=rows,
            extras=extras,
            first=np.repeat(first, sizes),
            last=np.repeat(last, sizes),
            text=text,
            start=start,
            length=length,
            outside=outside,
            longest=longest,
        )

    def word_numbers(self, extras: Sequence[ExtraOption]) -> tuple[list[str], Int32s]:
        """Words of extra options that are not in the vocabulary; also returns the ids of all their words."""
        vocabulary, outside = self.numbers, dict[str, int]()
        ids = [
            vocabulary[word]
            if word in vocabulary
            else len(vocabulary) + outside.setdefault(word, len(outside))
            for extra in extras
            for word in extra.words
        ]
        return list(outside), np.array(ids, np.int32)

    def score(
        self, sentence: Sentence, line: MarkedLine, stop: threading.Event | None = None
    ) -> OptionArrays:
        """Score the options of a sentence for the search."""
        rows, scores, n = sentence.rows, self.rows, len(sentence.words)
        at = np.maximum(rows, 0)
        score, bound, estimate = scores.score[at], scores.bound[at], scores.estimate[at]
        pair = sentence.pairs()
        paired, pair = pair >= 0, np.maximum(pair, 0)
        reordering = np.where(
            paired[:, None],
            scores.row_reordering[pair],
            scores.default_reordering * scores.reordering_weights,
        )
        lm_words = self.lm_words(sentence)
        for option in np.flatnonzero(rows < 0):
            (part,) = sentence.slices([int(option)])
            score[option] = self.extra_score(sentence.extras[-1 - rows[option]])
            estimate[option] = score[option] + self.lm_estimate(lm_words[:, part])
            bound[option] = 0.0 if (self.model.lm_weights >= 0).all() else math.inf
        for weighted in self.features:
            values = weighted.feature.of_options(sentence)
            more = check_values(weighted.feature, values, sentence.size) @ weighted.weights
            score += more
            estimate += more
        first, number = span_index(sentence.first, sentence.last, n, sentence.longest)
        return OptionArrays(
            score=score,
            bound=bound,
            backward=reordering[:, :3].copy(),
            forward=reordering[:, 3:].copy(),
            forward_id=np.where(paired, self.system.table.forward[pair], -1).astype(np.int32),
            start=sentence.start,
            length=sentence.length,
            words=lm_words,
            first=first,
            number=number,
            future=future_costs(n, sentence.longest, first, number, estimate, stop),
            constraints=constraints(n, line.walls, line.zones),
        )

    def extra_score(self, extra: ExtraOption) -> float:
        """Weighted score of an option outside the table, without language models."""
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
        text, word_ids = sentence.text, self.rows.word_ids
        vocabulary = len(self.system.table.vocabulary)
        ids: Int32s = (
            word_ids[:, np.minimum(text, vocabulary - 1)]
            if vocabulary
            else np.zeros((len(word_ids), len(text)), np.int32)
        )
        beyond = np.flatnonzero(text >= vocabulary)
        for number, lm in enumerate(self.model.word_lms):
            ids[number, beyond] = [lm.number(sentence.outside[word]) for word in text[beyond] - vocabulary]
        return ids
