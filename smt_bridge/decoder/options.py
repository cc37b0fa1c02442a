"""The options of a sentence, gathered span by span and scored: what the search gets."""

import math
import threading
from collections.abc import Sequence

import numpy as np

from smt_bridge.decoder import forced
from smt_bridge.decoder.arrays import Int32s, Options
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.constraints import constraints
from smt_bridge.decoder.feature_lines import UNKNOWN
from smt_bridge.decoder.features.protocol import SearchFeature, checked
from smt_bridge.decoder.model import SearchModel, Weighted
from smt_bridge.decoder.row_scores import RowScores
from smt_bridge.decoder.sentence import (
    UNKNOWN_WORD,
    Extra,
    Gathered,
    Sentence,
    future_costs,
    places,
    spans,
    target_words,
)
from smt_bridge.decoder.system import System
from smt_bridge.decoder.word_lm import phrase_score
from smt_bridge.decoder.xml_input import Marked
from smt_bridge.moses.weights import Weights

DIGITS = set("0123456789")
EPSILON = "*EPS*"  # Moses' empty word: dropped where the table does not have it


class OptionBuilder:
    """Options of sentences under some weights."""

    def __init__(
        self,
        system: System,
        settings: SearchSettings,
        weights: Weights,
        model: SearchModel,
        features: Sequence[Weighted[SearchFeature]],
    ) -> None:
        self.system, self.settings, self.weights, self.model = system, settings, weights, model
        self.features = features
        self.rows = RowScores(system, settings, weights, model)
        self.longest = min(
            settings.max_phrase_length, max(source.count(b" ") + 1 for source in system.table.sources)
        )
        self.numbers = {word: number for number, word in enumerate(system.table.vocabulary)}

    def gather(self, line: Marked) -> Sentence:
        """The options of a line with at least one word: rows of the table, translations that the line gives,
        and for a word without either the word itself."""
        longest = min(
            max([self.longest, *(option.last - option.begin + 1 for option in line.forced)]), len(line.words)
        )
        owned = {
            word for one in line.forced if one.exclusive for word in range(one.begin, one.last + 1)
        }  # only their own option translates them
        found = Gathered()
        for begin, last, text in spans(line.words, longest):
            rows, extras = self.rows.of(text), list[Extra]()
            if line.avoided:
                texts = map(self.system.table.text, rows)
                rows = rows[np.array([not line.avoided.occurs(words) for words in texts], np.bool_)]
            if line.forced:
                rows, extras = forced.options(
                    line.forced, self.settings.xml_input, self.system.table, text, begin, last, rows
                )
            if begin == last and begin not in owned and not len(rows) and not extras:
                extras = [self.unknown_word(line.words[begin])]
            found.add(begin, last, rows, extras)
        return self.sentence(line.words, found, longest)

    def unknown_word(self, word: str) -> Extra:
        """The word itself, or nothing where unknown words are dropped; numbers never are."""
        if word in ("", EPSILON) or (self.settings.drop_unknown and not DIGITS & set(word)):
            return Extra([], [])
        return Extra([word], [(0, 0)])

    def sentence(self, words: list[str], gathered: Gathered, longest: int) -> Sentence:
        """Gathered options as arrays."""
        table, extras, rows = self.system.table, gathered.extras, np.concatenate(gathered.rows)
        outside, extra_ids = self.word_numbers(extras)
        extra_cut = np.cumsum([0, *(len(extra.words) for extra in extras)])
        start, length, text = target_words(rows, table.target, table.cut, table.words, extra_cut, extra_ids)
        sizes = np.array([len(rows) for rows in gathered.rows])
        begin, last = np.array(gathered.spans, np.int32).T
        return Sentence(
            words=words,
            table=table,
            rows=rows,
            extras=extras,
            begin=np.repeat(begin, sizes),
            last=np.repeat(last, sizes),
            text=text,
            start=start,
            length=length,
            outside=outside,
            longest=longest,
        )

    def word_numbers(self, extras: Sequence[Extra]) -> tuple[list[str], Int32s]:
        """The words of extras that the vocabulary does not have, and the numbers of all their words, one
        after the other."""
        known, outside = self.numbers, dict[str, int]()
        ids = [
            known[word] if word in known else len(known) + outside.setdefault(word, len(outside))
            for extra in extras
            for word in extra.words
        ]
        return list(outside), np.array(ids, np.int32)

    def score(self, sentence: Sentence, line: Marked, stop: threading.Event | None = None) -> Options:
        """The options of a sentence with their scores, as the search takes them."""
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
            (place,) = sentence.places([int(option)])
            score[option] = self.extra_score(sentence.extras[-1 - rows[option]])
            estimate[option] = score[option] + self.lm_estimate(lm_words[:, place])
            bound[option] = 0.0 if (self.model.lm_weights >= 0).all() else math.inf
        for weighted in self.features:
            values = weighted.feature.of_options(sentence)
            more = checked(weighted.feature, values, sentence.size) @ weighted.weights
            score += more
            estimate += more
        first, number = places(sentence.begin, sentence.last, n, sentence.longest)
        return Options(
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

    def extra_score(self, extra: Extra) -> float:
        """The weighted score of an option outside the table, without language models."""
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
        """What the language models give a phrase without context, weighted: (L, words) -> score"""
        alone = [phrase_score(lm, words.tolist()) for lm, words in zip(self.model.word_lms, ids, strict=True)]
        return float(np.dot(self.model.lm_weights, alone)) + self.model.stand_in * alone[0]

    def lm_words(self, sentence: Sentence) -> Int32s:
        """Words of the sentence's options in each language model: (L, W)"""
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
