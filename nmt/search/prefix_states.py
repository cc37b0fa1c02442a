"""Natural log p of many continuations of a sentence's translation. Each prefix is read once. For searches
with their own hypotheses such as phrase-based decoding (Junczys-Dowmunt et al. 2016).

The prefixes are the nodes of a trie. The decoder's state after a node, and the probabilities of the next
units, are computed on demand. So the first unit of a phrase is looked up in the probabilities after its
parent, phrases with the same beginning share their nodes, and no state is computed after a phrase that
nothing follows. Nodes of one depth are one step of the decoder, and the softmax is computed once for all
nodes of a call.

N texts of a call, U units of the longest, T units that the sentence may use, R nodes.
"""

from collections.abc import Sequence
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.batches import Ids
from nmt.layers.output import OutputLayer
from nmt.models.protocols import Layered, PrefixTrees, State, StepModel
from nmt.text.vocab import BOS, EOS

Ints = NDArray[np.int64]
ROWS = 100  # nodes computed at a time: scores of 30k words for each stay in the processor's cache


class TrieReader(Generic[State]):
    """Reads translations of one sentence, unit by unit, through the model's tries of prefixes: the part of
    the computation that depends on a unit alone is done once for each sentence. A unit is its index among the
    T units that the sentence may use."""

    def __init__(
        self, model: PrefixTrees[State], source: Ids, token_ids: Tensor, output: OutputLayer | None
    ) -> None:
        first = token_ids.new_tensor([BOS])  # `no previous word`
        self.walk = model.walk([source], torch.cat([first, token_ids]).cpu().numpy())
        self.token_ids, self.output = token_ids, output

    def start(self) -> State:
        """One row, before the first unit."""
        return self.walk.start()

    def advance(self, state: State, rows: Tensor, units: Tensor | None) -> tuple[Tensor, State]:
        """Extend the rows at the indices `rows` (R,) by one unit each. `units` (R,): these units; None before
        the first. Returns the input of `log_probs` (R, ...), and the state of these rows."""
        words = torch.zeros_like(rows) if units is None else units + 1
        return self.walk.advance(state, rows, words, units is None)

    def reorder(self, state: State, rows: Tensor) -> State:
        return self.walk.reorder(state, rows)

    def join(self, states: Sequence[State]) -> State:
        return self.walk.join(list(states))

    def log_probs(self, features: Tensor) -> Tensor:
        """log p of the T units after nodes: (R, ...) -> (R, T)"""
        if self.output is not None:
            return torch.log_softmax(self.output.scores(features), 1)
        return self.walk.output.log_probs(features).index_select(1, self.token_ids)


class StepReader(Generic[State]):
    """Reads units step by step, for models without tries; its methods are those of `TrieReader`."""

    def __init__(
        self, model: StepModel[State], source: Ids, token_ids: Tensor, output: OutputLayer | None
    ) -> None:
        self.model, self.source, self.token_ids, self.output = model, source, token_ids, output

    def start(self) -> State:
        return self.model.start([self.source])

    def advance(self, state: State, rows: Tensor, units: Tensor | None) -> tuple[Tensor, State]:
        state, words = self.model.reorder(state, rows), None if units is None else self.token_ids[units]
        if self.output is not None and isinstance(self.model, Layered):
            return self.model.features(state, words)
        log_probs, state = self.model.step(state, words)
        return log_probs.index_select(1, self.token_ids), state

    def reorder(self, state: State, rows: Tensor) -> State:
        return self.model.reorder(state, rows)

    def join(self, states: Sequence[State]) -> State:
        return self.model.join(states)

    def log_probs(self, features: Tensor) -> Tensor:
        return features if self.output is None else torch.log_softmax(self.output.scores(features), 1)


def fastest_reader(
    model: StepModel[State], source: Ids, token_ids: Tensor, restricted: bool
) -> TrieReader[State] | StepReader[State]:
    """Create the fastest reader that the model supports, for a source sentence (ids) and the units
    `token_ids` (T,). `restricted`: the probabilities of these units sum to 1; only for a `Layered` model."""
    layer = model.output_layer if isinstance(model, Layered) else None
    output = layer.restrict(token_ids) if restricted and layer else None
    assert (output is not None) == restricted, "not a Layered model"
    if isinstance(model, PrefixTrees):
        return TrieReader(model, source, token_ids, output)
    return StepReader(model, source, token_ids, output)


class PrefixStates(Generic[State]):
    """The prefixes of one sentence's translations, identified by numbers: 0 is the empty prefix, and prefixes
    with the same units have the same number."""

    root = 0

    def __init__(
        self, model: StepModel[State], source: Ids, token_ids: Sequence[int], restricted: bool = False
    ) -> None:
        """`source`: ids; `token_ids` (T,): the units that may follow, the end symbol among them.
        `restricted`: their probabilities sum to one, as without other units; for a `Layered` model."""
        self.device = model.device
        self.size, self.end = len(token_ids), list(token_ids).index(EOS)
        self.edges = [-1]  # of each node: its parent * T + its unit
        self.nodes: dict[int, int] = {}  # by edge
        self.rows = [0]  # of each node: its row in states and `log_probs`; -1: not read yet
        self.states: list[State] = []  # of nodes that were read together
        self.first_rows = [0]  # of each state its first row; at the end the number of all rows
        self.pending: list[Tensor] = []  # features whose probabilities have not been computed yet
        self.log_probs = np.empty((0, self.size), np.float32)
        with torch.no_grad():
            ids = torch.tensor(token_ids, device=self.device)
            self.reader = fastest_reader(model, source, ids, restricted)
            self.store(*self.reader.advance(self.reader.start(), self.tensor(np.zeros(1, np.int64)), None))

    @torch.no_grad()
    def follow(self, nodes: Ints, units: Ints, end: bool) -> tuple[NDArray[np.float64], Ints]:
        """Natural log p of texts that follow prefixes: prefixes (N,), units (N, U) as indices in `token_ids`,
        padded with -1 -> (N,), and the prefixes extended by the texts (N,). `end`: include the end symbol."""
        nodes = nodes.copy()
        lookups: list[tuple[Ints, Ints]] = []  # indices of texts, and the edges that they take
        for column in units.T:
            texts = np.flatnonzero(column >= 0)
            edges = nodes[texts] * self.size + column[texts]
            lookups.append((texts, edges))
            self.read(nodes[texts])
            nodes[texts] = self.children(edges)
        if end:
            lookups.append((np.arange(len(nodes)), nodes * self.size + self.end))
            self.read(nodes)
        self.finish()
        total = np.zeros(len(nodes))
        for texts, edges in lookups:
            rows = [self.rows[node] for node in (edges // self.size).tolist()]
            total[texts] += self.log_probs[rows, edges % self.size]
        return total, nodes

    def children(self, edges: Ints) -> Ints:
        """Nodes at the ends of edges, added to the trie where new."""
        edge_list = edges.tolist()
        for edge in edge_list:
            if edge not in self.nodes:
                self.nodes[edge] = len(self.edges)
                self.edges.append(edge)
                self.rows.append(-1)
        return np.array([self.nodes[edge] for edge in edge_list], np.int64)

    def read(self, nodes: Ints) -> None:
        """Read the nodes that are new, whose parents have been read, in steps of at most ROWS nodes."""
        new = sorted({node for node in nodes.tolist() if self.rows[node] < 0})
        for start in range(0, len(new), ROWS):
            batch = new[start : start + ROWS]
            edges = np.array([self.edges[node] for node in batch])
            parents = np.array([self.rows[node] for node in (edges // self.size).tolist()])
            state, rows = self.gather_states(parents)
            for row, node in enumerate(batch, self.first_rows[-1]):
                self.rows[node] = row
            self.store(*self.reader.advance(state, rows, self.tensor(edges % self.size)))

    def gather_states(self, rows: Ints) -> tuple[State, Tensor]:
        """A state that contains the given rows, of several steps perhaps, and their indices in it."""
        group = np.searchsorted(self.first_rows, rows, side="right") - 1
        used, group_index = np.unique(group, return_inverse=True)
        if len(used) == 1:
            return self.states[used[0]], self.tensor(rows - self.first_rows[used[0]])
        # Only the rows that are needed: of a Transformer each holds all words before it.
        order, counts = np.argsort(group, kind="stable"), np.bincount(group_index)
        parts = np.split(rows[order] - np.array(self.first_rows)[group[order]], np.cumsum(counts)[:-1])
        state = self.reader.join(
            [
                self.reader.reorder(self.states[number], self.tensor(part))
                for number, part in zip(used.tolist(), parts, strict=True)
            ]
        )
        return state, self.tensor(np.argsort(order))

    def store(self, features: Tensor, state: State) -> None:
        """Store the results of a step."""
        self.states.append(state)
        self.first_rows.append(self.first_rows[-1] + len(features))
        self.pending.append(features)

    def finish(self) -> None:
        """Compute the probabilities after all nodes that have been read."""
        if self.pending:
            blocks = torch.cat(self.pending).split(ROWS)
            self.pending = []
            new = [self.reader.log_probs(block).cpu().numpy() for block in blocks]
            self.log_probs = np.concatenate([self.log_probs, *new])

    def tensor(self, values: Ints) -> Tensor:
        return torch.from_numpy(values).to(self.device)
