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
def find_equal(S: SearchState, parameters: SearchParameters, forward_id: Int32s, option: int, coverage: int,
first: int, last: int, context: int, regions: int, key: int) -> tuple[int, np.int64]:  # fmt: skip
    """Find the hypothesis with which another one has to be recombined; arguments as in `push`. Returns its
    number, -1 if there is none, and the slot of the hash table that is free then."""
    forward = forward_id[option] if parameters.reordering else -1
    mixed = recombination_hash(parameters, coverage, first, last, forward, context, regions, key)
    size = len(S.table) - 1
    slot = (mixed >> np.int64(20)) & size
    node = -1
    while node < 0 and S.table[slot] != -1:
        rival = S.hypotheses[S.table[slot]]
        same = rival.coverage == coverage and rival.context == context
        same = same and rival.last == last and rival.key == key
        if same and parameters.reordering:
            same = rival.first == first and forward_id[rival.option] == forward
            if parameters.regions:
                same = same and rival.regions == regions
        if same:
            node = S.table[slot]
        else:
            slot = (slot + 1) & size
    return node, slot


@njit_inline
def push(S: SearchState, parameters: SearchParameters, forward_id: Int32s, parent: int, option: int,
coverage: int, first: int, last: int, score: float, total: float, context: int, regions: int, key: int,
edge_score: float) -> int:  # fmt: skip
    """Add the hypothesis that extends `parent` by `option` to its stack, or recombine it with an equal one.
    Returns its number; -1 if the equal one is not worse, or memory is full, which sets `counters[FULL]`.

    `coverage`: index of the new coverage; `first`, `last`: source words of the option; `total`: score plus
    future cost; `context`, `regions`: their numbers; `key`: hash of recombination keys; `edge_score`: what is
    added."""
    node, slot = find_equal(S, parameters, forward_id, option, coverage, first, last, context, regions, key)
    best = -1
    if node < 0:
        best = node = S.counters[HYPOTHESES]
        if node >= len(S.hypotheses):
            S.counters[FULL] = 1
            return -1
        S.counters[HYPOTHESES] = node + 1
        S.table[slot] = node
        new = S.hypotheses[node]
        new.coverage, new.first, new.last, new.option, new.parent = coverage, first, last, option, parent
        new.score, new.total, new.context = score, total, context
        new.key, new.edge, new.listed = key, -1, 0
        if parameters.regions:
            new.regions = regions
    elif score > S.hypotheses[node].score:
        best = node
        better = S.hypotheses[node]
        better.score, better.total, better.parent, better.option = score, total, parent, option
    number = S.coverages[coverage].covered
    hypothesis, stack = S.hypotheses[node], S.stacks[number]
    if hypothesis.listed == 0 and hypothesis.total >= stack.worst:
        hypothesis.listed, hypothesis.following, stack.head = 1, stack.head, node
        stack.members += 1
    if hypothesis.total > stack.best:
        stack.best = hypothesis.total
        stack.worst = max(stack.worst, stack.best + parameters.beam)
    if parameters.edges:
        edge = S.counters[EDGES]
        if edge >= len(S.edges):
            S.counters[FULL] = 1
            return -1
        S.counters[EDGES] = edge + 1
        way = S.edges[edge]
        way.parent, way.option, way.score, way.next = parent, option, edge_score, hypothesis.edge
        hypothesis.edge = edge
    if parameters.stack > 0 and stack.members >= 2 * parameters.stack + 50:
        prune_stack(S, parameters, number)
    return best


@njit
def stack_members(S: SearchState, stack: int) -> Int32s:
    """All hypotheses of a stack, oldest first."""
    ids = np.empty(S.stacks[stack].members, np.int32)
    hypothesis, count = S.stacks[stack].head, 0
    while hypothesis != -1:
        ids[count] = hypothesis
        count += 1
        hypothesis = S.hypotheses[hypothesis].following
    ids = ids[:count]
    ids.sort()
    return ids


@njit
def prune_stack(S: SearchState, parameters: SearchParameters, number: int) -> None:
    """Keep only the best `parameters.stack` hypotheses of a stack; 0 is not allowed here. If there are so
    many, the stack's threshold is raised to the total of the worst of them."""
    ids, stack = stack_members(S, number), S.stacks[number]
    order = np.argsort(-S.hypotheses.total[ids], kind="mergesort")
    stack.head, stack.members = -1, 0
    for rank in range(len(ids)):
        hypothesis = S.hypotheses[ids[order[rank]]]
        if rank < parameters.stack and hypothesis.total >= stack.worst:
            hypothesis.following, stack.head = stack.head, ids[order[rank]]
            stack.members += 1
        else:
            hypothesis.listed = 0
    if len(ids) >= parameters.stack:
        stack.worst = max(stack.worst, S.hypotheses[ids[order[parameters.stack - 1]]].total)


@njit
def select(S: SearchState, parameters: SearchParameters, stack: int) -> Int32s:
    """The hypotheses of a stack that survive pruning and are to be extended, best first."""
    ids = stack_members(S, stack)
    order = np.argsort(-S.hypotheses.total[ids], kind="mergesort")
    least = S.stacks[stack].best + parameters.beam
    count = 0
    for rank in range(len(ids)):
        if (parameters.stack > 0 and rank >= parameters.stack) or S.hypotheses[
            ids[order[rank]]
        ].total < least:
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
        candidate = S.candidates[chosen[number]]
        coverage, score = S.coverages[candidate.coverage], candidate.score + gains[number]
        total = score + coverage.future
        if total < S.stacks[coverage.covered].worst:
            continue
        hypothesis = push(
            S, parameters, forward_id, candidate.parent, candidate.option, candidate.coverage,
            candidate.first, candidate.last, score, total, candidate.context, candidate.regions, keys[number],
            score - S.hypotheses[candidate.parent].score,
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
    most, count, best = S.candidate_best.shape[1], S.stacks[stack].noted, S.candidate_best[stack]
    index = count
    if count < most:
        S.stacks[stack].noted = count + 1
        while index > 0 and best[(index - 1) // 2] > total:
            best[index] = best[(index - 1) // 2]
            index = (index - 1) // 2
        best[index] = total
    elif most > 0 and total > best[0]:  # the worst one goes
        index = 0
        below = 1
        while below < most:
            if below + 1 < most and best[below + 1] < best[below]:
                below += 1
            if best[below] >= total:
                below = most
            else:
                best[index] = best[below]
                index = below
                below = 2 * index + 1
        best[index] = total
    if most > 0 and S.stacks[stack].noted == most:
        S.stacks[stack].candidate_worst = best[0]


@njit_inline
def store_candidate(S: SearchState, stack: int, coverage: int, parent: int, option: int, first: int,
last: int, score: float, total: float, context: int, regions: int) -> None:  # fmt: skip
    """Store a candidate of a stack. Sets `counters[FULL]` if memory runs out."""
    number = S.counters[CANDIDATES]
    if number == len(S.candidates):
        S.counters[FULL] = 1
        return
    S.counters[CANDIDATES] += 1
    candidate = S.candidates[number]
    candidate.stack, candidate.coverage, candidate.parent, candidate.option = stack, coverage, parent, option
    candidate.first, candidate.last, candidate.score, candidate.total = first, last, score, total
    candidate.context, candidate.regions = context, regions
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
    if S.counters[BLOCKS] >= len(S.blocks) or S.counters[SCORED] + size > len(S.lm_scores):
        forget_blocks(S)
        if size > len(S.lm_scores):
            S.counters[FULL] = 1
            return -1
    slots = len(S.block_table) - 1
    slot = ((np.int64(key) * MIX) >> np.int64(24)) & slots
    while S.block_table[slot] != -1:
        number = S.block_table[slot]
        if S.blocks[number].key == key:
            return int(S.blocks[number].start)
        slot = (slot + 1) & slots
    number, start = S.counters[BLOCKS], S.counters[SCORED]
    S.counters[BLOCKS], S.counters[SCORED] = number + 1, start + size
    block = S.blocks[number]
    S.block_table[slot], block.key, block.start = number, key, start
    for index in range(start, start + size):
        S.lm_scores[index].context = -1
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
    scored = S.lm_scores[slot]
    scored.score, scored.context = weighted, find_context(S, room)


# ---- search ------------------------------------------------------------------------------------------------


@njit_inline
def move_score(S: SearchState, options: OptionArrays, parameters: SearchParameters, hypothesis: int,
start: int, last: int, gap: int) -> tuple[int, float]:  # fmt: skip
    """The index of the orientation of the span from `start` to `last` after a hypothesis, and the weighted
    score of moving there: distortion, and the forward reordering score of the phrase before. `gap`: the first
    untranslated word."""
    extended = S.hypotheses[hypothesis]
    prev_first, prev_last = extended.first, extended.last
    jump = abs(start - prev_last - 1)
    preceding = following = relative_orientation(start, last, prev_first, prev_last)
    if parameters.regions:
        region = S.regions[extended.regions]
        preceding = relative_orientation(start, last, region.first, region.last)
    if parameters.hierarchical:
        mask = S.coverages[extended.coverage].mask
        gap_before = not is_covered(gap, mask, prev_first - 1)
        gap_after = not is_covered(gap, mask, prev_last + 1)
        following = orientation_of_next(start, last, prev_first, prev_last, gap_before, gap_after)
    if parameters.early:
        jump = early_distortion(start, last, prev_last, gap)
    fixed = -jump * parameters.distortion_weight
    if parameters.reordering and hypothesis > 0:
        fixed += options.forward[extended.option, parameters.score_of[following]]
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
    extended = S.hypotheses[hypothesis]
    coverage, context = S.coverages[extended.coverage], extended.context
    if coverage.first_move < 0:
        find_moves(S, options, parameters, extended.coverage)
        if S.counters[FULL]:
            return
    for number in range(coverage.first_move, coverage.first_move + coverage.moves):
        move = S.moves[number]
        start, last, reached = move.first, move.last, S.coverages[move.coverage]
        if parameters.distortion >= 0 and abs(start - extended.last - 1) > parameters.distortion:
            continue
        orientation, fixed = move_score(S, options, parameters, hypothesis, start, last, coverage.gap)
        base, stack, future = extended.score + fixed, reached.covered, reached.future
        span = start * parameters.longest + last - start
        S.counters[WORK] += 1 + options.number[span]
        first_option, block, complete = options.first[span], -1, stack == parameters.words
        regions = -1 if parameters.regions else 0
        for option in range(first_option, first_option + options.number[span]):
            gain = gains.gain[orientation, option]
            worst = S.stacks[stack].candidate_worst if parameters.deferred else S.stacks[stack].worst
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
            scored = S.lm_scores[slot]
            if scored.context < 0:
                score_with_lms(S, options, lms, weights, context, option, complete, slot, room)
                if S.counters[FULL]:
                    return
            score = base + gain + scored.score
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
                push(S, parameters, options.forward_id, hypothesis, option, move.coverage, start, last, score,
                    total, scored.context, regions, 0, score - extended.score)  # fmt: skip
            else:
                store_candidate(S, stack, move.coverage, hypothesis, option, start, last, score, total,
                    scored.context, regions)  # fmt: skip
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
    S.stacks.head[: n + 1] = -1
    S.stacks.members[: n + 1] = 0
    S.stacks.worst[: n + 1] = NOTHING
    S.stacks.best[: n + 1] = NOTHING
    S.stacks.noted[: n + 1] = 0
    S.stacks.candidate_worst[: n + 1] = NOTHING
    find_coverage(S, 0, np.uint64(0), options.future, n)
    initial = S.hypotheses[0]
    initial.coverage, initial.first, initial.last, initial.option, initial.parent = 0, -2, -1, -1, -1
    initial.score, initial.total = 0.0, S.coverages[0].future
    initial.key, initial.edge, initial.listed, initial.following, initial.regions = 0, -1, 1, -1, 0
    S.region_table[:] = -1
    region = S.regions[0]
    region.first, region.last, region.below = BEFORE[0], BEFORE[1], -1
    S.counters[REGIONS] = 1
    S.context_table[:] = -1
    forget_blocks(S)
    for model in range(S.states.shape[1]):
        room[model] = lms[model].start_state
    initial.context = find_context(S, room)
    stack = S.stacks[0]
    stack.head, stack.members, stack.best = 0, 1, initial.total
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
