"""Constraints on translations and how the beam keeps to them.

The search holds one state for each hypothesis and constraint: all that the constraint needs to know of the
units so far. Constraints forbid units; they never change a probability.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy import int64
from numpy.typing import NDArray
from torch import Tensor

from nmt.search.config import ALLOCATIONS, BeamConfig
from nmt.search.hypotheses import Expansion, topk
from nmt.text.vocab import EOS

ConstraintState = TypeVar("ConstraintState")
Units = Sequence[int] | NDArray[int64]  # ids


class Constraint(Protocol[ConstraintState]):
    """Forbids units of a translation. Sentences may share one."""

    def start(self) -> ConstraintState:
        """State before the first unit."""
        ...

    def follow(self, state: ConstraintState, unit: int) -> ConstraintState:
        """State after one more unit, which may be a forbidden one: forced prefixes go before constraints."""
        ...

    def forbidden(self, state: ConstraintState, left: int) -> Units:
        """Units, the end symbol included, that must not come next. `left`: how many more units the
        translation may have."""
        ...


@runtime_checkable
class Demand(Constraint[ConstraintState], Protocol[ConstraintState]):
    """Requires units. A sentence has at most one Demand, which holds all of its requirements."""

    units: int  # required in all

    def met(self, state: ConstraintState) -> int:
        """Number of required units that the hypothesis has: 0 to `units`."""
        ...

    def wanted(self, state: ConstraintState) -> Iterable[int]:
        """Units that would meet one more requirement."""
        ...

    def needed(self, state: ConstraintState) -> int:
        """Number of further units that is enough to meet everything."""
        ...

    def vocabulary(self) -> set[int]:
        """All required units, for short-lists."""
        ...


AnyConstraint = Constraint[Any]  # its states are opaque to the search
AnyDemand = Demand[Any]

MOST_WANTED = 50  # required units tried in a row, so that no sentence holds up the others

ConstraintStates = tuple[object, ...]  # of a hypothesis, one for each constraint
Continuation = tuple[int, int]  # row, and the unit that follows it


class NoRepeat:
    """Forbids units that would complete an n-gram which the translation already has. States are the units so
    far."""

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


class Constrained:
    """The constraints of all sentences of a search, by slot. Falsy until a sentence has any."""

    def __init__(self, config: BeamConfig) -> None:
        self.allocation = ALLOCATIONS[config.allocation]
        self.shared = (NoRepeat(config.no_repeat_ngram),) if config.no_repeat_ngram else ()
        self.constraints: dict[int, tuple[AnyConstraint, ...]] = {}
        self.demands: dict[int, tuple[int, AnyDemand]] = {}  # number of the constraint, and itself
        self.used = bool(self.shared)

    def __bool__(self) -> bool:
        return self.used

    def add(self, slot: int, constraints: Iterable[AnyConstraint], prefix: Sequence[int]) -> int:
        """Register the constraints of a sentence. Returns the length that a translation with this prefix may
        need to meet them, 0 without requirements."""
        all_constraints = (*constraints, *self.shared)
        self.used = self.used or bool(all_constraints)
        self.constraints[slot] = all_constraints
        self.demands.pop(slot, None)
        for number, constraint in enumerate(all_constraints):
            if isinstance(constraint, Demand):
                self.demands[slot] = number, constraint
        if slot not in self.demands:
            return 0
        demand = self.demands[slot][1]
        state = demand.start()
        for unit in prefix:
            state = demand.follow(state, unit)
        return len(prefix) + demand.needed(state)

    def vocabulary(self, slot: int) -> set[int]:
        """Units that a sentence requires."""
        return self.demands[slot][1].vocabulary() if slot in self.demands else set()

    def start(self, slots: Iterable[int]) -> list[ConstraintStates]:
        """Constraint states of sentences before the first unit."""
        return [tuple(constraint.start() for constraint in self.constraints[slot]) for slot in slots]

    def follow(
        self,
        states: Sequence[ConstraintStates],
        sentence: Sequence[int],
        parents: Sequence[int],
        units: Sequence[int],
    ) -> list[ConstraintStates]:
        """Constraint states of new rows (K), given their parents' indices in the rows (R)."""
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
        """Set log p of forbidden units to -inf: (R, V), in place. `left`: how many more units each row may
        have."""
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
        banks. Candidates are the best of the sentence, the best of each row, and all that meet one more
        requirement."""
        rows = [row for row, slot in enumerate(sentence) if slot in self.demands]
        if not rows:
            return best
        first = {slot: row for row, slot in reversed(list(enumerate(sentence)))}
        chosen, candidates_of = list[tuple[Continuation, float]](), dict[int, dict[Continuation, float]]()
        continuations = zip(best.parent.tolist(), best.word.tolist(), strict=True)
        for continuation, total in zip(continuations, best.total.tolist(), strict=True):
            if sentence[continuation[0]] in self.demands:
                candidates_of.setdefault(sentence[continuation[0]], {})[continuation] = total
            else:
                chosen.append((continuation, total))
        for continuation, total in self.candidates(rows, log_probs, totals, states, sentence, widths):
            candidates_of.setdefault(sentence[continuation[0]], {})[continuation] = total
        for slot, candidates in candidates_of.items():
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
        """The best continuations of some rows, and the likeliest ones that meet a requirement, with their
        log p."""
        index = torch.tensor(rows, device=log_probs.device)
        each = min(self.allocation.each(int(widths.max())), log_probs.shape[1])
        _, units = topk(log_probs[index], each)
        continuations = [
            (row, unit) for row, first in zip(rows, units.tolist(), strict=True) for unit in first
        ]
        for row in rows:
            number, demand = self.demands[sentence[row]]
            wanted = list(demand.wanted(states[row][number]))
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
        """Candidates of a sentence that its banks have room for, the best first."""
        number, demand = self.demands[slot]
        banks: list[list[tuple[Continuation, float]]] = [[] for _ in range(demand.units + 1)]
        for continuation, total in candidates.items():
            row, unit = continuation
            state = states[row][number]
            met = demand.units if unit == EOS else demand.met(demand.follow(state, unit))
            banks[met].append((continuation, total))
        sizes = self.allocation.sizes(width, [len(bank) for bank in banks])
        chosen = list[tuple[Continuation, float]]()
        for bank, size in zip(banks, sizes, strict=True):
            chosen += sorted(bank, key=lambda item: (-item[1], item[0]))[:size]
        return sorted(chosen, key=lambda item: (-item[1], item[0]))
