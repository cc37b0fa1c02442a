"""Runs the compiled search: short calls of compiled code fill the stacks of a sentence, in memory that each
thread keeps for the next sentence.

Without stateful features, the calls simply go through all stacks. With them, each stack takes two stages.
First all candidates are scored without these features, the first language model standing in for those that
ask for it, and the best `neural_beam` candidates survive; those that cannot be among these are dropped at
once. Then the features score the survivors in one batch, those with wider beams first. A feature with a
narrower beam scores only the best candidates so far, ranked with its own preview if it has one. The survivors
are then recombined, now also by the features' states, and ranked again. With unlimited beams the result is
the same as if every candidate were scored at once.
"""

import heapq
import threading

import numpy as np

from nmt.compute.compiled import HAVE_NUMBA, go_on, njit
from nmt.ngram.compiled_queries import MIX
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
from smt_bridge.decoder.automaton import Automaton
from smt_bridge.decoder.cube import Cubes, allocate_cubes, fill_stack, open_edges, start_cubes, start_stack
from smt_bridge.decoder.features.protocol import Candidates, check_gains, check_values
from smt_bridge.decoder.model import Listing, SearchModel, SearchTask
from smt_bridge.decoder.search import add_candidates, expand_from, option_gains, search, select, start_search

Paths = tuple[list[Int32s], list[float]]  # options in target order and total of each derivation, best first
LM_SLOTS = 4  # the search is compiled for multiples of this number of language models


class ThreadMemory(threading.local):
    """The arrays of one thread, and the factor by which they have grown from their initial size."""

    factor = 1
    state: SearchState | None = None
    cubes: Cubes | None = None


def compiled_search(model: SearchModel) -> "CompiledSearch | None":
    """The compiled search of a model; None without numba, or if a language model is not an automaton."""
    return CompiledSearch(model.automata) if HAVE_NUMBA and model.automata is not None else None


class CompiledSearch:
    """Compiled search over language models that are automata. Several threads may share it."""

    def __init__(self, automata: tuple[Automaton, ...]) -> None:
        self.models, self.piece = len(automata), SLICE  # options that one call of compiled code tries
        # Compiled code is made for one number of language models. Copies of the first, never queried, fill
        # the tuple up to a multiple of LM_SLOTS.
        self.lms = automata + automata[:1] * (-len(automata) % LM_SLOTS)
        self.memory = ThreadMemory()

    def search(self, task: SearchTask, listing: Listing, stop: threading.Event | None = None) -> Paths:
        """Find the best derivations: their options in target order, and their totals. Both lists are empty if
        walls and zones leave no way to translate the whole sentence. If memory runs out, the search is
        repeated with twice as much. Raises Stopped once `stop` is set."""
        state = self.thread_state(task)
        while True:
            if task.parameters.pops:
                self.fill_cubes(state, task, stop)
            elif task.scorers:
                self.fill_deferred(state, task, stop)
            else:
                self.fill(state, task, stop)
            if not state.counters[FULL]:
                return list_derivations(state, task, listing)
            self.memory.factor *= 2
            state = self.thread_state(task, True)

    def thread_state(self, task: SearchTask, new: bool = False) -> SearchState:
        """This thread's arrays, reallocated if `new` is set or if they are too small for the sentence."""
        words, state, factor = task.parameters.words, self.memory.state, self.memory.factor
        if (
            new
            or state is None
            or len(state.stacks) <= words
            or (task.parameters.edges and not len(state.edges))
        ):
            state = self.memory.state = allocate(
                StateSizes(
                    hypotheses=30_000 * factor,
                    edges=60_000 * factor if task.parameters.edges else 0,
                    coverages=6_000 * factor,
                    moves=60_000 * factor,
                    candidates=60_000 * factor if task.parameters.deferred else 0,
                    words=max(words, 100),
                    contexts=30_000 * factor,
                    scores=64_000 * factor,
                    models=self.models,
                    features=len(task.scorers),
                    regions=30_000 * factor if task.parameters.regions else 1,
                    scored=task.model.beam if task.parameters.deferred else 0,
                )
            )
        return state

    def fill(self, state: SearchState, task: SearchTask, stop: threading.Event | None) -> None:
        """Fill all stacks. Sets `state.counters[FULL]` if memory runs out."""
        stack = rank = 0
        options, parameters, weights = task.options, task.parameters, task.model.lm_weights
        gains = option_gains(options, parameters)
        # `search` resets the counters when it begins, so FULL may be that of an earlier search until then.
        while stack < parameters.words and not (stack and state.counters[FULL]):
            go_on(stop)
            stack, rank = search(
                state, options, gains, self.lms, weights, parameters, stack, rank, self.piece
            )

    def fill_cubes(self, state: SearchState, task: SearchTask, stop: threading.Event | None) -> None:
        """Fill all stacks by cube pruning. Sets `state.counters[FULL]` if memory runs out."""
        options, parameters, weights = task.options, task.parameters, task.model.lm_weights
        cubes = self.memory.cubes
        if (
            cubes is None
            or len(cubes.first_edge) != len(state.stacks)
            or len(cubes.member) != len(state.hypotheses)
        ):
            cubes = self.memory.cubes = allocate_cubes(state, 60_000 * self.memory.factor)
        gains, room = option_gains(options, parameters), np.zeros(self.models, np.int32)
        start_search(state, options, self.lms, parameters, room)
        start_cubes(cubes)
        for stack in range(1, parameters.words + 1):
            open_edges(state, cubes, options, parameters, stack - 1)
            start_stack(state, cubes, parameters, stack)
            complete = False
            while not complete and not state.counters[FULL]:
                go_on(stop)
                complete = fill_stack(
                    state, cubes, options, gains, self.lms, weights, parameters, stack, self.piece // 10,
                    room,
                )  # fmt: skip
            if state.counters[FULL]:
                return

    def fill_deferred(self, state: SearchState, task: SearchTask, stop: threading.Event | None) -> None:
        """Fill all stacks, rescoring each with the stateful features before it is extended. Sets
        `state.counters[FULL]` if memory runs out."""
        room = np.zeros(self.models, np.int32)
        start_search(state, task.options, self.lms, task.parameters, room)
        gains = option_gains(task.options, task.parameters)
        state.memory[0] = [scorer.start_state for scorer in task.scorers]
        for stack in range(task.parameters.words + 1):
            if stack:
                self.rescore_stack(state, task, stack)
            if stack == task.parameters.words:
                return
            rank = 0
            while rank >= 0 and not state.counters[FULL]:
                go_on(stop)
                rank = expand_from(
                    state, task.options, gains, self.lms, task.model.lm_weights, task.parameters,
                    stack, rank, room, self.piece,
                )  # fmt: skip
            if state.counters[FULL]:
                return

    def rescore_stack(self, state: SearchState, task: SearchTask, stack: int) -> None:
        """Score the best candidates of a stack with the stateful features and turn them into hypotheses. Sets
        `state.counters[FULL]` if memory runs out. ConfigError if a feature gives scores of another shape, or
        that are not finite."""
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
                survivors = best_indices(
                    gains + previewed_totals(state, task, stack, number, chosen, missing), beam
                )
                chosen, gains = chosen[survivors], gains[survivors]
                keys, states = keys[survivors], states[survivors]
            scored = check_gains(
                weighted.feature, scorer.gains(candidates(state, task, stack, number, chosen))
            )
            gains += check_values(weighted.feature, scored.values, len(chosen)) @ weighted.weights
            keys = (keys ^ (keys >> 31)) * MIX + scored.recombined + 1
            states[:, number] = scored.states
            missing -= task.model.stand_in_weight(number)
        add_candidates(state, task.parameters, task.options.forward_id, chosen, gains, keys, states)


def previewed_totals(
    state: SearchState, task: SearchTask, stack: int, number: int, chosen: Int64s, missing: float
) -> Floats:
    """Estimate the totals (N,) of the candidates of indices `chosen` (N,) before feature `number` scores
    them, using its own preview, if it has one. `missing`: weight of the stand-in for all features that have
    not scored yet."""
    scorer, weights = task.scorers[number], task.model.stateful[number].weights
    preview = scorer.preview(candidates(state, task, stack, number, chosen))
    if preview is None:
        return expected_totals(state, task, chosen, missing)
    values, rest = preview
    previewed = task.model.stand_in_weight(number) * (1 - rest)
    return expected_totals(state, task, chosen, missing - previewed) + values @ weights


def candidates(state: SearchState, task: SearchTask, stack: int, number: int, chosen: Int64s) -> Candidates:
    """Convert the candidates of indices `chosen` (N,), all of one stack, to the form that stateful features
    take. `number`: index of the feature."""
    states = state.memory[state.candidates.parent[chosen], number]
    return Candidates(
        state.candidates.option[chosen].astype(np.int64), states, stack == task.parameters.words
    )


def best_candidates(state: SearchState, stack: int, beam: int) -> Int64s:
    """Indices of a stack's `beam` best candidates, or of all if it is 0; oldest first."""
    stacks = state.candidates.stack[: int(state.counters[CANDIDATES])]
    chosen = np.flatnonzero(stacks == stack).astype(np.int64)
    return chosen[best_indices(state.candidates.total[chosen], beam)] if 0 < beam < len(chosen) else chosen


def expected_totals(state: SearchState, task: SearchTask, chosen: Int64s, missing: float | Floats) -> Floats:
    """Estimate the totals of the candidates of indices `chosen`: (N,) -> (N,). The first language model,
    weighted by `missing` (a number, or (N,)), stands in for stateful features that have not scored yet."""
    rows, whole = state.candidates, task.model.stand_in
    base: Floats = rows.score[chosen] + state.coverages.future[rows.coverage[chosen]]
    return base + (missing / whole) * (rows.total[chosen] - base) if whole else base


def best_indices(scores: Floats, count: int) -> Int64s:
    """The indices of the `count` best of more scores, in increasing order; of equals the first ones."""
    least = np.partition(scores, -count)[-count]
    better, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([better, equal[: count - len(better)]])).astype(np.int64)


def list_derivations(state: SearchState, task: SearchTask, listing: Listing) -> Paths:
    """List the best derivation of filled stacks, or the n best if `listing.nbest` is not 0."""
    parameters, options = task.parameters, task.options
    if not listing.nbest:
        finals = select(state, parameters, parameters.words)
        if not len(finals):
            return [], []
        return [best_option_path(state, finals[0])], [float(state.hypotheses.score[finals[0]])]
    paths, totals = derivations(
        state, parameters, listing.nbest, listing.distinct, listing.factor,
        options.start, options.length, task.sentence.text,
    )  # fmt: skip
    return paths, totals.tolist()


# ---- derivations -------------------------------------------------------------------------------------------
# The n best derivations of a sentence, by best-first search backwards through the filled stacks. The forward
# scores are a perfect heuristic, so the order is exact.


BASE = np.uint64(1099511628211)  # of the hash that identifies texts
SPREAD = np.uint64(11400714819323198485)


@njit
def best_option_path(S: SearchState, hypothesis: int) -> Int32s:
    """The options of the best derivation of a hypothesis, in target order."""
    length, current = 0, hypothesis
    while current > 0:
        length += 1
        current = S.hypotheses[current].parent
    path = np.empty(length, np.int32)
    current = hypothesis
    while current > 0:
        length -= 1
        path[length] = S.hypotheses[current].option
        current = S.hypotheses[current].parent
    return path


@njit
def sort_ways(S: SearchState, hypothesis: int, scores: list[float], edges: list[int]) -> None:
    """Append the scores and edges of all ways to reach a hypothesis, best first, to `scores` and `edges`."""
    count = 0
    edge = S.hypotheses[hypothesis].edge
    while edge >= 0:
        count += 1
        edge = S.edges[edge].next
    totals, numbers = np.empty(count), np.empty(count, np.int64)
    edge = S.hypotheses[hypothesis].edge
    for i in range(count):
        totals[count - 1 - i] = S.hypotheses[S.edges[edge].parent].score + S.edges[edge].score
        numbers[count - 1 - i] = edge
        edge = S.edges[edge].next
    order = np.argsort(-totals, kind="mergesort")
    for i in range(count):
        scores.append(totals[order[i]])
        edges.append(numbers[order[i]])


@njit
def prepend_digest(digest: np.uint64, size: int, words: Int32s) -> np.uint64:
    """Return the hash of a text with `words` prepended to it. `digest`: hash of the text, 0 if it is empty;
    `size`: its number of words."""
    power = np.uint64(1)
    for _ in range(size):
        power *= BASE
    for i in range(len(words) - 1, -1, -1):
        digest += power * (np.uint64(words[i]) + np.uint64(1)) * SPREAD
        power *= BASE
    return digest


@njit
def suffix_options(option: list[int], after: list[int], node: int) -> Int32s:
    """The options of a node and of all after it. `option[node]`: its option; `after[node]`: the next node."""
    size, current = 0, node
    while after[current] >= 0:
        size += 1
        current = after[current]
    options, current = np.empty(size, np.int32), node
    for i in range(size):
        options[i] = option[current]
        current = after[current]
    return options


@njit
def derivations(S: SearchState, parameters: SearchParameters, count: int, distinct: bool, factor: int,
start: Int32s, length: Int32s, text: Int32s) -> tuple[list[Int32s], Floats]:  # fmt: skip
    """List up to `count` derivations, best first: returns the options of each in target order, and their
    totals. Both are empty if the last stack is. The stacks must have been filled with `parameters.edges`.

    `text[start[o] : start[o] + length[o]]` are the target words of option o. `distinct`: list each text once,
    looking only at the first count x factor derivations.
    """
    # Lists begin with an entry or are cleared of an example, from which numba infers their types.
    # A node is an option and the node after it, with the edge score, length and hash of the text from there.
    option, after = [-1], [-1]
    tail, size, digest = [0.0], [0], [np.uint64(0)]
    ways, way_edge = [0.0], [0]  # ways to reach hypothesis h, best first: first_way[h] until last_way[h]
    first_way, last_way = np.full(S.counters[0], -1, np.int64), np.zeros(S.counters[0], np.int64)
    heap = [(0.0, 0, 0, 0, 0)]
    heap.clear()  # -score, age, hypothesis, its next way, the node after it
    age = 0
    for final in select(S, parameters, parameters.words):
        heapq.heappush(heap, (-S.hypotheses[final].score, age, int(np.int64(final)), 0, 0))
        age += 1
    seen = {np.uint64(0)}
    seen.clear()
    chosen, totals = [np.empty(0, np.int32)], np.zeros(count)
    chosen.clear()
    examined = 0
    while len(heap) > 0 and len(chosen) < count:
        negative, _, here, way, node = heapq.heappop(heap)
        if here == 0:
            examined += 1
            if distinct and examined > count * factor:
                break
            if not distinct or digest[node] not in seen:
                seen.add(digest[node])
                totals[len(chosen)] = -negative
                chosen.append(suffix_options(option, after, node))
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
        last = S.edges[edge].option
        words = text[start[last] : start[last] + length[last]]
        option.append(int(np.int64(last)))
        after.append(node)
        tail.append(tail[node] + S.edges[edge].score)
        size.append(size[node] + len(words))
        digest.append(prepend_digest(digest[node], size[node], words))
        parent = int(np.int64(S.edges[edge].parent))
        heapq.heappush(heap, (-(ways[index] + tail[node]), age, parent, 0, len(option) - 1))
        age += 1
    return chosen, totals[: len(chosen)]
