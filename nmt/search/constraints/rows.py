"""The constraints of all sentences of a search, and what they make of its steps."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.search.config import BeamConfig
from nmt.search.constraints.allocation import ALLOCATIONS
from nmt.search.constraints.avoided import NoRepeat
from nmt.search.constraints.protocol import AnyConstraint, AnyDemand, Demand
from nmt.search.hypotheses import Expansion, topk
from nmt.text.vocab import EOS

MOST_WANTED = 50  # units that are a step forward are tried in a row, so that no sentence holds up the others

Marks = tuple[object, ...]  # of a hypothesis, one for each constraint
Step = tuple[int, int]  # row, and the unit that follows it


class Constrained:
    """Sentences by their places in a search; false while none has constraints."""

    def __init__(self, config: BeamConfig) -> None:
        self.allocation = ALLOCATIONS[config.allocation]
        self.everywhere = (NoRepeat(config.no_repeat_ngram),) if config.no_repeat_ngram else ()
        self.of: dict[int, tuple[AnyConstraint, ...]] = {}
        self.demands: dict[int, tuple[int, AnyDemand]] = {}  # number of the constraint, and itself
        self.used = bool(self.everywhere)

    def __bool__(self) -> bool:
        return self.used

    def add(self, place: int, constraints: Iterable[AnyConstraint], prefix: Sequence[int]) -> int:
        """Note the constraints of a sentence -> the length that a translation with this prefix may need to
        meet them, 0 without any."""
        found = (*constraints, *self.everywhere)
        self.used = self.used or bool(found)
        self.of[place] = found
        self.demands.pop(place, None)
        for number, one in enumerate(found):
            if isinstance(one, Demand):
                self.demands[place] = number, one
        if place not in self.demands:
            return 0
        demand = self.demands[place][1]
        mark = demand.begin()
        for unit in prefix:
            mark = demand.follow(mark, unit)
        return len(prefix) + demand.needed(mark)

    def vocabulary(self, place: int) -> set[int]:
        """The units that a sentence needs."""
        return self.demands[place][1].vocabulary() if place in self.demands else set()

    def begin(self, places: Iterable[int]) -> list[Marks]:
        """The marks of sentences without a unit."""
        return [tuple(one.begin() for one in self.of[place]) for place in places]

    def follow(
        self, marks: Sequence[Marks], sentence: Sequence[int], parents: Sequence[int], units: Sequence[int]
    ) -> list[Marks]:
        """The marks of rows (K) that follow their parents among the rows (R)."""
        return [
            tuple(
                one.follow(mark, unit)
                for one, mark in zip(self.of[sentence[parent]], marks[parent], strict=True)
            )
            for parent, unit in zip(parents, units, strict=True)
        ]

    def forbid(
        self, log_probs: Tensor, marks: Sequence[Marks], sentence: Sequence[int], left: Sequence[int]
    ) -> None:
        """Take the probability from what is forbidden: (R, V), in place. `left`: how many more units each
        row may have."""
        found = [
            (row, units)
            for row, place in enumerate(sentence)
            for one, mark in zip(self.of[place], marks[row], strict=True)
            if len(units := one.forbidden(mark, left[row]))
        ]
        if found:
            rows = np.repeat([row for row, _ in found], [len(units) for _, units in found])
            units = np.concatenate([np.asarray(units, np.int64) for _, units in found])
            device = log_probs.device
            log_probs[torch.from_numpy(rows).to(device), torch.from_numpy(units).to(device)] = -math.inf

    def choose(
        self,
        best: Expansion,
        log_probs: Tensor,
        totals: Tensor,
        marks: Sequence[Marks],
        sentence: Sequence[int],
        widths: Tensor,
    ) -> Expansion:
        """The kept continuations: `best`, but for the sentences with a demand those that their banks have
        room for. Candidates are the best of the sentence, the best of each row, and all that meet one more
        unit."""
        rows = [row for row, place in enumerate(sentence) if place in self.demands]
        if not rows:
            return best
        first = {place: row for row, place in reversed(list(enumerate(sentence)))}
        kept, found = list[tuple[Step, float]](), dict[int, dict[Step, float]]()
        given = zip(best.parent.tolist(), best.word.tolist(), strict=True)
        for step, total in zip(given, best.total.tolist(), strict=True):
            if sentence[step[0]] in self.demands:
                found.setdefault(sentence[step[0]], {})[step] = total
            else:
                kept.append((step, total))
        for step, total in self.more(rows, log_probs, totals, marks, sentence, widths):
            found.setdefault(sentence[step[0]], {})[step] = total
        for place, candidates in found.items():
            kept += self.allocated(place, candidates, marks, int(widths[place]))
        kept.sort(key=lambda item: first[sentence[item[0][0]]])  # stable: the best of each sentence first
        device = log_probs.device
        steps = torch.tensor([step for step, _ in kept], dtype=torch.long, device=device)
        parent, word = steps.reshape(-1, 2).unbind(1)
        total = torch.tensor([total for _, total in kept], dtype=totals.dtype, device=device)
        return Expansion(parent=parent, word=word, total=total, ends=word == EOS)

    def more(
        self,
        rows: Sequence[int],
        log_probs: Tensor,
        totals: Tensor,
        marks: Sequence[Marks],
        sentence: Sequence[int],
        widths: Tensor,
    ) -> list[tuple[Step, float]]:
        """The best continuations of some rows, and the likeliest steps forward, with their log p."""
        index = torch.tensor(rows, device=log_probs.device)
        each = min(self.allocation.each(int(widths.max())), log_probs.shape[1])
        _, units = topk(log_probs[index], each)
        steps = [(row, unit) for row, first in zip(rows, units.tolist(), strict=True) for unit in first]
        for row in rows:
            number, demand = self.demands[sentence[row]]
            wanted = list(demand.wanted(marks[row][number]))
            if len(wanted) > MOST_WANTED:
                likely = log_probs[row, torch.tensor(wanted, device=index.device)]
                best = likely.argsort(descending=True, stable=True)[:MOST_WANTED].tolist()
                wanted = [wanted[index] for index in best]
            steps += [(row, unit) for unit in wanted]
        parent, word = torch.tensor(steps, device=log_probs.device).unbind(1)
        values = (totals[parent] + log_probs[parent, word]).tolist()
        return [pair for pair in zip(steps, values, strict=True) if pair[1] > -math.inf]

    def allocated(
        self, place: int, candidates: dict[Step, float], marks: Sequence[Marks], width: int
    ) -> list[tuple[Step, float]]:
        """The candidates of a sentence that are kept, the best first."""
        number, demand = self.demands[place]
        banks: list[list[tuple[Step, float]]] = [[] for _ in range(demand.units + 1)]
        for step, total in candidates.items():
            row, unit = step
            mark = marks[row][number]
            met = demand.units if unit == EOS else demand.met(demand.follow(mark, unit))
            banks[met].append((step, total))
        sizes = self.allocation.sizes(width, [len(bank) for bank in banks])
        kept = list[tuple[Step, float]]()
        for bank, size in zip(banks, sizes, strict=True):
            kept += sorted(bank, key=lambda item: (-item[1], item[0]))[:size]
        return sorted(kept, key=lambda item: (-item[1], item[0]))
