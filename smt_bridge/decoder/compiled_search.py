"""Compiled search from Python: the stacks of a sentence are filled in slices, in memory that a thread keeps.

Without stateful features one call of compiled code after the other goes through all stacks. With them a stack
takes two stages. First every candidate is scored without these features, the first language model standing in
where a feature says so, and the best `neural_beam` survive. Then the features score the survivors together; a
feature with a beam of its own comes after those with a wider one, and scores the best of what they leave, by
what it can tell beforehand too. What survives recombines, the features' states now among what must agree, and
is ranked again. With unlimited beams this equals immediate scoring.
"""

import heapq
import threading

import numpy as np

from smt_bridge.decoder.arrays import (
    CANDIDATES,
    FULL,
    SLICE,
    Floats,
    Int32s,
    Int64s,
    SearchParameters,
    SearchState,
    StateSizes,
    allocate,
)
from smt_bridge.decoder.automaton import MIX, Automaton
from smt_bridge.decoder.compiled import go_on, njit
from smt_bridge.decoder.features.protocol import Candidates, Gains, checked
from smt_bridge.decoder.model import Listing, SearchTask
from smt_bridge.decoder.search import add_candidates, expand_from, search, select, start_search

Paths = tuple[list[Int32s], list[float]]  # options of derivations in target order, and totals; best first


class ThreadMemory(threading.local):
    """A thread's arrays, and by how much they have grown: a multiple of their first size."""

    factor = 1
    state: SearchState | None = None


class CompiledSearch:
    """Compiled search over language models that are automata. Several threads may share it."""

    def __init__(self, automata: tuple[Automaton, ...], piece: int = SLICE) -> None:
        """`piece`: options that one call of compiled code looks at."""
        self.automata, self.piece = automata, piece
        self.memory = ThreadMemory()

    def search(self, task: SearchTask, listing: Listing, stop: threading.Event | None = None) -> Paths:
        """The best derivations; none where walls and zones let no hypothesis cover the sentence. Starts again
        with twice the memory when a sentence needs it."""
        state = self.room(task)
        while True:
            if task.scorers:
                self.fill_deferred(state, task, stop)
            else:
                self.fill(state, task, stop)
            if not state.counters[FULL]:
                return listed_derivations(state, task, listing)
            self.memory.factor *= 2
            state = self.room(task, True)

    def room(self, task: SearchTask, new: bool = False) -> SearchState:
        """This thread's arrays, reallocated where they are too small for the sentence."""
        words, state, factor = task.parameters.words, self.memory.state, self.memory.factor
        needed = [(task.parameters.edges, "edge_parent"), (task.parameters.deferred, "c_stack")]
        if (
            new
            or state is None
            or len(state.head) <= words
            or any(wanted and not len(getattr(state, name)) for wanted, name in needed)
        ):
            state = self.memory.state = allocate(
                StateSizes(
                    hypotheses=30_000 * factor,
                    edges=60_000 * factor if task.parameters.edges else 0,
                    coverages=6_000 * factor,
                    moves=60_000 * factor,
                    candidates=60_000 * factor if task.parameters.deferred else 0,
                    words=max(words, 100),
                    models=len(self.automata),
                    features=len(task.scorers),
                )
            )
        return state

    def fill(self, state: SearchState, task: SearchTask, stop: threading.Event | None) -> None:
        """Fill all stacks; sets `state.counters[FULL]` when memory is too small."""
        stack = rank = 0
        options, parameters, weights = task.options, task.parameters, task.model.lm_weights
        while stack < parameters.words and not (stack and state.counters[FULL]):
            go_on(stop)
            stack, rank = search(state, options, self.automata, weights, parameters, stack, rank, self.piece)

    def fill_deferred(self, state: SearchState, task: SearchTask, stop: threading.Event | None) -> None:
        """Fill all stacks, rescoring each with the stateful features before it is extended."""
        start_search(state, task.options, self.automata, task.parameters)
        state.memory[0] = [scorer.begin for scorer in task.scorers]
        room = np.zeros(len(self.automata), np.int32)
        for stack in range(task.parameters.words + 1):
            if stack:
                self.settle(state, task, stack)
            if stack == task.parameters.words:
                return
            rank = 0
            while rank >= 0 and not state.counters[FULL]:
                go_on(stop)
                rank = expand_from(
                    state, task.options, self.automata, task.model.lm_weights, task.parameters,
                    stack, rank, room, self.piece,
                )  # fmt: skip
            if state.counters[FULL]:
                return

    def settle(self, state: SearchState, task: SearchTask, stack: int) -> None:
        """Score the best candidates of a stack with the stateful features and turn them into hypotheses."""
        chosen = best_candidates(state, stack, task.model.beam)
        if not len(chosen):
            return
        gains, keys = np.zeros(len(chosen)), np.zeros(len(chosen), np.int64)
        states = np.empty((len(chosen), len(task.scorers)), np.int64)
        missing = task.model.stand_in
        for number in task.model.order:
            weighted, scorer = task.model.stateful[number], task.scorers[number]
            beam = weighted.feature.beam
            if 0 < beam < len(chosen):
                survivors = best(gains + foreseen(state, task, stack, number, chosen, missing), beam)
                chosen, gains = chosen[survivors], gains[survivors]
                keys, states = keys[survivors], states[survivors]
            scored: Gains = scorer.gains(candidates(state, task, stack, number, chosen))
            gains += checked(weighted.feature, scored.values, len(chosen)) @ weighted.weights
            keys = (keys ^ (keys >> 31)) * MIX + scored.recombined + 1
            states[:, number] = scored.states
            missing -= task.model.stand_in_of(number)
        add_candidates(
            state, self.automata, task.parameters, task.options.forward_id, chosen, gains, keys, states
        )


def foreseen(
    state: SearchState, task: SearchTask, stack: int, number: int, chosen: Int64s, missing: float
) -> Floats:
    """Estimate the totals of candidates before a feature scores them, using what the feature can preview."""
    scorer, weights = task.scorers[number], task.model.stateful[number].weights
    preview = scorer.preview(candidates(state, task, stack, number, chosen))
    if preview is None:
        return expected(state, task, chosen, missing)
    values, rest = preview
    previewed = task.model.stand_in_of(number) * (1 - rest)
    return expected(state, task, chosen, missing - previewed) + values @ weights


def candidates(state: SearchState, task: SearchTask, stack: int, number: int, chosen: Int64s) -> Candidates:
    """Candidates in the form that a stateful feature takes."""
    states = state.memory[state.c_parent[chosen], number]
    return Candidates(state.c_option[chosen].astype(np.int64), states, stack == task.parameters.words)


def best_candidates(state: SearchState, stack: int, beam: int) -> Int64s:
    """The candidates of a stack, oldest first; with a beam the best ones only."""
    stacks = state.c_stack[: int(state.counters[CANDIDATES])]
    chosen = np.flatnonzero(stacks == stack).astype(np.int64)
    return chosen[best(state.c_total[chosen], beam)] if 0 < beam < len(chosen) else chosen


def expected(state: SearchState, task: SearchTask, chosen: Int64s, missing: float | Floats) -> Floats:
    """Estimate the totals of candidates: the first language model, weighted by `missing` (one weight, or one
    for each candidate (N,)), stands in for stateful features that have not scored yet."""
    base = state.c_score[chosen] + state.future[state.c_coverage[chosen]]
    whole = task.model.stand_in
    return base + (missing / whole) * (state.c_total[chosen] - base) if whole else base


def best(scores: Floats, count: int) -> Int64s:
    """Indices of the `count` best scores, in increasing order."""
    return np.sort(np.argpartition(-scores, count)[:count]).astype(np.int64)


def listed_derivations(state: SearchState, task: SearchTask, listing: Listing) -> Paths:
    """Derivations of filled stacks: the best one, or an n-best list."""
    parameters, options = task.parameters, task.options
    if not listing.nbest:
        finals = select(state, parameters, parameters.words)
        if not len(finals):
            return [], []
        return [best_option_path(state, finals[0])], [float(state.score[finals[0]])]
    paths, totals = derivations(
        state, parameters, listing.nbest, listing.distinct, listing.factor,
        options.start, options.length, task.sentence.text,
    )  # fmt: skip
    return paths, totals.tolist()


# ---- derivations -------------------------------------------------------------------------------------------
# The best derivations of a searched sentence, best first. The order is exact: best-first search backwards is
# guided by the forward scores.


BASE = np.uint64(1099511628211)  # of the hash by which texts are told apart
SPREAD = np.uint64(11400714819323198485)


@njit
def best_option_path(S: SearchState, hypothesis: int) -> Int32s:
    """The options of the best way to a hypothesis, first to last."""
    length, here = 0, hypothesis
    while here > 0:
        length += 1
        here = S.parent[here]
    path = np.empty(length, np.int32)
    here = hypothesis
    while here > 0:
        length -= 1
        path[length] = S.option[here]
        here = S.parent[here]
    return path


@njit
def sort_ways(S: SearchState, hypothesis: int, scores: list[float], edges: list[int]) -> None:
    """Append the ways to reach a hypothesis, best first: their scores, and their edges."""
    count = 0
    edge = S.edge[hypothesis]
    while edge >= 0:
        count += 1
        edge = S.edge_next[edge]
    totals, numbers = np.empty(count), np.empty(count, np.int64)
    edge = S.edge[hypothesis]
    for i in range(count):
        totals[count - 1 - i] = S.score[S.edge_parent[edge]] + S.edge_score[edge]
        numbers[count - 1 - i] = edge
        edge = S.edge_next[edge]
    order = np.argsort(-totals, kind="mergesort")
    for i in range(count):
        scores.append(totals[order[i]])
        edges.append(numbers[order[i]])


@njit
def digest_before(digest: np.uint64, size: int, words: Int32s) -> np.uint64:
    """Hash of a text of `size` words with `words` put before it."""
    power = np.uint64(1)
    for _ in range(size):
        power *= BASE
    for i in range(len(words) - 1, -1, -1):
        digest += power * (np.uint64(words[i]) + np.uint64(1)) * SPREAD
        power *= BASE
    return digest


@njit
def options_from(option: list[int], after: list[int], node: int) -> Int32s:
    """The options of a node and of the nodes after it."""
    size, walk = 0, node
    while after[walk] >= 0:
        size += 1
        walk = after[walk]
    options, walk = np.empty(size, np.int32), node
    for i in range(size):
        options[i] = option[walk]
        walk = after[walk]
    return options


@njit
def derivations(S: SearchState, parameters: SearchParameters, count: int, distinct: bool, factor: int,
start: Int32s, length: Int32s, text: Int32s) -> tuple[list[Int32s], Floats]:  # fmt: skip
    """Up to `count` derivations, at least one: the options of each, and their totals.

    `text[start[o] : start[o] + length[o]]` are the target words of option o. `distinct`: one for each text,
    out of the first count x factor derivations.
    """
    # A node: an option, the node after it, and of the text from there on edge scores, words, and hash.
    option, after = [-1], [-1]
    tail, size, digest = [0.0], [0], [np.uint64(0)]
    ways, way_edge = [0.0], [0]  # sorted ways into hypotheses, from first_way to last_way
    first_way, last_way = np.full(S.counters[0], -1, np.int64), np.zeros(S.counters[0], np.int64)
    heap = [(0.0, 0, 0, 0, 0)]
    heap.clear()  # -score, age, hypothesis, the next of its ways, node after it
    age = 0
    for final in select(S, parameters, parameters.words):
        heapq.heappush(heap, (-S.score[final], age, int(np.int64(final)), 0, 0))
        age += 1
    seen = {np.uint64(0)}
    seen.clear()
    chosen, totals = [np.empty(0, np.int32)], np.zeros(count)
    chosen.clear()
    looked = 0
    while len(heap) > 0 and len(chosen) < count:
        negative, _, here, way, node = heapq.heappop(heap)
        if here == 0:
            looked += 1
            if distinct and looked > count * factor:
                break
            if not distinct or digest[node] not in seen:
                seen.add(digest[node])
                totals[len(chosen)] = -negative
                chosen.append(options_from(option, after, node))
            continue
        if first_way[here] < 0:
            first_way[here] = len(ways)
            sort_ways(S, here, ways, way_edge)
            last_way[here] = len(ways)
        index = first_way[here] + way
        if index + 1 < last_way[here]:
            heapq.heappush(heap, (-(ways[index + 1] + tail[node]), age, here, way + 1, node))
            age += 1
        edge = way_edge[index]
        last = S.edge_option[edge]
        words = text[start[last] : start[last] + length[last]]
        option.append(int(np.int64(last)))
        after.append(node)
        tail.append(tail[node] + S.edge_score[edge])
        size.append(size[node] + len(words))
        digest.append(digest_before(digest[node], size[node], words))
        parent = int(np.int64(S.edge_parent[edge]))
        heapq.heappush(heap, (-(ways[index] + tail[node]), age, parent, 0, len(option) - 1))
        age += 1
    return chosen, totals[: len(chosen)]
