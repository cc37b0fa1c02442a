"""Beam search that never ends: sentences are added while others are being searched, and each leaves as soon
as it is finished. A server searches the sentences of all its clients together in this way; the result for a
sentence is that of `beam.search`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

import torch

from nmt.models.protocols import Source, State, StepModel
from nmt.search.beam import REFILL, ROWS, BeamSearch, Candidate, Rows
from nmt.search.config import BeamConfig
from nmt.search.constraints.protocol import AnyConstraint

FORGET = 20_000  # nodes of a history that is never cleared


class ContinuousSearch(Generic[State]):
    """A sentence is known by its number from `add` until `step` returns it, or `cancel` is called with it."""

    def __init__(self, model: StepModel[State], config: BeamConfig) -> None:
        """About `config.rows` hypotheses are live at a time. ConfigError for a setting out of range."""
        config.check()
        self.work = BeamSearch(model, config)
        self.rows: Rows[State] | None = None
        self.waiting: deque[int] = deque()
        self.capacity = config.rows or ROWS
        self.longest_history = FORGET

    @property
    def live(self) -> int:
        """Hypotheses in the batch."""
        return 0 if self.rows is None else len(self.rows.sentence)

    @property
    def busy(self) -> bool:
        """Is any sentence not finished?"""
        return bool(self.waiting) or self.live > 0

    def wants(self) -> bool:
        """Would a sentence that is added now be started at the next step?"""
        return sum(self.width(one) for one in self.waiting) < self.room()

    def room(self) -> int:
        """Rows that new sentences may take; none as long as most rows are in use."""
        alive = self.live
        beam = self.work.config.beam_size
        return 0 if alive and alive > REFILL * self.capacity - beam else self.capacity - alive

    def width(self, sentence: int) -> int:
        return int(self.work.widths[sentence])

    def add(self, source: Source, beam_size: int = 0, constraints: Sequence[AnyConstraint] = ()) -> int:
        """The number of a new sentence, which has at least one word. `beam_size`: 0: the configured one."""
        width = beam_size or self.work.config.beam_size
        (place,) = self.work.add([source], widths=[width], constraints=[constraints])
        self.waiting.append(place)
        return place

    @torch.no_grad()
    def step(self) -> list[tuple[int, list[Candidate]]]:
        """One more word for all sentences that are in search, after those that wait have been started as far
        as there is room. Returns the finished ones with their hypotheses, best first."""
        before = set(self.waiting) if self.rows is None else {*self.rows.sentence.tolist(), *self.waiting}
        if begun := self.next():
            started = self.work.step(self.work.begin(begun))
            rest = self.rows if self.rows is None or not self.live else self.work.step(self.rows)
            self.rows = started if rest is None else self.work.join(rest, started)
        elif self.rows is not None and self.live:
            self.rows = self.work.step(self.rows)
        after = {*self.waiting, *([] if self.rows is None else self.rows.sentence.tolist())}
        found = [(place, self.work.release(place)) for place in sorted(before - after)]
        self.forget()
        return found

    def next(self) -> list[int]:
        """The sentences that are started now, in the order in which they came; a lone one always has room."""
        room, begun = self.room(), list[int]()
        while self.waiting and (room >= self.width(self.waiting[0]) or not (begun or self.live)):
            room -= self.width(self.waiting[0])
            begun.append(self.waiting.popleft())
        return begun

    def cancel(self, sentence: int) -> None:
        """Stop searching a sentence."""
        if sentence in self.waiting:
            self.waiting.remove(sentence)
        elif self.rows is not None:
            self.keep(torch.nonzero(self.rows.sentence != sentence)[:, 0])
        self.work.release(sentence)

    def keep(self, kept: torch.Tensor) -> None:
        """Drop all rows but these (K,)."""
        assert self.rows is not None
        if not len(kept):
            self.rows = None
            return
        rows = self.rows
        self.rows = Rows(
            state=self.work.model.reorder(rows.state, kept),
            sentence=rows.sentence[kept],
            totals=rows.totals[kept],
            nodes=rows.nodes[kept],
            words=None if rows.words is None else rows.words[kept],
            marks=[rows.marks[row] for row in kept.tolist()] if rows.marks else [],
        )

    def forget(self) -> None:
        """Free what finished sentences have left, once that may be half of the history."""
        history = self.work.history
        if not self.live:
            self.rows = None
            history.forget(torch.zeros(0, dtype=torch.long))
        elif len(history) > self.longest_history and self.rows is not None:
            self.rows = replace(self.rows, nodes=history.forget(self.rows.nodes))
            self.longest_history = max(FORGET, 2 * len(history))
