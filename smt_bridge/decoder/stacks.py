"""Stacks of the compiled search: hypotheses are added, recombined, and pruned."""

import numpy as np

from smt_bridge.decoder.arrays import (
    EDGES,
    FULL,
    HYPOTHESES,
    Floats,
    Int32s,
    Int64s,
    SearchParameters,
    State,
)
from smt_bridge.decoder.automaton import MIX, Automaton
from smt_bridge.decoder.compiled import njit


@njit
def add(S: State, lms: tuple[Automaton, ...], parameters: SearchParameters, forward_id: Int32s, parent: int,
option: int, coverage: int, begin: int, end: int, score: float, total: float, context: Int32s, key: int,
edge_score: float) -> int:  # fmt: skip
    """Put a hypothesis into its stack, or recombine it with the one that nothing still to come can tell from
    it. Returns its number; -1 where another way to it is better, or memory is full."""
    kept = forward_id[option] if parameters.reordering else -1
    mixed = np.int64(coverage) * MIX + np.int64(end) * np.int64(6364136223846793005) + key
    if parameters.reordering:
        mixed += np.int64(begin) * np.int64(1442695040888963407) + np.int64(kept) * np.int64(
            3935559000370003845
        )
    for model in range(len(lms)):
        mixed = (mixed ^ (mixed >> np.int64(31))) * MIX + np.int64(context[model])
    mixed = (mixed ^ (mixed >> np.int64(29))) * MIX
    size = len(S.table) - 1
    place = (mixed >> np.int64(20)) & size
    found = best = -1
    while found < 0 and S.table[place] != -1:
        other = S.table[place]
        same = S.coverage[other] == coverage and S.end[other] == end and S.key[other] == key
        if same and parameters.reordering:
            same = S.begin[other] == begin and forward_id[S.option[other]] == kept
        for model in range(len(lms)):
            same = same and S.context[other, model] == context[model]
        if same:
            found = other
        place = (place + 1) & size
    if found < 0:
        best = found = S.counters[HYPOTHESES]
        if found >= len(S.coverage):
            S.counters[FULL] = 1
            return -1
        S.counters[HYPOTHESES] = found + 1
        S.table[place] = found
        S.coverage[found], S.begin[found], S.end[found] = coverage, begin, end
        S.option[found], S.parent[found], S.score[found], S.total[found] = option, parent, score, total
        S.context[found] = context
        S.key[found], S.edge[found], S.listed[found] = key, -1, 0
    elif score > S.score[found]:
        best = found
        S.score[found], S.total[found], S.parent[found], S.option[found] = score, total, parent, option
    stack = S.covered[coverage]
    if S.listed[found] == 0 and S.total[found] >= S.worst[stack]:
        S.listed[found], S.following[found], S.head[stack] = 1, S.head[stack], found
        S.size[stack] += 1
    if S.total[found] > S.best[stack]:
        S.best[stack] = S.total[found]
        S.worst[stack] = max(S.worst[stack], S.best[stack] + parameters.beam)
    if parameters.edges:
        edge = S.counters[EDGES]
        if edge >= len(S.edge_parent):
            S.counters[FULL] = 1
            return -1
        S.counters[EDGES] = edge + 1
        S.edge_parent[edge], S.edge_option[edge], S.edge_score[edge] = parent, option, edge_score
        S.edge_next[edge], S.edge[found] = S.edge[found], edge
    if parameters.stack > 0 and S.size[stack] >= 2 * parameters.stack + 50:
        cut(S, parameters, stack)
    return best


@njit
def members(S: State, stack: int) -> Int32s:
    """The hypotheses of a stack, oldest first."""
    ids = np.empty(S.size[stack], np.int32)
    hypothesis, count = S.head[stack], 0
    while hypothesis != -1:
        ids[count] = hypothesis
        count += 1
        hypothesis = S.following[hypothesis]
    ids = ids[:count]
    ids.sort()
    return ids


@njit
def cut(S: State, parameters: SearchParameters, stack: int) -> None:
    """Keep the best of a stack; nothing below the last of them can survive any more."""
    ids = members(S, stack)
    order = np.argsort(-S.total[ids], kind="mergesort")
    S.head[stack], S.size[stack] = -1, 0
    for rank in range(len(ids)):
        hypothesis = ids[order[rank]]
        if rank < parameters.stack and S.total[hypothesis] >= S.worst[stack]:
            S.following[hypothesis] = S.head[stack]
            S.head[stack] = hypothesis
            S.size[stack] += 1
        else:
            S.listed[hypothesis] = 0
    if len(ids) >= parameters.stack:
        S.worst[stack] = max(S.worst[stack], S.total[ids[order[parameters.stack - 1]]])


@njit
def select(S: State, parameters: SearchParameters, stack: int) -> Int32s:
    """The hypotheses of a stack that are extended, best first."""
    ids = members(S, stack)
    order = np.argsort(-S.total[ids], kind="mergesort")
    least = S.best[stack] + parameters.beam
    count = 0
    for rank in range(len(ids)):
        if (parameters.stack > 0 and rank >= parameters.stack) or S.total[ids[order[rank]]] < least:
            break
        count += 1
    return ids[order[:count]]


@njit
def add_candidates(S: State, lms: tuple[Automaton, ...], parameters: SearchParameters, forward_id: Int32s,
chosen: Int64s, gains: Floats, keys: Int64s,
states: Int64s) -> None:  # fmt: skip
    """Candidates that stateful features have scored become hypotheses: chosen (N,), gains (N,) weighted, keys
    (N,), states (N, F)."""
    for number in range(len(chosen)):
        candidate = chosen[number]
        parent, coverage = S.c_parent[candidate], S.c_coverage[candidate]
        score = S.c_score[candidate] + gains[number]
        total = score + S.future[coverage]
        if total < S.worst[S.covered[coverage]]:
            continue
        made = add(
            S, lms, parameters, forward_id, parent, S.c_option[candidate], coverage,
            S.c_begin[candidate], S.c_end[candidate], score, total,
            S.c_context[candidate], keys[number], score - S.score[parent],
        )  # fmt: skip
        if made >= 0:
            for feature in range(states.shape[1]):
                S.memory[made, feature] = states[number, feature]
        if S.counters[FULL]:
            return
