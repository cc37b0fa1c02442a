"""Cube pruning, compiled (Chiang 2007; Huang and Chiang 2007; search algorithm 1 of Moses).

An edge joins a coverage and a span that may be translated next. Its hypotheses, best first, are the rows of
a grid, and the options of the span its columns. Only the best `pops` cells of all edges that lead to a stack
become hypotheses, and more where a coverage would get fewer than `diversity`. They come from a heap: it
starts with the first cell of each edge, and each cell that is taken adds those below it and to the right. A
cell has all its scores when it is added. As these are not monotone in a grid, better cells may remain behind
worse ones."""

from typing import NamedTuple

import numpy as np

from nmt.compute.compiled import njit, njit_borrowing, njit_inline
from nmt.ngram.compiled_queries import MIX
from smt_bridge.decoder.arrays import (
    FULL,
    Floats,
    Int32s,
    Int64s,
    OptionArrays,
    OptionGains,
    SearchParameters,
    SearchState,
)
from smt_bridge.decoder.automaton import Automaton
from smt_bridge.decoder.coverage import find_moves
from smt_bridge.decoder.orientations import find_regions
from smt_bridge.decoder.search import find_block, move_score, push, score_with_lms, select

# indices of Cubes.counters
CELLS, HEAP, WAITING, POPS, MEMBERS = range(5)


class Cubes(NamedTuple):
    """Working memory of cube pruning, for n words: H hypotheses, C coverages, M edges, Q cells of a stack."""

    counters: Int64s  # (5,) see CELLS and so on
    member: Int32s  # (H,) hypotheses to be extended, best first for each coverage
    first_member: Int32s  # (C,) index in `member` of the first hypothesis of a coverage
    members: Int32s  # (C,) number of its hypotheses
    added: Int32s  # (C,) hypotheses that cells have added to a coverage
    edge_source: Int32s  # (M,) coverage that an edge extends; edges have the numbers of moves
    edge_next: Int32s  # (M,) next edge that leads to the same stack
    first_edge: Int32s  # (n + 1,) first edge that leads to each stack
    last_edge: Int32s  # (n + 1,)
    cell_edge: Int32s  # (Q,) edge of a cell
    row: Int32s  # (Q,) index of its hypothesis among those of the edge
    column: Int32s  # (Q,) index of its option among those of the span
    score: Floats  # (Q,) weighted, of the phrases so far
    total: Floats  # (Q,) score plus future cost
    context: Int32s  # (Q,) language model context after the option
    heap: Int32s  # (Q,) cells, best first
    table: Int32s  # hash table of cells


def allocate_cubes(state: SearchState, cells: int) -> Cubes:
    """Allocate working memory for `cells` cells of a stack, for use with a SearchState."""

    def ints(size: int) -> Int32s:
        return np.zeros(size, np.int32)

    H, C, M, n = len(state.hypotheses), len(state.coverages), len(state.moves), len(state.stacks)
    return Cubes(
        counters=np.zeros(5, np.int64),
        member=ints(H), first_member=ints(C), members=ints(C), added=ints(C),
        edge_source=ints(M), edge_next=ints(M), first_edge=ints(n), last_edge=ints(n),
        cell_edge=ints(cells), row=ints(cells), column=ints(cells),
        score=np.zeros(cells), total=np.zeros(cells), context=ints(cells), heap=ints(cells),
        table=ints(1 << int(2 * cells - 1).bit_length()),
    )  # fmt: skip


@njit
def start_cubes(Q: Cubes) -> None:
    """Remove the edges of the previous sentence."""
    Q.counters[:] = 0
    Q.added[:] = 0
    Q.first_edge[:] = -1


@njit
def open_edges(
    S: SearchState, Q: Cubes, options: OptionArrays, parameters: SearchParameters, stack: int
) -> None:
    """Add the edges that extend the hypotheses of a complete stack, as far as these survive pruning. Sets
    `counters[FULL]` if memory runs out."""
    chosen = select(S, parameters, stack)
    coverages = np.empty(len(chosen), np.int32)
    distinct = 0
    for hypothesis in chosen:
        coverage, repeated = S.hypotheses[hypothesis].coverage, False
        for index in range(distinct):
            repeated = repeated or coverages[index] == coverage
        if not repeated:
            coverages[distinct] = coverage
            distinct += 1
    for coverage in coverages[:distinct]:
        Q.first_member[coverage] = Q.counters[MEMBERS]
        for hypothesis in chosen:
            if S.hypotheses[hypothesis].coverage == coverage:
                Q.member[Q.counters[MEMBERS]] = hypothesis
                Q.counters[MEMBERS] += 1
        Q.members[coverage] = Q.counters[MEMBERS] - Q.first_member[coverage]
        find_moves(S, options, parameters, coverage)
        if S.counters[FULL]:
            return
        after = S.coverages[coverage]
        for edge in range(after.first_move, after.first_move + after.moves):
            reached = S.coverages[S.moves[edge].coverage].covered
            Q.edge_source[edge], Q.edge_next[edge] = coverage, -1
            if Q.first_edge[reached] < 0:
                Q.first_edge[reached] = edge
            else:
                Q.edge_next[Q.last_edge[reached]] = edge
            Q.last_edge[reached] = edge


@njit_inline
def next_row(S: SearchState, Q: Cubes, parameters: SearchParameters, edge: int, row: int) -> int:
    """The first row of an edge from `row` on whose hypothesis is within the distortion limit; its number of
    hypotheses if there is none."""
    source = Q.edge_source[edge]
    if parameters.distortion >= 0:
        while row < Q.members[source]:
            hypothesis = Q.member[Q.first_member[source] + row]
            if abs(S.moves[edge].first - S.hypotheses[hypothesis].last - 1) <= parameters.distortion:
                break
            row += 1
    return row


@njit_inline
def add_cell(S: SearchState, Q: Cubes, edge: int, row: int, column: int) -> None:
    """Add a cell to those that wait for their scores. Sets `counters[FULL]` if memory runs out."""
    cell = Q.counters[CELLS]
    if cell >= len(Q.row):
        S.counters[FULL] = 1
    else:
        Q.counters[CELLS] = cell + 1
        Q.cell_edge[cell], Q.row[cell], Q.column[cell] = edge, row, column


@njit_inline
def is_new(Q: Cubes, cell: int) -> bool:
    """Whether a cell is not in the hash table yet. A new cell is added to it."""
    edge, row, column = Q.cell_edge[cell], Q.row[cell], Q.column[cell]
    slots = len(Q.table) - 1
    mixed = (np.int64(edge) * MIX + np.int64(row)) * MIX + np.int64(column)
    slot = ((mixed * MIX) >> np.int64(24)) & slots
    new = True
    while new and Q.table[slot] != -1:
        rival = Q.table[slot]
        new = Q.cell_edge[rival] != edge or Q.row[rival] != row or Q.column[rival] != column
        slot = (slot + 1) & slots
    if new:
        Q.table[slot] = cell
    return new


@njit_inline
def add_to_heap(Q: Cubes, cell: int) -> None:
    """Add a cell to the heap; among equal totals the oldest cell comes first."""
    index = Q.counters[HEAP]
    Q.counters[HEAP] = index + 1
    while index > 0:
        above = (index - 1) >> 1
        if Q.total[Q.heap[above]] >= Q.total[cell]:  # it is older
            break
        Q.heap[index] = Q.heap[above]
        index = above
    Q.heap[index] = cell


@njit_inline
def take_best(Q: Cubes) -> int:
    """Remove the best cell from the heap, and return it."""
    best, size = Q.heap[0], Q.counters[HEAP] - 1
    Q.counters[HEAP] = size
    cell, index = Q.heap[size], 0
    while 2 * index + 1 < size:
        below = 2 * index + 1
        if below + 1 < size and precedes(Q, Q.heap[below + 1], Q.heap[below]):
            below += 1
        if not precedes(Q, Q.heap[below], cell):
            break
        Q.heap[index] = Q.heap[below]
        index = below
    Q.heap[index] = cell
    return int(best)


@njit_inline
def precedes(Q: Cubes, cell: int, rival: int) -> bool:
    """Whether a cell leaves the heap before another one."""
    return bool(Q.total[cell] > Q.total[rival] or (Q.total[cell] == Q.total[rival] and cell < rival))


@njit_borrowing
def start_stack(S: SearchState, Q: Cubes, parameters: SearchParameters, stack: int) -> None:
    """Empty the heap, and add the first cell of each edge to those that wait for their scores. Sets
    `counters[FULL]` if memory runs out."""
    Q.counters[CELLS] = Q.counters[HEAP] = Q.counters[WAITING] = Q.counters[POPS] = 0
    Q.table[:] = -1
    edge = Q.first_edge[stack]
    while edge >= 0:
        add_cell(S, Q, edge, next_row(S, Q, parameters, edge, 0), 0)
        edge = Q.edge_next[edge]


@njit_borrowing
def fill_stack(S: SearchState, Q: Cubes, options: OptionArrays, gains: OptionGains,
lms: tuple[Automaton, ...], weights: Floats, parameters: SearchParameters, stack: int, most: int,
room: Int32s) -> bool:  # fmt: skip
    """Turn the best cells of a stack into hypotheses, at most `most` in this call. Returns whether the stack
    is complete or memory has run out, which sets `counters[FULL]`. `room`: scratch memory for states (L,)."""
    end = Q.counters[POPS] + most
    while not S.counters[FULL]:
        while Q.counters[WAITING] < Q.counters[CELLS]:
            cell = Q.counters[WAITING]
            Q.counters[WAITING] = cell + 1
            edge, row, column = Q.cell_edge[cell], Q.row[cell], Q.column[cell]
            source, move = Q.edge_source[edge], S.moves[edge]
            start, last = move.first, move.last
            span = start * parameters.longest + last - start
            if row >= Q.members[source] or column >= options.number[span] or not is_new(Q, cell):
                continue
            hypothesis, option = Q.member[Q.first_member[source] + row], options.first[span] + column
            gap, context = S.coverages[source].gap, S.hypotheses[hypothesis].context
            orientation, fixed = move_score(S, options, parameters, hypothesis, start, last, gap)
            complete = stack == parameters.words
            key = (np.int64(context) * len(options.first) + span) * 2 + complete
            block = find_block(S, key, options.number[span])
            if block < 0:
                return True
            slot, scored = block + column, S.lm_scores[block + column]
            if scored.context < 0:
                score_with_lms(S, options, lms, weights, context, option, complete, slot, room)
            base = S.hypotheses[hypothesis].score + fixed
            Q.score[cell] = base + gains.gain[orientation, option] + scored.score
            Q.total[cell] = Q.score[cell] + S.coverages[move.coverage].future
            Q.context[cell] = scored.context
            add_to_heap(Q, cell)
        if Q.counters[HEAP] == 0 or (Q.counters[POPS] >= parameters.pops and parameters.diversity == 0):
            return True
        if Q.counters[POPS] >= end:
            return False
        cell = take_best(Q)
        edge, row, column = Q.cell_edge[cell], Q.row[cell], Q.column[cell]
        source, move = Q.edge_source[edge], S.moves[edge]
        start, last, reached = move.first, move.last, move.coverage
        if Q.counters[POPS] >= parameters.pops and Q.added[reached] >= parameters.diversity:
            continue
        Q.counters[POPS] += 1
        add_cell(S, Q, edge, row, column + 1)
        add_cell(S, Q, edge, next_row(S, Q, parameters, edge, row + 1), column)
        if Q.total[cell] >= S.stacks[stack].worst:
            hypothesis = Q.member[Q.first_member[source] + row]
            option = options.first[start * parameters.longest + last - start] + column
            score, regions = Q.score[cell], 0
            if parameters.regions:
                regions = find_regions(S, hypothesis, start, last)
                if regions < 0:
                    return True
            added = push(
                S, parameters, options.forward_id, hypothesis, option, reached, start, last, score,
                Q.total[cell], Q.context[cell], regions, 0, score - S.hypotheses[hypothesis].score,
            )  # fmt: skip
            if added >= 0:
                Q.added[reached] += 1
    return True
