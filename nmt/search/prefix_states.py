"""log p of many continuations of a sentence's translation, each prefix read once: what a search needs that
has hypotheses of its own, such as phrase-based search (Junczys-Dowmunt et al. 2016).

The prefixes are the nodes of a trie. The state of the decoder after a node, and the probabilities of what
follows it, are computed when they are first asked for. So the first unit of a phrase is read off the
probabilities after its parent, phrases that begin alike share their nodes, and nobody pays for the state
after a phrase that nothing follows. Nodes of one depth are one step of the decoder, and the softmax is
computed once for all nodes of a call.

N texts asked for at a time, U units of the longest, T units that the sentence may use, R nodes.
"""

from collections.abc import Sequence
from typing import Generic, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.batches import Ids
from nmt.models.protocols import PrefixTrees, Restrictable, Restricted, State, StepModel
from nmt.text.vocab import BOS, EOS

Ints = NDArray[np.int64]
ROWS = 100  # nodes computed at a time: scores of 30k words for each stay in the processor's cache


class Reader(Protocol[State]):
    """A model that reads the units of one sentence, numbered as the caller numbers them."""

    def start(self) -> State:
        """One row, before the first unit."""
        ...

    def advance(self, state: State, rows: Tensor, units: Tensor | None) -> tuple[Tensor, State]:
        """Some rows, each followed by a unit, None before the first -> what `log_probs` asks for (R, ...),
        and their state."""
        ...

    def reorder(self, state: State, rows: Tensor) -> State:
        """Some rows of a state."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """The rows of all states, one below the other."""
        ...

    def log_probs(self, found: Tensor) -> Tensor:
        """log p of the T units after nodes: (R, ...) -> (R, T)"""
        ...


class Walked(Generic[State]):
    """A model with tries of prefixes: what it makes of a unit alone is computed once a sentence."""

    def __init__(
        self, model: PrefixTrees[State], source: Ids, token_ids: Tensor, output: Restricted | None
    ) -> None:
        first = token_ids.new_tensor([BOS])  # `no previous word`
        self.walk = model.walk([source], torch.cat([first, token_ids]).cpu().numpy())
        self.token_ids, self.output = token_ids, output

    def start(self) -> State:
        return self.walk.start()

    def advance(self, state: State, rows: Tensor, units: Tensor | None) -> tuple[Tensor, State]:
        words = torch.zeros_like(rows) if units is None else units + 1
        return self.walk.advance(state, rows, words, units is None)

    def reorder(self, state: State, rows: Tensor) -> State:
        return self.walk.reorder(state, rows)

    def join(self, states: Sequence[State]) -> State:
        return self.walk.join(list(states))

    def log_probs(self, found: Tensor) -> Tensor:
        if self.output is not None:
            return torch.log_softmax(self.output.scores(found), 1)
        return self.walk.output.log_probs(found).index_select(1, self.token_ids)


class Stepped(Generic[State]):
    """A model that can only step."""

    def __init__(
        self, model: StepModel[State], source: Ids, token_ids: Tensor, output: Restricted | None
    ) -> None:
        self.model, self.source, self.token_ids, self.output = model, source, token_ids, output

    def start(self) -> State:
        return self.model.start([self.source])

    def advance(self, state: State, rows: Tensor, units: Tensor | None) -> tuple[Tensor, State]:
        state, words = self.model.reorder(state, rows), None if units is None else self.token_ids[units]
        if self.output is not None and isinstance(self.model, Restrictable):
            return self.model.features(state, words)
        log_probs, state = self.model.step(state, words)
        return log_probs.index_select(1, self.token_ids), state

    def reorder(self, state: State, rows: Tensor) -> State:
        return self.model.reorder(state, rows)

    def join(self, states: Sequence[State]) -> State:
        return self.model.join(states)

    def log_probs(self, found: Tensor) -> Tensor:
        return found if self.output is None else torch.log_softmax(self.output.scores(found), 1)


def reader_of(
    model: StepModel[State], source: Ids, token_ids: Tensor, restricted: bool
) -> Walked[State] | Stepped[State]:
    """A model as it reads fastest."""
    output = model.restrict(token_ids) if restricted and isinstance(model, Restrictable) else None
    assert (output is not None) == restricted, "not a Restrictable model"
    if isinstance(model, PrefixTrees):
        return Walked(model, source, token_ids, output)
    return Stepped(model, source, token_ids, output)


class PrefixStates(Generic[State]):
    """The prefixes of one sentence. A prefix is a number; 0 is the empty one. Prefixes of the same units have
    the same number."""

    root = 0

    def __init__(
        self, model: StepModel[State], source: Ids, token_ids: Sequence[int], restricted: bool = False
    ) -> None:
        """`token_ids` (T,): the units that may follow, the end symbol among them. `restricted`: their
        probabilities sum to one, as if there were no other units; for a `Restrictable` model."""
        self.device = model.device
        self.size, self.end = len(token_ids), list(token_ids).index(EOS)
        self.edges = [-1]  # of each node: its parent * T + its unit
        self.nodes: dict[int, int] = {}  # by edge
        self.rows = [0]  # of each node: its row in states and `log_probs`; -1: not read yet
        self.states: list[State] = []  # of the nodes that were read together
        self.first = [0]  # the first row of each of them, and the number of all rows
        self.waiting: list[Tensor] = []  # what probabilities have yet to be computed from
        self.log_probs = np.empty((0, self.size), np.float32)
        with torch.no_grad():
            self.reader: Reader[State] = reader_of(
                model, source, torch.tensor(token_ids, device=self.device), restricted
            )
            self.keep(*self.reader.advance(self.reader.start(), self.tensor(np.zeros(1, np.int64)), None))

    @torch.no_grad()
    def follow(self, nodes: Ints, units: Ints, end: bool) -> tuple[NDArray[np.float64], Ints]:
        """Natural log p of texts that follow prefixes: prefixes (N,), units (N, U) as places in `token_ids`,
        -1 where a text has no more -> (N,), and the prefixes with the texts (N,). `end`: with the end
        symbol."""
        nodes = nodes.copy()
        asked: list[tuple[Ints, Ints]] = []  # which texts, and the edges that they take
        for column in units.T:
            there = np.flatnonzero(column >= 0)
            edges = nodes[there] * self.size + column[there]
            asked.append((there, edges))
            self.read(nodes[there])
            nodes[there] = self.children(edges)
        if end:
            asked.append((np.arange(len(nodes)), nodes * self.size + self.end))
            self.read(nodes)
        self.finish()
        total = np.zeros(len(nodes))
        for there, edges in asked:
            rows = [self.rows[node] for node in (edges // self.size).tolist()]
            total[there] += self.log_probs[rows, edges % self.size]
        return total, nodes

    def children(self, edges: Ints) -> Ints:
        """The nodes at the ends of edges."""
        found = edges.tolist()
        for edge in found:
            if edge not in self.nodes:
                self.nodes[edge] = len(self.edges)
                self.edges.append(edge)
                self.rows.append(-1)
        return np.array([self.nodes[edge] for edge in found], np.int64)

    def read(self, nodes: Ints) -> None:
        """Read those nodes that have not been read. Their parents have been: one step of the decoder."""
        new = sorted({node for node in nodes.tolist() if self.rows[node] < 0})
        for at in range(0, len(new), ROWS):
            block = new[at : at + ROWS]
            edges = np.array([self.edges[node] for node in block])
            parents = np.array([self.rows[node] for node in (edges // self.size).tolist()])
            state, rows = self.states_of(parents)
            for row, node in enumerate(block, self.first[-1]):
                self.rows[node] = row
            self.keep(*self.reader.advance(state, rows, self.tensor(edges % self.size)))

    def states_of(self, rows: Ints) -> tuple[State, Tensor]:
        """A state that has the given rows, and where they are in it."""
        group = np.searchsorted(self.first, rows, side="right") - 1
        used, where = np.unique(group, return_inverse=True)
        if len(used) == 1:
            return self.states[used[0]], self.tensor(rows - self.first[used[0]])
        # Only the rows that are needed: of a Transformer each holds all words before it.
        order = np.argsort(group, kind="stable")
        parts = np.split(rows[order] - np.array(self.first)[group[order]], np.cumsum(np.bincount(where))[:-1])
        joined = self.reader.join(
            [
                self.reader.reorder(self.states[number], self.tensor(part))
                for number, part in zip(used.tolist(), parts, strict=True)
            ]
        )
        return joined, self.tensor(np.argsort(order))

    def keep(self, found: Tensor, state: State) -> None:
        """Remember what a step made."""
        self.states.append(state)
        self.first.append(self.first[-1] + len(found))
        self.waiting.append(found)

    def finish(self) -> None:
        """The probabilities after all nodes that have been read."""
        if self.waiting:
            blocks = torch.cat(self.waiting).split(ROWS)
            self.waiting = []
            more = [self.reader.log_probs(block).cpu().numpy() for block in blocks]
            self.log_probs = np.concatenate([self.log_probs, *more])

    def tensor(self, values: Ints) -> Tensor:
        return torch.from_numpy(values).to(self.device)
