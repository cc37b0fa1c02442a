"""Constraints on translations and how the beam keeps to them.

The search holds one state for each hypothesis and constraint: all that the constraint needs to know of the
units so far. Constraints forbid units; they never change a probability.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from operator import mul, sub
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy import int64
from numpy.typing import NDArray
from torch import Tensor

from nmt.search.config import ALLOCATIONS, BeamConfig
from nmt.search.hypotheses import Expansion, topk
from nmt.text.spelling import BOUNDARY, Joints, Spelling
from nmt.text.vocab import EOS

# ---- constraints -------------------------------------------------------------------------------------------


ConstraintState = TypeVar("ConstraintState")
Units = Sequence[int] | NDArray[int64]  # ids


class Constraint(Generic[ConstraintState]):
    """Forbids units of a translation. Sentences may share one."""

    units: int = 0  # number of units that it requires

    def start(self) -> ConstraintState:
        """State before the first unit."""
        raise NotImplementedError

    def follow(self, state: ConstraintState, unit: int) -> ConstraintState:
        """State after one more unit. It may be a forbidden one, since a forced prefix takes precedence."""
        raise NotImplementedError

    def forbidden(self, state: ConstraintState, left: int) -> Units:
        """Units, the end symbol included, that must not come next. `left`: how many more there may be."""
        raise NotImplementedError


AnyConstraint = Constraint[Any]  # its states are opaque to the search


class NoRepeat(Constraint[tuple[int, ...]]):
    """Forbids units that would complete an n-gram that the translation has. States: the units so far."""

    def __init__(self, order: int) -> None:
        self.order = order  # n, at least 1

    def start(self) -> tuple[int, ...]:
        return ()

    def follow(self, state: tuple[int, ...], unit: int) -> tuple[int, ...]:
        return (*state, unit)

    def forbidden(self, state: tuple[int, ...], left: int) -> Sequence[int]:
        size = self.order - 1
        last = state[len(state) - size :]
        return [
            state[start + size] for start in range(len(state) - size) if state[start : start + size] == last
        ]


# ---- required ----------------------------------------------------------------------------------------------

Phrase = tuple[int, ...]
Key = TypeVar("Key")
Result = TypeVar("Result")

MOST_RESULTS = 20_000  # cached for a sentence


class PhraseProgress(NamedTuple):
    """Which of the required phrases a hypothesis contains or has begun."""

    counts: tuple[int, ...]  # occurrences of each phrase, at most as many as are required
    partial: tuple[tuple[int, int], ...] = ()  # phrases that have begun, and how many of their units
    ended: tuple[int, ...] = ()  # phrases that count unless the next unit continues the word
    inside: bool = False  # whether the next unit may continue the word


class RequiredPhrases(Constraint[PhraseProgress]):
    """Requires each phrase at least as often as it is listed, as whole words. A sentence has at most one of
    these constraints, which holds all of its requirements.

    Occurrences of different phrases may share units (`new york` and `york city` are both in `new york city`),
    but a phrase that is a part of another one must also occur outside of it. Hypotheses neither end before
    they have every phrase nor become so long that no room is left for the missing ones.
    """

    def __init__(self, phrases: Iterable[Sequence[int]], joints: Joints) -> None:
        """`phrases`: at least one, none of them empty; `joints`: where words begin and end."""
        required_counts = required_occurrences(Counter(tuple(phrase) for phrase in phrases), joints)
        self.phrases, self.times, self.joints = list(required_counts), list(required_counts.values()), joints
        self.sizes = list(map(len, self.phrases))
        self.starting: dict[int, list[int]] = {}  # phrases by their first unit
        for number, phrase in enumerate(self.phrases):
            self.starting.setdefault(phrase[0], []).append(number)
        self.units = sum(map(mul, self.sizes, self.times))
        # Whether a phrase may have to wait for the end of a word, since none begins inside one.
        self.waits = any(joints.open_start[phrase[0]] for phrase in self.phrases)
        self.next: dict[tuple[PhraseProgress, int], PhraseProgress] = {}
        self.summaries: dict[PhraseProgress, tuple[list[int], int, int]] = {}

    def vocabulary(self) -> set[int]:
        """All required units, for short-lists."""
        return {unit for phrase in self.phrases for unit in phrase}

    def start(self) -> PhraseProgress:
        return PhraseProgress((0,) * len(self.phrases))

    def follow(self, state: PhraseProgress, unit: int) -> PhraseProgress:
        key = (state, unit)
        if key not in self.next:
            trim_cache(self.next, MOST_RESULTS)
            self.next[key] = self.advance(state, unit)
        return self.next[key]

    def advance(self, state: PhraseProgress, unit: int) -> PhraseProgress:
        """Compute `follow` without its cache."""
        same_word = state.inside and bool(self.joints.open_start[unit])
        counts = state.counts if same_word else add_counts(state.counts, state.ended)
        starts = () if same_word else ((phrase, 0) for phrase in self.starting.get(unit, ()))
        partial, ended = list[tuple[int, int]](), list[int]()
        for phrase, length in (*state.partial, *starts):
            units = self.phrases[phrase]
            if units[length] == unit and counts[phrase] < self.times[phrase]:
                if length + 1 == len(units):
                    ended.append(phrase)
                else:
                    partial.append((phrase, length + 1))
        if self.joints.open_end[unit]:
            return PhraseProgress(counts, tuple(partial), tuple(ended), True)
        return PhraseProgress(add_counts(counts, ended), tuple(partial))

    def missing(self, counts: Sequence[int]) -> list[int]:
        """Number of occurrences of each phrase that are still missing."""
        return list(map(sub, self.times, counts))

    def size(self, missing: Sequence[int]) -> int:
        """Number of units of missing phrases."""
        return sum(map(mul, self.sizes, missing))

    def summary(self, state: PhraseProgress) -> tuple[list[int], int, int]:
        """Missing occurrences of each phrase, their units, and how many the longest partial phrase has."""
        if state not in self.summaries:
            trim_cache(self.summaries, MOST_RESULTS)
            missing = self.missing(add_counts(state.counts, state.ended))
            length = max((length for phrase, length in state.partial if missing[phrase]), default=0)
            self.summaries[state] = missing, self.size(missing), length
        return self.summaries[state]

    def met(self, state: PhraseProgress) -> int:
        """The number of required units that the hypothesis has: 0 to `units`."""
        _, size, length = self.summary(state)
        return self.units - size + length

    def needed(self, state: PhraseProgress) -> int:
        """Number of further units that suffice to meet everything: a partial phrase continues or a new one
        begins, and all others follow one after the other."""
        missing, size, _ = self.summary(state)
        again = self.size(self.missing(state.counts))
        # Inside a word, the word has to end first.
        choices = [size + int(self.waits and state.inside and size > 0)]
        for phrase, length in state.partial:
            if missing[phrase]:
                same_word = state.inside and self.joints.open_start[self.phrases[phrase][length]]
                choices.append((again if same_word else size) - length)
        return min(choices)

    def wanted(self, state: PhraseProgress) -> list[int]:
        """The units that would meet one more requirement."""
        missing, _, _ = self.summary(state)
        continuing = [self.phrases[phrase][length] for phrase, length in state.partial if missing[phrase]]
        starts = [phrase[0] for phrase, count in zip(self.phrases, missing, strict=True) if count]
        if state.inside:
            starts = [unit for unit in starts if not self.joints.open_start[unit]]
        return list(dict.fromkeys(continuing + starts))

    def forbidden(self, state: PhraseProgress, left: int) -> Units:
        """The end symbol while a phrase is missing, and all units after which too little room is left."""
        _, size, _ = self.summary(state)
        end = [EOS] if size else []
        at_worst = self.size(self.missing(state.counts)) + int(self.waits)
        if not left or at_worst < left:
            return end
        after = self.needed_after(state)
        after[EOS] = left if size else 0
        return np.flatnonzero(after >= left)

    def needed_after(self, state: PhraseProgress) -> NDArray[np.int64]:
        """`needed` after each next unit: (V,)"""
        joints = self.joints
        size, again = self.summary(state)[1], self.size(self.missing(state.counts))
        after = np.where(joints.open_start & state.inside, again, size)
        after += joints.open_end & (after > 0) & self.waits
        for unit in self.wanted(state):
            after[unit] = self.needed(self.follow(state, unit))
        return after


def add_counts(counts: Sequence[int], phrases: Sequence[int]) -> tuple[int, ...]:
    """Count one more occurrence of some phrases."""
    if not phrases:
        return tuple(counts)
    totals = list(counts)
    for phrase in phrases:
        totals[phrase] += 1
    return tuple(totals)


def required_occurrences(phrases: Counter[Phrase], joints: Joints) -> dict[Phrase, int]:
    """Compute the number of required occurrences of each phrase: as many as all phrases together contain as
    whole words. `phrases`: how often each is required; `joints`: where words begin and end."""
    times, sizes = dict.fromkeys(phrases, 0), {len(phrase) for phrase in phrases}
    for text, count in phrases.items():
        for size in sizes:
            for start in range(len(text) - size + 1):
                phrase = text[start : start + size]
                if (
                    phrase in times
                    and not joints.inside(text, start)
                    and not joints.inside(text, start + size)
                ):
                    times[phrase] += count
    return times


def trim_cache(results: dict[Key, Result], most: int) -> None:
    """Empty a cache of `most` entries or more: with many phrases each result is large, too."""
    if len(results) >= most:
        results.clear()


# ---- avoided -----------------------------------------------------------------------------------------------

MOST_STATES = 1000  # whose forbidden units are cached
OTHER, BOUND = 0, 1  # symbols: any character that no phrase has, and the boundary


class ForbiddenPhrases(Constraint[int]):
    """Forbids phrases, however they are segmented into units. An automaton (Aho and Corasick 1975) reads the
    characters of a hypothesis; its state is that of the constraint."""

    def __init__(self, phrases: Sequence[str], spelling: Spelling) -> None:
        """`phrases`: texts with a BOUNDARY around each word. `spelling`: the text that each unit adds."""
        self.spelling = spelling
        characters = sorted({*"".join(phrases)} - {BOUNDARY})
        self.symbols = {BOUNDARY: BOUND} | {symbol: number for number, symbol in enumerate(characters, 2)}
        self.table, self.accepts = automaton([self.encode(phrase) for phrase in phrases], len(characters) + 2)
        self.start_state = int(self.table[0, BOUND])
        phrase_codes = np.array(sorted(map(ord, self.symbols)))
        symbols = np.array([self.symbols[chr(code)] for code in phrase_codes])
        self.columns = []  # symbols of the units, position by position
        for codes in spelling.columns.codes:
            index = np.searchsorted(phrase_codes, codes).clip(max=len(phrase_codes) - 1)
            self.columns.append(np.where(phrase_codes[index] == codes, symbols[index], OTHER))
        # After most first characters the automaton is in the same state wherever it was before; for such
        # units the hits of state 0 hold.
        self.first = np.zeros(len(spelling.columns.order), np.int64)
        if self.columns:
            self.first[: len(self.columns[0])] = self.columns[0]
        self.anywhere = self.hits(0, np.arange(len(self.first)))
        self.completing: dict[int, NDArray[np.int64]] = {}  # units with which a phrase ends, by state
        self.next: dict[tuple[int, int], int] = {}

    def encode(self, text: str) -> list[int]:
        return [self.symbols.get(character, OTHER) for character in text]

    def start(self) -> int:
        return self.start_state

    def follow(self, state: int, unit: int) -> int:
        key = (state, unit)
        if key not in self.next:
            trim_cache(self.next, MOST_RESULTS)
            for symbol in self.encode(self.spelling.texts[unit]):
                state = int(self.table[state, symbol])
            # After a forbidden phrase that a forced prefix contains, matching starts anew.
            self.next[key] = self.start_state if self.accepts[state] else state
        return self.next[key]

    def forbidden(self, state: int, left: int) -> NDArray[np.int64]:
        """Units that complete a phrase."""
        if state not in self.completing:
            trim_cache(self.completing, MOST_STATES)
            hits, differs = self.anywhere.copy(), (self.table[state] != self.table[0])[self.first]
            hits[differs] = self.hits(state, np.flatnonzero(differs))
            self.completing[state] = np.sort(self.spelling.columns.order[hits])
        return self.completing[state]

    def hits(self, state: int, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of n units completes a phrase after `state`: (n,). `positions` (n,): the units, as
        increasing indices into `Columns.order`."""
        states, hits = np.full(len(positions), state), np.zeros(len(positions), np.bool_)
        for column in self.columns:
            count = int(np.searchsorted(positions, len(column)))
            states[:count] = self.table[states[:count], column[positions[:count]]]
            hits[:count] |= self.accepts[states[:count]]
        return hits

    def contains_phrase(self, units: Sequence[int]) -> bool:
        """Whether a sequence of units, the end symbol included, contains one of the phrases."""
        state = self.start()
        for unit in units:
            if unit in self.forbidden(state, 1):
                return True
            state = self.follow(state, unit)
        return False


def automaton(phrases: Sequence[Sequence[int]], symbols: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Build the automaton that finds phrases, given as symbols below the number `symbols`. Returns the next
    state for each state and symbol (states, symbols), and whether a phrase ends in each state (states,). In
    state 0 no phrase has begun. Several boundaries in a row count as one."""
    trie: list[dict[int, int]] = [{}]
    ends, bounded = set[int](), [0]
    for phrase in phrases:
        node = 0
        for symbol in phrase:
            if symbol not in trie[node]:
                trie[node][symbol] = len(trie)
                trie.append({})
                bounded.append(int(symbol == BOUND))
            node = trie[node][symbol]
        ends.add(node)
    table = np.zeros((len(trie), symbols), np.int32)
    accepts = np.array([node in ends for node in range(len(trie))])
    shorter = [0] * len(trie)  # the node of the longest suffix that begins a phrase
    waiting = deque([0])
    while waiting:
        node = waiting.popleft()
        accepts[node] |= accepts[shorter[node]]
        table[node] = table[shorter[node]]
        for symbol, child in trie[node].items():
            shorter[child] = int(table[node, symbol])
            table[node, symbol] = child
            waiting.append(child)
    after_bound = np.flatnonzero(bounded)
    table[after_bound, BOUND] = after_bound
    return table, accepts


# ---- constraints of a search -------------------------------------------------------------------------------

MOST_WANTED = 50  # required units tried for each row, so that no sentence holds up the others

ConstraintStates = tuple[Any, ...]  # of a hypothesis, one for each constraint
Continuation = tuple[int, int]  # row, and the unit that follows it


class SearchConstraints:
    """The constraints of all sentences of a search, by the slot of the sentence. False as a condition until a
    sentence has any. Parameters named `sentence` are the slots of the R rows."""

    def __init__(self, config: BeamConfig) -> None:
        self.allocation = ALLOCATIONS[config.allocation]
        self.shared = (NoRepeat(config.no_repeat_ngram),) if config.no_repeat_ngram else ()
        self.constraints: dict[int, tuple[AnyConstraint, ...]] = {}
        # By slot: index among the constraints of the sentence, and the constraint.
        self.requirements: dict[int, tuple[int, RequiredPhrases]] = {}
        self.used = bool(self.shared)

    def __bool__(self) -> bool:
        return self.used

    def add(self, slot: int, constraints: Iterable[AnyConstraint], prefix: Sequence[int]) -> int:
        """Register the constraints of the sentence in a slot. Returns the length in units that a translation
        which begins with `prefix` may need to meet them, 0 without requirements."""
        all_constraints = (*constraints, *self.shared)
        self.used = self.used or bool(all_constraints)
        self.constraints[slot] = all_constraints
        self.requirements.pop(slot, None)
        for number, constraint in enumerate(all_constraints):
            if isinstance(constraint, RequiredPhrases):
                self.requirements[slot] = number, constraint
        if slot not in self.requirements:
            return 0
        requirement = self.requirements[slot][1]
        state = requirement.start()
        for unit in prefix:
            state = requirement.follow(state, unit)
        return len(prefix) + requirement.needed(state)

    def vocabulary(self, slot: int) -> set[int]:
        """The units that the sentence in a slot requires."""
        return self.requirements[slot][1].vocabulary() if slot in self.requirements else set()

    def start(self, slots: Iterable[int]) -> list[ConstraintStates]:
        """Constraint states of the sentences in these slots, before the first unit."""
        return [tuple(constraint.start() for constraint in self.constraints[slot]) for slot in slots]

    def follow(
        self,
        states: Sequence[ConstraintStates],
        sentence: Sequence[int],
        parents: Sequence[int],
        units: Sequence[int],
    ) -> list[ConstraintStates]:
        """Constraint states of K new rows. `states`: those of the R rows before; `parents`, `units`: for each
        new row the index of the row that it continues, and the unit that follows."""
        return [
            tuple(
                constraint.follow(state, unit)
                for constraint, state in zip(self.constraints[sentence[parent]], states[parent], strict=True)
            )
            for parent, unit in zip(parents, units, strict=True)
        ]

    def forbid(
        self,
        log_probs: Tensor,
        states: Sequence[ConstraintStates],
        sentence: Sequence[int],
        left: Sequence[int],
    ) -> None:
        """Set log p of forbidden units to -inf: (R, V), in place. `states`, `left` (units): of the rows."""
        masks = [
            (row, units)
            for row, slot in enumerate(sentence)
            for constraint, state in zip(self.constraints[slot], states[row], strict=True)
            if len(units := constraint.forbidden(state, left[row]))
        ]
        if masks:
            rows = np.repeat([row for row, _ in masks], [len(units) for _, units in masks])
            units = np.concatenate([np.asarray(units, np.int64) for _, units in masks])
            device = log_probs.device
            log_probs[torch.from_numpy(rows).to(device), torch.from_numpy(units).to(device)] = -math.inf

    def choose(
        self,
        best: Expansion,
        log_probs: Tensor,
        totals: Tensor,
        states: Sequence[ConstraintStates],
        sentence: Sequence[int],
        widths: Tensor,
    ) -> Expansion:
        """Replace the continuations in `best` of sentences that require units: share the beam among their
        banks (Post and Vilar 2018). Candidates are the best of the sentence, the best of each row, and, of
        each row, up to MOST_WANTED that meet one more requirement.

        `log_probs` (R, V), `totals` (R,), `states` and `sentence` are those of the rows, `widths` (S,) the
        beam sizes by slot. Other sentences keep their continuations."""
        rows = [row for row, slot in enumerate(sentence) if slot in self.requirements]
        if not rows:
            return best
        first = {slot: row for row, slot in reversed(list(enumerate(sentence)))}
        chosen: list[tuple[Continuation, float]] = []
        candidates_by_slot: dict[int, dict[Continuation, float]] = {}
        continuations = zip(best.parent.tolist(), best.word.tolist(), strict=True)
        for continuation, total in zip(continuations, best.total.tolist(), strict=True):
            if sentence[continuation[0]] in self.requirements:
                candidates_by_slot.setdefault(sentence[continuation[0]], {})[continuation] = total
            else:
                chosen.append((continuation, total))
        for continuation, total in self.candidates(rows, log_probs, totals, states, sentence, widths):
            candidates_by_slot.setdefault(sentence[continuation[0]], {})[continuation] = total
        for slot, candidates in candidates_by_slot.items():
            chosen += self.allocate(slot, candidates, states, int(widths[slot]))
        chosen.sort(key=lambda item: first[sentence[item[0][0]]])  # stable: the best of each sentence first
        device = log_probs.device
        pairs = torch.tensor([pair for pair, _ in chosen], dtype=torch.long, device=device)
        parent, word = pairs.reshape(-1, 2).unbind(1)
        total = torch.tensor([total for _, total in chosen], dtype=totals.dtype, device=device)
        return Expansion(parent=parent, word=word, total=total, ends=word == EOS)

    def candidates(
        self,
        rows: Sequence[int],
        log_probs: Tensor,
        totals: Tensor,
        states: Sequence[ConstraintStates],
        sentence: Sequence[int],
        widths: Tensor,
    ) -> list[tuple[Continuation, float]]:
        """List the best continuations of some rows, and the likeliest ones that meet a requirement, each with
        the natural log p of the hypothesis. `rows`: indices; the others are as for `choose`."""
        index = torch.tensor(rows, device=log_probs.device)
        per_row = min(self.allocation.per_row(int(widths.max())), log_probs.shape[1])
        _, units = topk(log_probs[index], per_row)
        continuations = [
            (row, unit) for row, first in zip(rows, units.tolist(), strict=True) for unit in first
        ]
        for row in rows:
            number, requirement = self.requirements[sentence[row]]
            wanted = requirement.wanted(states[row][number])
            if len(wanted) > MOST_WANTED:
                likely = log_probs[row, torch.tensor(wanted, device=index.device)]
                best = likely.argsort(descending=True, stable=True)[:MOST_WANTED].tolist()
                wanted = [wanted[index] for index in best]
            continuations += [(row, unit) for unit in wanted]
        parent, word = torch.tensor(continuations, device=log_probs.device).unbind(1)
        values = (totals[parent] + log_probs[parent, word]).tolist()
        return [pair for pair in zip(continuations, values, strict=True) if pair[1] > -math.inf]

    def allocate(
        self, slot: int, candidates: dict[Continuation, float], states: Sequence[ConstraintStates], width: int
    ) -> list[tuple[Continuation, float]]:
        """Choose the candidates of a sentence for which its banks have room, best first. `candidates`:
        natural log p of each; `width`: the beam size."""
        number, requirement = self.requirements[slot]
        banks: list[list[tuple[Continuation, float]]] = [[] for _ in range(requirement.units + 1)]
        for continuation, total in candidates.items():
            row, unit = continuation
            state = states[row][number]
            met = requirement.units if unit == EOS else requirement.met(requirement.follow(state, unit))
            banks[met].append((continuation, total))
        sizes = self.allocation.sizes(width, [len(bank) for bank in banks])
        chosen = list[tuple[Continuation, float]]()
        for bank, size in zip(banks, sizes, strict=True):
            chosen += sorted(bank, key=lambda item: (-item[1], item[0]))[:size]
        return sorted(chosen, key=lambda item: (-item[1], item[0]))
