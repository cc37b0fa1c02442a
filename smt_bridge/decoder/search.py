"""Stack search, compiled (section 2.3.1; Koehn et al. 2003; the rules of Moses' normal stack search).

A hypothesis has translated some of the source words. Hypotheses that have translated equally many share a
stack; the best of each stack are extended by the options of untranslated spans. Hypotheses that nothing still
to come can tell apart recombine: the same words translated, the same last phrase (as far as distortion and
reordering ask), the same states of language models and features.

`State` holds all arrays. When one is too small, a function says so by `counters[FULL]`, and the caller
repeats with larger ones.
"""

import numpy as np

from smt_bridge.decoder.arrays import (
    CANDIDATES,
    DISCONTINUOUS,
    FULL,
    HYPOTHESES,
    MONOTONE,
    NOTHING,
    SWAP,
    WORK,
    Floats,
    Int32s,
    Options,
    SearchParameters,
    State,
)
from smt_bridge.decoder.automaton import Automaton, step
from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.coverage import early_distortion, find_coverage, find_moves
from smt_bridge.decoder.stacks import add, select


@njit
def expand(S: State, options: Options, lms: tuple[Automaton, ...], weights: Floats,
parameters: SearchParameters, hypothesis: int, room: Int32s) -> None:  # fmt: skip
    """Extend a hypothesis by every option that its coverage and the distortion limit allow. `room` (L,):
    memory for states. In one piece: a call that hands over all arrays takes longer than what it would do."""
    coverage = S.coverage[hypothesis]
    if S.first_move[coverage] < 0:
        find_moves(S, options, parameters, coverage)
        if S.counters[FULL]:
            return
    before, after = S.end[hypothesis], S.begin[hypothesis]
    for move in range(S.first_move[coverage], S.first_move[coverage] + S.moves[coverage]):
        start, last, reached = S.move_start[move], S.move_end[move], S.move_coverage[move]
        jump = abs(start - before - 1)
        if parameters.distortion >= 0 and jump > parameters.distortion:
            continue
        way = MONOTONE if start == before + 1 else SWAP if last + 1 == after else DISCONTINUOUS
        if parameters.early:
            jump = early_distortion(start, last, before, S.gap[coverage])
        fixed = -jump * parameters.distortion_weight
        if parameters.reordering and hypothesis > 0:
            fixed += options.forward[S.option[hypothesis], way]
        base, stack, future = S.score[hypothesis] + fixed, S.covered[reached], S.future[reached]
        span = start * parameters.longest + last - start
        S.counters[WORK] += 1 + options.number[span]
        for option in range(options.first[span], options.first[span] + options.number[span]):
            gain = options.score[option]
            if parameters.reordering:
                gain += options.backward[option, way]
            if not parameters.deferred and base + gain + future + options.bound[option] < S.worst[stack]:
                continue
            spoken, alone = 0.0, 0.0
            stop = options.start[option] + options.length[option]
            # As in Moses the end of the sentence costs nothing after a phrase without words.
            end = stop + 1 if stack == parameters.words and options.length[option] > 0 else stop
            for model in range(len(lms)):
                lm, state = lms[model], S.context[hypothesis, model]
                for place in range(options.start[option], end):
                    more, state = step(lm, state, options.words[model, place] if place < stop else lm.end)
                    spoken += weights[model] * more
                    if model == 0:
                        alone += more
                room[model] = state
            score = base + gain + spoken
            if not parameters.deferred:
                if score + future >= S.worst[stack]:
                    add(S, lms, parameters, options.forward_id, hypothesis, option, reached, start, last,
                        score, score + future, room, 0, score - S.score[hypothesis])  # fmt: skip
            elif S.counters[CANDIDATES] < len(S.c_stack):
                number = S.counters[CANDIDATES]
                S.counters[CANDIDATES] += 1
                S.c_stack[number], S.c_coverage[number], S.c_parent[number] = stack, reached, hypothesis
                S.c_option[number], S.c_begin[number], S.c_end[number] = option, start, last
                S.c_score[number] = score
                S.c_total[number] = score + future + parameters.stand_in * alone
                S.c_context[number] = room
            else:
                S.counters[FULL] = 1
            if S.counters[FULL]:
                return


@njit
def begin(S: State, options: Options, lms: tuple[Automaton, ...], parameters: SearchParameters) -> None:
    """Empty stacks, and in the first the hypothesis that has translated nothing."""
    S.counters[:] = 0
    S.table[:] = -1
    S.coverage_table[:] = -1
    n = parameters.words
    S.head[: n + 1] = -1
    S.size[: n + 1] = 0
    S.worst[: n + 1] = NOTHING
    S.best[: n + 1] = NOTHING
    find_coverage(S, 0, np.uint64(0), options.future, n)
    S.coverage[0], S.begin[0], S.end[0], S.option[0], S.parent[0] = 0, -2, -1, -1, -1
    S.score[0], S.total[0] = 0.0, S.future[0]
    S.key[0], S.edge[0], S.listed[0], S.following[0] = 0, -1, 1, -1
    for model in range(len(lms)):
        S.context[0, model] = lms[model].begin
    S.head[0], S.size[0], S.best[0] = 0, 1, S.total[0]
    S.counters[HYPOTHESES] = 1


@njit
def expand_from(S: State, options: Options, lms: tuple[Automaton, ...], weights: Floats,
parameters: SearchParameters, stack: int, rank: int, room: Int32s, most: int) -> int:  # fmt: skip
    """Extend the hypotheses of a stack, beginning with the one of rank `rank`. Returns the rank to continue
    with after `most` options, -1 when the stack is done."""
    end = S.counters[WORK] + most
    chosen = select(S, parameters, stack)
    for place in range(rank, len(chosen)):
        if S.counters[WORK] >= end:
            return place
        expand(S, options, lms, weights, parameters, chosen[place], room)
        if S.counters[FULL]:
            break
    return -1


@njit
def search(S: State, options: Options, lms: tuple[Automaton, ...], weights: Floats,
parameters: SearchParameters, stack: int, rank: int, most: int) -> tuple[int, int]:  # fmt: skip
    """From a place in a stack, (0, 0) at first, to the last stack, or for `most` options. Returns where to
    continue, (words, 0) when all is done."""
    if stack == 0 and rank == 0:
        begin(S, options, lms, parameters)
    room = np.zeros(max(1, len(lms)), np.int32)
    end = S.counters[WORK] + most
    while stack < parameters.words and not S.counters[FULL] and S.counters[WORK] < end:
        rank = expand_from(S, options, lms, weights, parameters, stack, rank, room, most)
        if rank < 0:
            stack, rank = stack + 1, 0
    return stack, rank
