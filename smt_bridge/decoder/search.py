"""Stack search, compiled (Koehn et al. 2003; the rules of Moses' normal stack search).

A hypothesis has translated some of the source words. Hypotheses with the same number of translated words are
in the same stack; the best ones of each stack are extended by the options of untranslated spans. Hypotheses
are recombined if every continuation scores the same after both: they have translated the same words, their
last phrases are the same as far as distortion and reordering depend on them (with a hierarchical model also
the regions of `orientations.py`), and so are the states of language models and features.

`SearchState` holds all arrays. If one of them is too small, functions set `counters[FULL]`, and the caller
starts again with larger ones."""

import numpy as np

from nmt.compute.compiled import njit, njit_borrowing, njit_inline
from nmt.ngram.compiled_queries import MIX
from smt_bridge.decoder.arrays import (
    BLOCKS,
    CANDIDATES,
    CONTEXTS,
    EDGES,
    FULL,
    HYPOTHESES,
    NOTHING,
    REGIONS,
    SCORED,
    WORK,
    Floats,
    Int32s,
    Int64s,
    OptionArrays,
    OptionGains,
    SearchParameters,
    SearchState,
)
from smt_bridge.decoder.automaton import Automaton, step
from smt_bridge.decoder.coverage import early_distortion, find_coverage, find_moves, is_covered
from smt_bridge.decoder.orientations import BEFORE, find_regions, orientation_of_next, relative_orientation

# ---- stacks ------------------------------------------------------------------------------------------------
# Adding hypotheses to stacks, recombining them, and pruning.


@njit_inline
def recombination_hash(parameters: SearchParameters, coverage: int, first: int, last: int, forward: int,
context: int, regions: int, key: int) -> np.int64:  # fmt: skip
    """Hash what has to agree where hypotheses are recombined; arguments as in `push`. `forward`: number of
    the forward reordering scores."""
    mixed = np.int64(coverage) * MIX + np.int64(last) * np.int64(6364136223846793005) + key
    if parameters.reordering:
        mixed += np.int64(first) * np.int64(1442695040888963407) + np.int64(forward) * np.int64(
            3935559000370003845
        )
        if parameters.regions:
            mixed += np.int64(regions) * np.int64(7046029254386353131)
    mixed = (mixed ^ (mixed >> np.int64(31))) * MIX + np.int64(context)
    return (mixed ^ (mixed >> np.int64(29))) * MIX


@njit_inline
def push(S: SearchState, parameters: SearchParameters, forward_id: Int32s, parent: int, option: int,
coverage: int, first: int, last: int, score: float, total: float, context: int, regions: int, key: int,
edge_score: float) -> int:  # fmt: skip
    """Add the hypothesis that extends `parent` by `option` to its stack, or recombine it with an equal one.
    Returns its number; -1 if the equal one is not worse, or memory is full, which sets `counters[FULL]`.

    `coverage`: index of the new coverage; `first`, `last`: source words of the option; `total`: score plus
    future cost; `context`, `regions`: their numbers; `key`: hash of recombination keys; `edge_score`: what is
    added."""
    forward = forward_id[option] if parameters.reordering else -1
    mixed = recombination_hash(parameters, coverage, first, last, forward, context, regions, key)
    size = len(S.table) - 1
    slot = (mixed >> np.int64(20)) & size
    node = best = -1
    while node < 0 and S.table[slot] != -1:
        rival = S.table[slot]
        same = S.coverage[rival] == coverage and S.context[rival] == context
        same = same and S.last[rival] == last and S.key[rival] == key
        if same and parameters.reordering:
            same = S.first[rival] == first and forward_id[S.option[rival]] == forward
            if parameters.regions:
                same = same and S.regions[rival] == regions
        if same:
            node = rival
        slot = (slot + 1) & size
    if node < 0:
        best = node = S.counters[HYPOTHESES]
        if node >= len(S.coverage):
            S.counters[FULL] = 1
            return -1
        S.counters[HYPOTHESES] = node + 1
        S.table[slot] = node
        S.coverage[node], S.first[node], S.last[node] = coverage, first, last
        S.option[node], S.parent[node], S.score[node], S.total[node] = option, parent, score, total
        S.context[node] = context
        if parameters.regions:
            S.regions[node] = regions
        S.key[node], S.edge[node], S.listed[node] = key, -1, 0
    elif score > S.score[node]:
        best = node
        S.score[node], S.total[node], S.parent[node], S.option[node] = score, total, parent, option
    stack = S.covered[coverage]
    if S.listed[node] == 0 and S.total[node] >= S.worst[stack]:
        S.listed[node], S.following[node], S.head[stack] = 1, S.head[stack], node
        S.size[stack] += 1
    if S.total[node] > S.best[stack]:
        S.best[stack] = S.total[node]
        S.worst[stack] = max(S.worst[stack], S.best[stack] + parameters.beam)
    if parameters.edges:
        edge = S.counters[EDGES]
        if edge >= len(S.edge_parent):
            S.counters[FULL] = 1
            return -1
        S.counters[EDGES] = edge + 1
        S.edge_parent[edge], S.edge_option[edge], S.edge_score[edge] = parent, option, edge_score
        S.edge_next[edge], S.edge[node] = S.edge[node], edge
    if parameters.stack > 0 and S.size[stack] >= 2 * parameters.stack + 50:
        prune_stack(S, parameters, stack)
    return best


@njit
def stack_members(S: SearchState, stack: int) -> Int32s:
    """All hypotheses of a stack, oldest first."""
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
def prune_stack(S: SearchState, parameters: SearchParameters, stack: int) -> None:
    """Keep only the best `parameters.stack` hypotheses of a stack; 0 is not allowed here. If there are so
    many, the stack's threshold is raised to the total of the worst of them."""
    ids = stack_members(S, stack)
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
def select(S: SearchState, parameters: SearchParameters, stack: int) -> Int32s:
    """The hypotheses of a stack that survive pruning and are to be extended, best first."""
    ids = stack_members(S, stack)
    order = np.argsort(-S.total[ids], kind="mergesort")
    least = S.best[stack] + parameters.beam
    count = 0
    for rank in range(len(ids)):
        if (parameters.stack > 0 and rank >= parameters.stack) or S.total[ids[order[rank]]] < least:
            break
        count += 1
    return ids[order[:count]]


@njit
def add_candidates(S: SearchState, parameters: SearchParameters, forward_id: Int32s, chosen: Int64s,
gains: Floats, keys: Int64s, states: Int64s) -> None:  # fmt: skip
    """Turn candidates that the stateful features have scored into hypotheses. `forward_id`: see OptionArrays;
    `chosen`: candidate indices (N,); `gains`: the features' weighted scores (N,); `keys`: for recombination
    (N,); `states`: of the features after the options (N, F). Sets `counters[FULL]` if memory runs out."""
    for number in range(len(chosen)):
        candidate = chosen[number]
        parent, coverage = S.c_parent[candidate], S.c_coverage[candidate]
        score = S.c_score[candidate] + gains[number]
        total = score + S.future[coverage]
        if total < S.worst[S.covered[coverage]]:
            continue
        hypothesis = push(
            S, parameters, forward_id, parent, S.c_option[candidate], coverage,
            S.c_first[candidate], S.c_last[candidate], score, total,
            S.c_context[candidate], S.c_regions[candidate], keys[number], score - S.score[parent],
        )  # fmt: skip
        if hypothesis >= 0:
            for feature in range(states.shape[1]):
                S.memory[hypothesis, feature] = states[number, feature]
        if S.counters[FULL]:
            return


@njit_inline
def note_candidate(S: SearchState, stack: int, total: float) -> None:
    """Note the total of a new candidate of a stack among the best ones, and raise the stack's threshold for
    candidates: once there are as many as stateful features score, worse ones can no longer be among them."""
    most, count = S.c_best.shape[1], S.c_noted[stack]
    index = count
    if count < most:
        S.c_noted[stack] = count + 1
        while index > 0 and S.c_best[stack, (index - 1) // 2] > total:
            S.c_best[stack, index] = S.c_best[stack, (index - 1) // 2]
            index = (index - 1) // 2
        S.c_best[stack, index] = total
    elif most > 0 and total > S.c_best[stack, 0]:  # the worst one goes
        index = 0
        below = 1
        while below < most:
            if below + 1 < most and S.c_best[stack, below + 1] < S.c_best[stack, below]:
                below += 1
            if S.c_best[stack, below] >= total:
                below = most
            else:
                S.c_best[stack, index] = S.c_best[stack, below]
                index = below
                below = 2 * index + 1
        S.c_best[stack, index] = total
    if most > 0 and S.c_noted[stack] == most:
        S.c_worst[stack] = S.c_best[stack, 0]


@njit_inline
def store_candidate(S: SearchState, stack: int, coverage: int, parent: int, option: int, first: int,
last: int, score: float, total: float, context: int, regions: int) -> None:  # fmt: skip
    """Store a candidate of a stack. Sets `counters[FULL]` if memory runs out."""
    number = S.counters[CANDIDATES]
    if number == len(S.c_stack):
        S.counters[FULL] = 1
        return
    S.counters[CANDIDATES] += 1
    S.c_stack[number], S.c_coverage[number], S.c_parent[number] = stack, coverage, parent
    S.c_option[number], S.c_first[number], S.c_last[number] = option, first, last
    S.c_score[number], S.c_total[number] = score, total
    S.c_context[number], S.c_regions[number] = context, regions
    note_candidate(S, stack, total)


# ---- language models ---------------------------------------------------------------------------------------
# Hypotheses with the same last words have the same context, and the same options after it have the same
# scores, which are computed once.


@njit_inline
def find_context(S: SearchState, states: Int32s) -> int:
    """Return the number of a context, given by the states of the language models (L,). A new one is added; -1
    if memory is full, which sets `counters[FULL]`."""
    mixed = np.int64(0)
    for model in range(len(states)):
        mixed = (mixed ^ (mixed >> np.int64(31))) * MIX + np.int64(states[model])
    size = len(S.context_table) - 1
    slot = ((mixed * MIX) >> np.int64(24)) & size
    while S.context_table[slot] != -1:
        number = S.context_table[slot]
        same = True
        for model in range(len(states)):
            same = same and S.states[number, model] == states[model]
        if same:
            return int(number)
        slot = (slot + 1) & size
    number = S.counters[CONTEXTS]
    if number >= len(S.states):
        S.counters[FULL] = 1
        return -1
    S.counters[CONTEXTS] = number + 1
    S.context_table[slot] = number
    for model in range(len(states)):
        S.states[number, model] = states[model]
    return int(number)


@njit_inline
def find_block(S: SearchState, key: int, size: int) -> int:
    """Return the index at which the block of `size` language model scores for `key`, a context and a span,
    starts. A new block is added, without scores. If memory has no room for another one, all blocks are
    forgotten first. -1 if the block is larger than the memory, which sets `counters[FULL]`."""
    if S.counters[BLOCKS] >= len(S.block_key) or S.counters[SCORED] + size > len(S.lm_score):
        forget_blocks(S)
        if size > len(S.lm_score):
            S.counters[FULL] = 1
            return -1
    slots = len(S.block_table) - 1
    slot = ((np.int64(key) * MIX) >> np.int64(24)) & slots
    while S.block_table[slot] != -1:
        number = S.block_table[slot]
        if S.block_key[number] == key:
            return int(S.block_start[number])
        slot = (slot + 1) & slots
    number, start = S.counters[BLOCKS], S.counters[SCORED]
    S.counters[BLOCKS], S.counters[SCORED] = number + 1, start + size
    S.block_table[slot], S.block_key[number], S.block_start[number] = number, key, start
    for index in range(start, start + size):
        S.lm_context[index] = -1
    return int(start)


@njit
def forget_blocks(S: SearchState) -> None:
    """Empty the memory of language model scores."""
    S.block_table[:] = -1
    S.counters[BLOCKS] = S.counters[SCORED] = 0


@njit_inline
def score_with_lms(S: SearchState, options: OptionArrays, lms: tuple[Automaton, ...], weights: Floats,
context: int, option: int, complete: bool, slot: int, room: Int32s) -> None:  # fmt: skip
    """Score an option after a context with all language models, and store the weighted sum and the number of
    the context after it at `slot`. `complete`: with the end of the sentence; `room`: scratch memory for
    states (L,). Sets `counters[FULL]` if memory runs out."""
    weighted = 0.0
    stop = options.start[option] + options.length[option]
    # As in Moses, the end of the sentence is not scored after a phrase without words.
    end = stop + 1 if complete and options.length[option] > 0 else stop
    for model in range(S.states.shape[1]):
        lm, state, alone = lms[model], S.states[context, model], 0.0
        for index in range(options.start[option], end):
            more, state = step(lm, state, options.words[model, index] if index < stop else lm.end)
            weighted += weights[model] * more
            alone += more
        room[model] = state
        if model == 0 and len(S.lm_alone):
            S.lm_alone[slot] = alone
    S.lm_score[slot], S.lm_context[slot] = weighted, find_context(S, room)


# ---- search ------------------------------------------------------------------------------------------------


@njit_inline
def move_score(S: SearchState, options: OptionArrays, parameters: SearchParameters, hypothesis: int,
start: int, last: int, gap: int) -> tuple[int, float]:  # fmt: skip
    """The index of the orientation of the span from `start` to `last` after a hypothesis, and the weighted
    score of moving there: distortion, and the forward reordering score of the phrase before. `gap`: the first
    untranslated word."""
    prev_first, prev_last = S.first[hypothesis], S.last[hypothesis]
    jump = abs(start - prev_last - 1)
    preceding = following = relative_orientation(start, last, prev_first, prev_last)
    if parameters.regions:
        region = S.regions[hypothesis]
        preceding = relative_orientation(start, last, S.region_first[region], S.region_last[region])
    if parameters.hierarchical:
        mask = S.mask[S.coverage[hypothesis]]
        gap_before = not is_covered(gap, mask, prev_first - 1)
        gap_after = not is_covered(gap, mask, prev_last + 1)
        following = orientation_of_next(start, last, prev_first, prev_last, gap_before, gap_after)
    if parameters.early:
        jump = early_distortion(start, last, prev_last, gap)
    fixed = -jump * parameters.distortion_weight
    if parameters.reordering and hypothesis > 0:
        fixed += options.forward[S.option[hypothesis], parameters.score_of[following]]
    return parameters.score_of[preceding], fixed


SLACK = 1e-6  # more than rounding can change a total: bounds are added in another order than scores


@njit
def option_gains(options: OptionArrays, parameters: SearchParameters) -> OptionGains:
    """Compute the scores of options that do not depend on the hypothesis that they extend."""
    size, orientations = options.backward.shape
    gain, most = np.empty((orientations, size)), np.empty((orientations, size))
    for orientation in range(orientations):
        for option in range(size):
            gain[orientation, option] = options.score[option]
            if parameters.reordering:
                gain[orientation, option] += options.backward[option, orientation]
        for span in range(len(options.first)):
            best = -np.inf
            for option in range(options.first[span] + options.number[span] - 1, options.first[span] - 1, -1):
                best = max(best, gain[orientation, option] + options.bound[option])
                most[orientation, option] = best
    return OptionGains(gain, most)


@njit_borrowing
def expand(S: SearchState, options: OptionArrays, gains: OptionGains, lms: tuple[Automaton, ...],
weights: Floats, parameters: SearchParameters, hypothesis: int, room: Int32s) -> None:  # fmt: skip
    """Extend a hypothesis by every option that its coverage and the distortion limit allow: adds hypotheses
    to their stacks or, if `parameters.deferred`, candidates. Sets `counters[FULL]` if memory runs out.
    `room`: scratch memory for states (L,)."""
    coverage, context = S.coverage[hypothesis], S.context[hypothesis]
    if S.first_move[coverage] < 0:
        find_moves(S, options, parameters, coverage)
        if S.counters[FULL]:
            return
    prev_last = S.last[hypothesis]
    for move in range(S.first_move[coverage], S.first_move[coverage] + S.moves[coverage]):
        start, last, reached = S.move_first[move], S.move_last[move], S.move_coverage[move]
        if parameters.distortion >= 0 and abs(start - prev_last - 1) > parameters.distortion:
            continue
        orientation, fixed = move_score(S, options, parameters, hypothesis, start, last, S.gap[coverage])
        base, stack, future = S.score[hypothesis] + fixed, S.covered[reached], S.future[reached]
        span = start * parameters.longest + last - start
        S.counters[WORK] += 1 + options.number[span]
        first_option, block, complete = options.first[span], -1, stack == parameters.words
        regions = -1 if parameters.regions else 0
        for option in range(first_option, first_option + options.number[span]):
            gain = gains.gain[orientation, option]
            worst = S.c_worst[stack] if parameters.deferred else S.worst[stack]
            if base + future + gains.most[orientation, option] < worst - SLACK:
                break  # neither this option nor those after it can reach the stack
            if base + gain + future + options.bound[option] < worst - SLACK:
                continue
            if block < 0:
                key = (np.int64(context) * len(options.first) + span) * 2 + complete
                block = find_block(S, key, options.number[span])
                if block < 0:
                    return
            slot = block + option - first_option
            if S.lm_context[slot] < 0:
                score_with_lms(S, options, lms, weights, context, option, complete, slot, room)
                if S.counters[FULL]:
                    return
            score = base + gain + S.lm_score[slot]
            total = score + future
            if parameters.deferred:
                total += parameters.stand_in * S.lm_alone[slot]
            if total < worst:
                continue
            if regions < 0:
                regions = find_regions(S, hypothesis, start, last)
                if regions < 0:
                    return
            if not parameters.deferred:
                push(S, parameters, options.forward_id, hypothesis, option, reached, start, last, score,
                    total, S.lm_context[slot], regions, 0, score - S.score[hypothesis])  # fmt: skip
            else:
                store_candidate(S, stack, reached, hypothesis, option, start, last, score, total,
                    S.lm_context[slot], regions)  # fmt: skip
            if S.counters[FULL]:
                return


@njit
def start_search(
    S: SearchState,
    options: OptionArrays,
    lms: tuple[Automaton, ...],
    parameters: SearchParameters,
    room: Int32s,
) -> None:
    """Empty all stacks and put the initial hypothesis, which has translated nothing, into the first. `room`:
    scratch memory for states (L,)."""
    S.counters[:] = 0
    S.table[:] = -1
    S.coverage_table[:] = -1
    n = parameters.words
    S.head[: n + 1] = -1
    S.size[: n + 1] = 0
    S.worst[: n + 1] = NOTHING
    S.best[: n + 1] = NOTHING
    S.c_noted[: n + 1] = 0
    S.c_worst[: n + 1] = NOTHING
    find_coverage(S, 0, np.uint64(0), options.future, n)
    S.coverage[0], S.first[0], S.last[0], S.option[0], S.parent[0] = 0, -2, -1, -1, -1
    S.score[0], S.total[0] = 0.0, S.future[0]
    S.key[0], S.edge[0], S.listed[0], S.following[0] = 0, -1, 1, -1
    S.region_table[:] = -1
    S.regions[0] = 0
    S.region_first[0], S.region_last[0], S.region_below[0] = BEFORE[0], BEFORE[1], -1
    S.counters[REGIONS] = 1
    S.context_table[:] = -1
    forget_blocks(S)
    for model in range(S.states.shape[1]):
        room[model] = lms[model].start_state
    S.context[0] = find_context(S, room)
    S.head[0], S.size[0], S.best[0] = 0, 1, S.total[0]
    S.counters[HYPOTHESES] = 1


@njit
def expand_from(S: SearchState, options: OptionArrays, gains: OptionGains, lms: tuple[Automaton, ...],
weights: Floats, parameters: SearchParameters, stack: int, rank: int, room: Int32s,
most: int) -> int:  # fmt: skip
    """Extend the hypotheses of a stack from rank `rank` on, 0 being the best. Returns the rank at which to
    continue once `most` options have been tried, or -1 if the stack is finished or memory has run out."""
    end = S.counters[WORK] + most
    chosen = select(S, parameters, stack)
    for index in range(rank, len(chosen)):
        if S.counters[WORK] >= end:
            return index
        expand(S, options, gains, lms, weights, parameters, chosen[index], room)
        if S.counters[FULL]:
            break
    return -1


@njit
def search(S: SearchState, options: OptionArrays, gains: OptionGains, lms: tuple[Automaton, ...],
weights: Floats, parameters: SearchParameters, stack: int, rank: int,
most: int) -> tuple[int, int]:  # fmt: skip
    """Search from rank `rank` of stack `stack`, initially (0, 0), until all stacks are finished or `most`
    options have been tried. Returns the stack and rank at which to continue; (words, 0) if the search is
    finished."""
    room = np.zeros(S.states.shape[1], np.int32)
    if stack == 0 and rank == 0:
        start_search(S, options, lms, parameters, room)
    end = S.counters[WORK] + most
    while stack < parameters.words and not S.counters[FULL] and S.counters[WORK] < end:
        rank = expand_from(S, options, gains, lms, weights, parameters, stack, rank, room, most)
        if rank < 0:
            stack, rank = stack + 1, 0
    return stack, rank
