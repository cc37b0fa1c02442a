"""Stack search, compiled (section 2.3.1; Koehn et al. 2003; the rules of Moses' normal stack search).

A hypothesis has translated some of the source words. Hypotheses with as many words stand in one stack; of
each stack the best are extended by an option of an untranslated span. What cannot be told apart by anything
still to come recombines: the same words translated, the same last phrase (as far as distortion and reordering
ask), the same language model states.

A coverage is the first untranslated word and 64 bits for the words from there on, so sentences may have any
length. Coverages have numbers, and what can be translated next, and its future cost, is worked out once for
each.

`State` holds all arrays. When one is too small, a function says so by `counters[FULL]`, and the caller
repeats with larger ones.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.automaton import MIX, step
from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.constraints import Constraints, permits

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

# places in State.counters
HYPOTHESES, EDGES, COVERAGES, MOVES, CANDIDATES, FULL, WORK = range(7)
SLICE = 2_000_000  # options looked at by one call: a fifth of a second, so that signals are obeyed
NOTHING = -1e300  # below every score
MONOTONE, SWAP, DISCONTINUOUS = range(3)


class Options(NamedTuple):
    """The O translation options of a sentence of n words, by span; spans have at most M words."""

    score: Floats  # (O,) weighted: table, word and phrase penalty
    bound: Floats  # (O,) no context gives the language models more, weighted
    backward: Floats  # (O, 3) weighted reordering of this phrase after the one before
    forward: Floats  # (O, 3) of the phrase after this one
    forward_id: Int32s  # (O,)
    start: Int32s  # (O,) words of the option: words[start : start + length]
    length: Int32s  # (O,)
    words: Int32s  # (L, W) numbers of the words in each of L language models
    first: Int32s  # (n * M,) first option of a span, at word * M + its words - 1
    number: Int32s  # (n * M,)
    future: Floats  # (n, n) best score of each span, any distortion
    constraints: Constraints  # of reordering


class Limits(NamedTuple):
    words: int  # n
    longest: int  # M
    stack: int
    beam: float  # natural logarithm
    distortion: int  # limit; -1: none
    distortion_weight: float
    early: bool  # early distortion cost
    reordering: bool
    edges: bool  # keep what n-best lists need
    deferred: bool  # candidates wait to be scored by `settle`, see neural.py
    stand_in: float  # weight of the first language model where neural ones have not spoken yet


class State(NamedTuple):
    counters: Int64s
    # hypotheses
    coverage: Int32s
    begin: Int32s  # first source word of the last phrase
    end: Int32s
    option: Int32s
    parent: Int32s
    score: Floats
    total: Floats  # with future cost
    context: Int32s  # (H, L) language model states
    extra: Int64s  # (H,) what neural language models remember, as a hash
    following: Int32s  # next of the stack
    listed: Int32s
    edge: Int32s  # first way to reach it
    table: Int32s  # hash table of hypotheses
    # edges: ways to reach a hypothesis
    edge_parent: Int32s
    edge_option: Int32s
    edge_score: Floats
    edge_next: Int32s
    # coverages
    gap: Int32s  # first untranslated word
    mask: NDArray[np.uint64]
    covered: Int32s  # how many words
    future: Floats
    first_move: Int32s
    moves: Int32s
    coverage_table: Int32s
    # moves: spans that a coverage lets translate
    move_start: Int32s
    move_end: Int32s
    move_coverage: Int32s
    # stacks
    head: Int32s
    size: Int32s
    worst: Floats  # what is below cannot survive
    best: Floats
    # candidates
    c_stack: Int32s
    c_coverage: Int32s
    c_parent: Int32s
    c_option: Int32s
    c_begin: Int32s
    c_end: Int32s
    c_score: Floats
    c_total: Floats
    c_context: Int32s


def allocate(
    hypotheses: int, edges: int, coverages: int, moves: int, candidates: int, models: int, words: int
) -> State:
    def ints(size: int) -> Int32s:
        return np.zeros(size, np.int32)

    def floats(size: int) -> Floats:
        return np.zeros(size)

    H, E, C, M, Q = hypotheses, edges, coverages, moves, candidates
    return State(
        np.zeros(7, np.int64), ints(H), ints(H), ints(H), ints(H), ints(H), floats(H), floats(H),
        np.zeros((H, models), np.int32), np.zeros(H, np.int64),
        ints(H), ints(H), ints(H), ints(1 << int(2 * H - 1).bit_length()), ints(E), ints(E), floats(E),
        ints(E), ints(C), np.zeros(C, np.uint64), ints(C),
        floats(C), ints(C), ints(C), ints(1 << int(2 * C - 1).bit_length()), ints(M), ints(M), ints(M),
        ints(words + 1), ints(words + 1), floats(words + 1),
        floats(words + 1), ints(Q), ints(Q), ints(Q), ints(Q), ints(Q), ints(Q), floats(Q), floats(Q),
        np.zeros((Q, models), np.int32),
    )  # fmt: skip


@njit
def find_coverage(S: Any, gap: int, mask: Any, future: Any, n: int) -> Any:
    """The number of a coverage, with its future cost; -1 when there is no room for a new one."""
    size = len(S.coverage_table) - 1
    place = ((np.int64(mask) * MIX + np.int64(gap) * np.int64(7919)) >> np.int64(17)) & size
    while S.coverage_table[place] != -1:
        number = S.coverage_table[place]
        if S.gap[number] == gap and S.mask[number] == mask:
            return np.int64(number)
        place = (place + 1) & size
    number = S.counters[COVERAGES]
    if number >= len(S.gap):
        S.counters[FULL] = 1
        return np.int64(-1)
    S.counters[COVERAGES] = number + 1
    S.coverage_table[place] = number
    S.gap[number], S.mask[number], S.first_move[number] = gap, mask, -1
    covered, cost = gap, 0.0
    word, rest = gap, mask
    one = np.uint64(1)
    while word < n:  # gaps between translated words, then the rest
        if rest == 0:
            cost += future[word, n - 1]
            break
        if rest & one:
            covered += 1
            word += 1
            rest >>= one
            continue
        last = word
        while not rest & one:
            last += 1
            rest >>= one
        cost += future[word, last - 1]
        word = last
    S.covered[number] = covered
    S.future[number] = cost
    return np.int64(number)


@njit
def find_moves(S: Any, options: Any, limits: Any, coverage: int) -> None:
    """The spans that may be translated after a coverage, whatever the last phrase was."""
    n, longest, limit = limits.words, limits.longest, limits.distortion
    gap, mask = S.gap[coverage], S.mask[coverage]
    S.first_move[coverage] = S.counters[MOVES]
    constrained = len(options.constraints.wall) > 0
    one = np.uint64(1)
    far = n if limit < 0 else min(n, gap + limit + 1)
    for start in range(gap, far):
        if (mask >> np.uint64(start - gap)) & one:
            continue
        for last in range(start, min(n, start + longest)):
            if last - gap < 64 and (mask >> np.uint64(last - gap)) & one:
                break
            if start != gap and ((limit >= 0 and last + 1 - gap > limit) or last - gap >= 64):
                break  # the first gap could not be reached from there
            span = start * longest + last - start
            if options.number[span] == 0 or (
                constrained and not permits(options.constraints, gap, mask, start, last, limit)
            ):
                continue
            if start == gap:
                shift = last - gap + 1
                new_gap = last + 1
                new_mask = mask >> np.uint64(shift) if shift < 64 else np.uint64(0)
                while new_mask & one:
                    new_mask >>= one
                    new_gap += 1
            else:
                new_gap = gap
                new_mask = mask | (((one << np.uint64(last - start + 1)) - one) << np.uint64(start - gap))
            number = find_coverage(S, new_gap, new_mask, options.future, n)
            move = S.counters[MOVES]
            if number < 0 or move >= len(S.move_start):
                S.counters[FULL] = 1
                return
            S.move_start[move], S.move_end[move], S.move_coverage[move] = start, last, number
            S.counters[MOVES] = move + 1
    S.moves[coverage] = S.counters[MOVES] - S.first_move[coverage]


@njit
def early_distortion(start: int, last: int, before: int, gap: int) -> int:
    """The early distortion cost of a phrase (Moore and Quirk 2007): going on at the first gap is free,
    leaving it costs the way there and back.

    `before`: last word of the phrase before, -1 for none; `gap`: first untranslated word.
    """
    length = last - start + 1
    if start == gap:
        return 0
    if last < before:
        return 2 * length
    return 2 * (start - max(before + 1, gap) + length)


@njit
def add(S: Any, lms: Any, limits: Any, forward_id: Any, parent: int, option: int, coverage: int, begin: int,
end: int, score: float, total: float,
        context: Any, extra: int, edge_score: float) -> None:  # fmt: skip
    """Put a hypothesis into its stack, or recombine it with the one it cannot be told apart from."""
    stack = S.covered[coverage]
    kept = forward_id[option] if limits.reordering else -1
    key = np.int64(coverage) * MIX + np.int64(end) * np.int64(6364136223846793005) + extra
    if limits.reordering:
        key += np.int64(begin) * np.int64(1442695040888963407) + np.int64(kept) * np.int64(
            3935559000370003845
        )
    for model in range(len(lms)):
        key = (key ^ (key >> np.int64(31))) * MIX + np.int64(context[model])
    key = (key ^ (key >> np.int64(29))) * MIX
    size = len(S.table) - 1
    place = (key >> np.int64(20)) & size
    found = -1
    while S.table[place] != -1:
        other = S.table[place]
        if S.coverage[other] == coverage and S.end[other] == end and S.extra[other] == extra:
            same = True
            if limits.reordering:
                same = S.begin[other] == begin and forward_id[S.option[other]] == kept
            for model in range(len(lms)):
                same = same and S.context[other, model] == context[model]
            if same:
                found = other
                break
        place = (place + 1) & size
    if found < 0:
        found = S.counters[HYPOTHESES]
        if found >= len(S.coverage):
            S.counters[FULL] = 1
            return
        S.counters[HYPOTHESES] = found + 1
        S.table[place] = found
        S.coverage[found], S.begin[found], S.end[found], S.option[found], S.parent[found] = (
            coverage,
            begin,
            end,
            option,
            parent,
        )
        S.score[found], S.total[found], S.extra[found], S.edge[found], S.listed[found] = (
            score,
            total,
            extra,
            -1,
            0,
        )
        for model in range(len(lms)):
            S.context[found, model] = context[model]
    elif score > S.score[found]:
        S.score[found], S.total[found], S.parent[found], S.option[found] = score, total, parent, option
    if S.listed[found] == 0 and S.total[found] >= S.worst[stack]:
        S.listed[found] = 1
        S.following[found] = S.head[stack]
        S.head[stack] = found
        S.size[stack] += 1
    if S.total[found] > S.best[stack]:
        S.best[stack] = S.total[found]
        S.worst[stack] = max(S.worst[stack], S.best[stack] + limits.beam)
    if limits.edges:
        edge = S.counters[EDGES]
        if edge >= len(S.edge_parent):
            S.counters[FULL] = 1
            return
        S.counters[EDGES] = edge + 1
        S.edge_parent[edge], S.edge_option[edge], S.edge_score[edge], S.edge_next[edge] = (
            parent,
            option,
            edge_score,
            S.edge[found],
        )
        S.edge[found] = edge
    if limits.stack > 0 and S.size[stack] >= 2 * limits.stack + 50:
        cut(S, limits, stack)


@njit
def members(S: Any, stack: int) -> Any:
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
def cut(S: Any, limits: Any, stack: int) -> None:
    """Leave the best of a stack; nothing below the last of them can survive any more."""
    ids = members(S, stack)
    order = np.argsort(-S.total[ids], kind="mergesort")
    S.head[stack], S.size[stack] = -1, 0
    for rank in range(len(ids)):
        hypothesis = ids[order[rank]]
        if rank < limits.stack and S.total[hypothesis] >= S.worst[stack]:
            S.following[hypothesis] = S.head[stack]
            S.head[stack] = hypothesis
            S.size[stack] += 1
        else:
            S.listed[hypothesis] = 0
    if len(ids) >= limits.stack:
        S.worst[stack] = max(S.worst[stack], S.total[ids[order[limits.stack - 1]]])


@njit
def select(S: Any, limits: Any, stack: int) -> Any:
    """The hypotheses of a stack that are extended, best first."""
    ids = members(S, stack)
    order = np.argsort(-S.total[ids], kind="mergesort")
    count = 0
    for rank in range(len(ids)):
        if (limits.stack > 0 and rank >= limits.stack) or S.total[ids[order[rank]]] < S.best[
            stack
        ] + limits.beam:
            break
        count += 1
    return ids[order[:count]]


@njit
def expand(S: Any, options: Any, lms: Any, weights: Any, limits: Any, hypothesis: int, room: Any) -> None:
    """Extend a hypothesis by every option that its coverage and the distortion limit allow. `room` (L,):
    memory for states."""
    coverage = S.coverage[hypothesis]
    if S.first_move[coverage] < 0:
        find_moves(S, options, limits, coverage)
        if S.counters[FULL]:
            return
    n, before, after = limits.words, S.end[hypothesis], S.begin[hypothesis]
    for move in range(S.first_move[coverage], S.first_move[coverage] + S.moves[coverage]):
        start, last, reached = S.move_start[move], S.move_end[move], S.move_coverage[move]
        jump = abs(start - before - 1)
        if limits.distortion >= 0 and jump > limits.distortion:
            continue
        way = MONOTONE if start == before + 1 else SWAP if last + 1 == after else DISCONTINUOUS
        if limits.early:
            jump = early_distortion(start, last, before, S.gap[coverage])
        fixed = -jump * limits.distortion_weight
        if limits.reordering and hypothesis > 0:
            fixed += options.forward[S.option[hypothesis], way]
        stack = S.covered[reached]
        base = S.score[hypothesis] + fixed
        future = S.future[reached]
        span = start * limits.longest + last - start
        S.counters[WORK] += 1 + options.number[span]
        for option in range(options.first[span], options.first[span] + options.number[span]):
            gain = options.score[option]
            if limits.reordering:
                gain += options.backward[option, way]
            if not limits.deferred and base + gain + future + options.bound[option] < S.worst[stack]:
                continue
            spoken, alone = 0.0, 0.0
            for model in range(len(lms)):
                lm, state = lms[model], S.context[hypothesis, model]
                for place in range(options.start[option], options.start[option] + options.length[option]):
                    more, state = step(lm, state, options.words[model, place])
                    spoken += weights[model] * more
                    if model == 0:
                        alone += more
                if (
                    stack == n and options.length[option] > 0
                ):  # as Moses: behind a phrase without words the end costs nothing
                    more, state = step(lm, state, lm.end)
                    spoken += weights[model] * more
                    if model == 0:
                        alone += more
                room[model] = state
            score = base + gain + spoken
            total = score + future
            if limits.deferred:
                number = S.counters[CANDIDATES]
                if number >= len(S.c_stack):
                    S.counters[FULL] = 1
                    return
                S.counters[CANDIDATES] = number + 1
                S.c_stack[number], S.c_coverage[number], S.c_parent[number], S.c_option[number] = (
                    stack,
                    reached,
                    hypothesis,
                    option,
                )
                S.c_begin[number], S.c_end[number], S.c_score[number] = start, last, score
                S.c_total[number] = total + limits.stand_in * alone
                for model in range(len(lms)):
                    S.c_context[number, model] = room[model]
            elif total >= S.worst[stack]:
                add(
                    S,
                    lms,
                    limits,
                    options.forward_id,
                    hypothesis,
                    option,
                    reached,
                    start,
                    last,
                    score,
                    total,
                    room,
                    np.int64(0),
                    score - S.score[hypothesis],
                )
                if S.counters[FULL]:
                    return


@njit
def begin(S: Any, options: Any, lms: Any, limits: Any) -> None:
    """Empty stacks, and the hypothesis that has translated nothing in the first."""
    S.counters[:] = 0
    S.table[:] = -1
    S.coverage_table[:] = -1
    n = limits.words
    S.head[: n + 1] = -1
    S.size[: n + 1] = 0
    S.worst[: n + 1] = NOTHING
    S.best[: n + 1] = NOTHING
    find_coverage(S, 0, np.uint64(0), options.future, n)
    S.coverage[0], S.begin[0], S.end[0], S.option[0], S.parent[0], S.score[0], S.total[0] = (
        0,
        -2,
        -1,
        -1,
        -1,
        0.0,
        S.future[0],
    )
    S.extra[0], S.edge[0], S.listed[0], S.following[0] = 0, -1, 1, -1
    for model in range(len(lms)):
        S.context[0, model] = lms[model].begin
    S.head[0], S.size[0], S.best[0] = 0, 1, S.total[0]
    S.counters[HYPOTHESES] = 1


@njit
def expand_from(
    S: Any, options: Any, lms: Any, weights: Any, limits: Any, stack: int, rank: int, room: Any, most: int
) -> Any:
    """Extend the hypotheses of a stack from one of them on; where to go on after `most` options, -1 when the
    stack is done."""
    end = S.counters[WORK] + most
    chosen = select(S, limits, stack)
    for place in range(rank, len(chosen)):
        if S.counters[WORK] >= end:
            return place
        expand(S, options, lms, weights, limits, chosen[place], room)
        if S.counters[FULL]:
            break
    return -1


@njit
def search(
    S: Any, options: Any, lms: Any, weights: Any, limits: Any, stack: int, rank: int, most: int
) -> Any:
    """From a place in a stack, (0, 0) at first, to the last stack, or for `most` options; where to go on,
    (words, 0) when all is done."""
    if stack == 0 and rank == 0:
        begin(S, options, lms, limits)
    room = np.zeros(max(1, len(lms)), np.int32)
    end = S.counters[WORK] + most
    while stack < limits.words and not S.counters[FULL] and S.counters[WORK] < end:
        rank = expand_from(S, options, lms, weights, limits, stack, rank, room, most)
        if rank < 0:
            stack, rank = stack + 1, 0
    return stack, rank
