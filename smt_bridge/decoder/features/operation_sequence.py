"""The operation sequence model of Moses as a feature of the search (Durrani et al. 2011; Durrani et al.
2013): an n-gram model of the operations that produce the words of both sides, jumps included. The operations
are those of smt_bridge/moses/operations.py.

    OpSequenceModel name=OpSequenceModel0 num-features=5 path=osm.arpa.gz
    OpSequenceModel name=OpSequenceModel0 num-features=1 support-features=no path=osm.arpa.gz

With source-classes= and target-classes=, files of word classes, which Moses does not have, the model is one
of operations over classes (Durrani et al. 2014).

The scores, with the meaning and order of Moses' osmHyp.cpp: log10 p of the operations (other features have
natural logarithms); gap width, the sum over produced source words of the distance from the first word that is
not produced yet; the number of words before which a gap is opened; the sum over produced words of the number
of open gaps; the number of unlinked source words. The end of the sentence is not scored.

A state consists of the state of the n-gram model, the source words that are covered, and the position after
the source word produced last. Open gaps follow from these. Moses compares only the lengths of n-gram states
when it recombines hypotheses; here their contents have to agree.

What a phrase scores on its own, from its first word on and without context, counts from the start, and in
future costs. The search adds the difference.

O: options of a sentence; M: their operations without jumps; N: candidates; R: stored states; n: source words.
"""

import threading
from collections.abc import Set
from functools import lru_cache
from itertools import chain
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.ngram.text_scorer import LN10
from nmt.ngram.word_classes import read_classes
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.automaton import Automaton, step
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features.protocol import Candidates, Gains, RowCache, SentenceScorer, StatefulFeature
from smt_bridge.decoder.model import AutomatonLM, load_trie
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.table import parse_points
from smt_bridge.moses.ini import FeatureLine
from smt_bridge.moses.operations import (
    BACK,
    CONTINUED,
    COPY,
    DELETED,
    FORWARD,
    GAP,
    INSERTED,
    TRANSLATE,
    TRANSLATED,
    ClassMaps,
    PlannedOperation,
    count_scores,
    plan,
)

Bools = NDArray[np.bool_]
LOG_PROB, WIDTH, OPENED, OPEN, UNLINKED = range(5)  # columns of scores
FOLLOWING, END, FIRST_GAP, STATE = range(4)  # columns of stored states

# ---- operations of options ---------------------------------------------------------------------------------


class RowOperations(NamedTuple):
    """The operations of an option, without jumps."""

    kinds: list[int]
    positions: list[int]  # of the source words in the phrase; -1 for an unlinked target word
    names: list[int]  # word ids in the n-gram model


class OptionOperations(NamedTuple):
    """The operations of all options of a sentence, without jumps."""

    cut: Int64s  # (O + 1,) those of option i are cut[i] to cut[i + 1] of the other arrays
    kinds: Int64s  # (M,) see smt_bridge/moses/operations.py
    positions: Int64s  # (M,) of the source words in their phrase; -1 for unlinked target words
    names: Int64s  # (M,) word ids in the n-gram model


class PreparedSentence(NamedTuple):
    """A sentence with the operations of its options, and what these score without context."""

    sentence: Sentence
    operations: OptionOperations
    jumps: Int64s  # (n + 3,) word ids of GAP, FORWARD, and BACK with the numbers 0 to n
    alone: Floats  # (O, 5)


@lru_cache(1 << 16)
def row_plan(points: bytes, source: int, target: int) -> tuple[PlannedOperation, ...]:
    """The planned operations of a table row. `points`: its alignment field; `source`, `target`: its numbers
    of words. Cached, as a table has few distinct alignments."""
    return tuple(plan(parse_points(points), source, target))


def read_class_maps(line: FeatureLine) -> ClassMaps | None:
    """Read the word classes that a line names; None for a model of words. ConfigError for classes of one side
    alone; DataError for a file of another form."""
    paths = [line.options.get(key) for key in ("source-classes", "target-classes")]
    if not any(paths):
        return None
    if not all(paths):
        raise line.error("give both source-classes= and target-classes=, or neither")
    return ClassMaps(*(read_classes(path) for path in paths if path))


class OperationSequenceModel(StatefulFeature):
    """An n-gram model of operations, with four counts unless the line says support-features=no."""

    arguments: ClassVar[Set[str]] = frozenset(
        {
            *("path", "support-features", "input-factor", "output-factor", "load"),
            *("source-classes", "target-classes"),
        }
    )
    scores: int = 5
    stand_in: ClassVar[float] = 0.0

    def __init__(self, line: FeatureLine, lm: AutomatonLM, classes: ClassMaps | None = None) -> None:
        self.name, self.scores, self.lm, self.classes = line.name, line.scores, lm, classes
        self.names: dict[str, int] = {}  # operation -> word id
        self.rows = RowCache[RowOperations]()
        self.latest = threading.local()  # the sentence that this thread prepared last

    @classmethod
    def count_scores(cls, line: FeatureLine) -> int:
        return count_scores(line.options)

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Load the model of a feature line. Raises the errors of `load_cached`."""
        return cls.load_cached(line, config, None)

    @classmethod
    def load_cached(cls, line: FeatureLine, config: DecoderConfig, cache: Cache | None) -> Self:
        """Load the model of a feature line. ConfigError for a binary file of KenLM, for an n-gram model that
        knows no operations, and for classes of one side alone; DataError for damaged files."""
        path = line.options["path"]
        model = load_trie(path, cache)
        if model is None:
            raise line.error(
                f"{path}: neither an ARPA file nor a folder of nmt-ngram compile; of a binary file of KenLM, "
                "give the ARPA file that it was made from"
            )
        words = model.pool
        if not any(words.word(number).startswith(TRANSLATE) for number in range(len(words.hashes))):
            raise line.error(
                f"{path} has no operation that begins with {TRANSLATE}, so it is no model of operations; "
                "give osm.arpa.gz of smt-train --osm, or the operationLM of Moses' OSM-Train.perl"
            )
        return cls(line, AutomatonLM(model), read_class_maps(line))

    def name_id(self, name: str) -> int:
        """The word id of an operation in the n-gram model, cached; that of <unk> for an unknown one."""
        number = self.names.get(name)
        if number is None:
            number = self.names[name] = self.lm.number(name)
        return number

    def row_operations(self, sentence: Sentence, option: int) -> RowOperations:
        return self.rows.get(sentence, option, lambda: self.plan_operations(sentence, option))

    def plan_operations(self, sentence: Sentence, option: int) -> RowOperations:
        row = int(sentence.rows[option])
        source, target = sentence.source(option), sentence.target(option)
        if row >= 0:
            planned = row_plan(sentence.table.points_text(row), len(source), len(target))
        else:
            extra = sentence.extras[-1 - row]
            planned = tuple(plan(extra.points, len(source), len(target)))
            if extra.unknown and len(planned) == 1 and planned[0].kind == TRANSLATED:
                return RowOperations([TRANSLATED], [planned[0].position], [self.name_id(COPY)])
        named = self.classes.apply(source, target) if self.classes else (source, target)
        return RowOperations(
            [operation.kind for operation in planned],
            [operation.position for operation in planned],
            [self.name_id(operation.name(*named)) for operation in planned],
        )

    def prepare(self, sentence: Sentence) -> PreparedSentence:
        """Look up the operations of all options of a sentence, and score them without context. The latest
        sentence of each thread is remembered."""
        latest: PreparedSentence | None = getattr(self.latest, "prepared", None)
        if latest is not None and latest.sentence is sentence:
            return latest
        rows = [self.row_operations(sentence, option) for option in range(sentence.size)]
        operations = OptionOperations(
            np.cumsum([0, *(len(row.kinds) for row in rows)]),
            *(np.array([*chain(*column)], np.int64) for column in zip(*rows, strict=True)),
        )
        backward = (f"{BACK}{number}" for number in range(len(sentence.words) + 1))
        jumps = np.array([self.name_id(name) for name in (GAP, FORWARD, *backward)])
        alone = np.zeros((sentence.size, 5))
        score_alone(self.lm.automaton, jumps, operations, len(sentence.words), alone)
        alone[:, LOG_PROB] /= LN10
        self.latest.prepared = prepared = PreparedSentence(sentence, operations, jumps, alone)
        return prepared

    def of_options(self, sentence: Sentence) -> Floats:
        """The scores of options without context, as Moses estimates them: (O, K)"""
        return self.prepare(sentence).alone[:, : self.scores]

    def start(self, sentence: Sentence) -> "OperationScorer":
        return OperationScorer(self, self.prepare(sentence))


# ---- search ------------------------------------------------------------------------------------------------


class OperationScorer(SentenceScorer):
    """Scores one sentence. A state is the index of a row of `numbers` and `covered`."""

    def __init__(self, feature: OperationSequenceModel, prepared: PreparedSentence) -> None:
        self.prepared, self.automaton = prepared, feature.lm.automaton
        self.scores, words = feature.scores, len(prepared.sentence.words)
        self.numbers = np.zeros((256, 4), np.int64)  # (R, 4); row 0: before the first word
        self.numbers[0, STATE] = self.automaton.start_state
        self.covered = np.zeros((256, words + 1), np.bool_)  # (R, n + 1) source words; the last never is
        self.used = 1

    def gains(self, candidates: Candidates) -> Gains:
        count = len(candidates.option)
        while self.used + count > len(self.numbers):
            self.numbers = np.concatenate([self.numbers, np.empty_like(self.numbers)])
            self.covered = np.concatenate([self.covered, np.empty_like(self.covered)])
        states, keys = np.arange(self.used, self.used + count), np.empty(count, np.int64)
        values, prepared = np.zeros((count, 5)), self.prepared
        extend(
            self.automaton, prepared.jumps, prepared.operations, prepared.sentence.first, candidates.option,
            candidates.state, states, self.numbers, self.covered, values, keys,
        )  # fmt: skip
        self.used += count
        values[:, LOG_PROB] /= LN10
        values -= prepared.alone[candidates.option]
        return Gains(values[:, : self.scores], states, keys)


@njit
def extend(lm: Automaton, jumps: Int64s, operations: OptionOperations, first: Int32s, option: Int64s,
states: Int64s, after: Int64s, numbers: Int64s, covered: Bools, values: Floats,
keys: Int64s) -> None:  # fmt: skip
    """Score N candidates into `values` (N, 5), the n-gram model by natural log p. Their states go to the rows
    `after` of `numbers` and `covered`, see OperationScorer; candidates of the same coverage and the same key,
    in `keys` (N,), have the same state. `option`, `states`: those of Candidates; `first`: see Sentence."""
    for number in range(len(option)):
        row = after[number]
        numbers[row] = numbers[states[number]]
        covered[row] = covered[states[number]]
        follow(lm, jumps, operations, option[number], first[option[number]], numbers[row], covered[row],
            values[number])  # fmt: skip
        keys[number] = numbers[row, STATE] * covered.shape[1] + numbers[row, FOLLOWING]


@njit
def score_alone(
    lm: Automaton, jumps: Int64s, operations: OptionOperations, words: int, values: Floats
) -> None:
    """Score each option without context into `values` (O, 5), as if its source words were a sentence, the
    n-gram model by natural log p. `words`: n."""
    numbers, covered = np.zeros(4, np.int64), np.zeros(words + 1, np.bool_)
    for option in range(len(values)):
        numbers[:] = 0
        covered[:] = False
        follow(lm, jumps, operations, option, 0, numbers, covered, values[option])


@njit
def follow(lm: Automaton, jumps: Int64s, operations: OptionOperations, option: int, first: int,
numbers: Int64s, covered: Bools, values: Floats) -> None:  # fmt: skip
    """Append an option to a derivation. `first`: its first source word; `numbers` (4,), `covered` (n + 1,):
    the state, which becomes that after the option; `values` (5,): what it scores is added there, the n-gram
    model by natural log p."""
    following, end = numbers[FOLLOWING], numbers[END]
    gap, state = numbers[FIRST_GAP], numbers[STATE]
    for index in range(operations.cut[option], operations.cut[option + 1]):
        kind = operations.kinds[index]
        if kind == DELETED:
            gain, state = step(lm, state, operations.names[index])
            values[LOG_PROB] += gain
            continue
        position, opened = first + operations.positions[index], False
        if following < position:
            if not covered[following]:
                gain, state = step(lm, state, jumps[0])
                values[LOG_PROB] += gain
                opened = True
            if following == end:
                following = position
            else:
                gain, state = step(lm, state, jumps[1])
                values[LOG_PROB] += gain
                following = end
        if position < following:
            if following < end and not covered[following]:
                gain, state = step(lm, state, jumps[0])
                values[LOG_PROB] += gain
                opened = True
            following, number = closest_gap(covered, gap, end, position)
            gain, state = step(lm, state, jumps[2 + number])
            values[LOG_PROB] += gain
        if following < position:
            gain, state = step(lm, state, jumps[0])
            values[LOG_PROB] += gain
            opened = True
        gain, state = step(lm, state, operations.names[index])
        values[LOG_PROB] += gain
        if kind != CONTINUED:
            values[WIDTH] += position - gap
        if kind == INSERTED:
            values[UNLINKED] += 1
        if opened:
            values[OPENED] += 1
        covered[position], following = True, position + 1
        end = max(end, following)
        while gap < end and covered[gap]:
            gap += 1
        values[OPEN] += open_gaps(covered, gap, end, following)
    numbers[FOLLOWING], numbers[END] = following, end
    numbers[FIRST_GAP], numbers[STATE] = gap, state


@njit
def closest_gap(covered: Bools, gap: int, end: int, position: int) -> tuple[int, int]:
    """The first word of the gap that contains the word at `position`, and the number of the gap, counted from
    the right. `covered`: whether each source word was produced; `gap`: the first that was not; `end`: the
    first word right of all produced ones."""
    number = 0
    for word in range(end - 1, gap - 1, -1):
        if not covered[word] and (word == gap or covered[word - 1]):
            number += 1
            if word <= position:
                return word, number
    return gap, number


@njit
def open_gaps(covered: Bools, gap: int, end: int, following: int) -> int:
    """The number of gaps but one at `following`, which is not left yet. Arguments as for `closest_gap`."""
    number = 0
    for word in range(gap, end):
        if not covered[word] and (word == gap or covered[word - 1]) and word != following:
            number += 1
    return number
