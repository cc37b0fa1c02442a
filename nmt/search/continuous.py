"""Beam search that never ends: sentences are added while others are being searched, and each leaves as soon
as it is finished. A server searches the sentences of all its clients together in this way; the result for a
sentence is that of `beam.search`.
"""

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
        """There is room for about `config.rows` hypotheses at a time. ConfigError for a setting out of
        range."""
        config.check()
        self.work = BeamSearch(model, config)
        self.rows: Rows[State] | None = None
        self.added: list[int] = []  # since the last step
        self.capacity = config.rows or ROWS
        self.longest_history = FORGET

    @property
    def live(self) -> int:
        """Hypotheses in the batch."""
        return 0 if self.rows is None else len(self.rows.sentence)

    @property
    def busy(self) -> bool:
        """Is any sentence not finished?"""
        return bool(self.added) or self.live > 0

    def wants(self, width: int = 1) -> bool:
        """Is there room for one more sentence, of so many hypotheses?"""
        return self.planned + width <= self.room()

    def fits(self, width: int) -> bool:
        """May a sentence of so many hypotheses begin although others end soon? Any may begin alone."""
        return not self.busy or self.planned + width <= self.capacity - self.live

    @property
    def planned(self) -> int:
        """Hypotheses of the sentences that were added since the last step."""
        return sum(self.width(sentence) for sentence in self.added)

    def room(self) -> int:
        """Rows that new sentences may take; none as long as most rows are in use."""
        alive = self.live
        beam = self.work.config.beam_size
        return 0 if alive and alive > REFILL * self.capacity - beam else self.capacity - alive

    def width(self, sentence: int) -> int:
        return int(self.work.widths[sentence])

    def add(self, source: Source, beam_size: int = 0, constraints: Sequence[AnyConstraint] = ()) -> int:
        """The number of a new sentence, which has at least one word; the next step begins with it, whether
        there is room or not. `beam_size`: 0: the configured one."""
        width = beam_size or self.work.config.beam_size
        (place,) = self.work.add([source], widths=[width], constraints=[constraints])
        self.added.append(place)
        return place

    @torch.no_grad()
    def step(self) -> list[tuple[int, list[Candidate]]]:
        """One more word for all sentences. Returns the finished ones with their hypotheses, best first."""
        before = {*self.added, *([] if self.rows is None else self.rows.sentence.tolist())}
        if self.added:
            started = self.work.step(self.work.begin(self.added))
            self.added = []
            rest = self.rows if self.rows is None or not self.live else self.work.step(self.rows)
            self.rows = started if rest is None else self.work.join(rest, started)
        elif self.rows is not None and self.live:
            self.rows = self.work.step(self.rows)
        after = set() if self.rows is None else set(self.rows.sentence.tolist())
        found = [(place, self.work.release(place)) for place in sorted(before - after)]
        self.forget()
        return found

    def cancel(self, sentence: int) -> None:
        """Stop searching a sentence."""
        if sentence in self.added:
            self.added.remove(sentence)
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
