"""Cube pruning in plain Python. The compiled one is tested against it, and it is used where that one cannot
be, as `plain.py` is.

All cells that may come next are in a list, from which the best is taken."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.compute.compiled import go_on
from smt_bridge.decoder.compiled_search import Paths
from smt_bridge.decoder.model import Listing, SearchTask
from smt_bridge.decoder.plain import (
    Key,
    SearchNode,
    add_to_stack,
    best_paths,
    extend,
    future,
    path_of,
    respects_constraints,
    survivors,
    within_distortion_limit,
)


@dataclass(frozen=True)
class Edge:
    """Hypotheses of one coverage, best first, and the options of a span that may follow each of them."""

    nodes: Sequence[SearchNode]
    options: Sequence[int]


def search(task: SearchTask, listing: Listing, stop: threading.Event | None = None) -> Paths:
    """Option paths and totals, best first: one, or the n best."""
    n = task.parameters.words
    empty: frozenset[int] = frozenset()
    contexts = tuple(lm.start() for lm in task.model.word_lms)
    start = SearchNode(empty, -2, -1, contexts, (), 0.0, future(task.options, empty, n))
    edges: list[list[Edge]] = [[] for _ in range(n + 1)]
    nodes = [start]
    for stack in range(1, n + 1):
        go_on(stop)
        for words, edge in edges_of(nodes, task):
            edges[stack - 1 + words].append(edge)
        nodes = survivors(fill(edges[stack], task), task.parameters)
    if not nodes:
        return [], []
    if not listing.nbest:
        return [path_of(nodes[0])], [nodes[0].score]
    return best_paths(nodes, task, listing)


def edges_of(nodes: Sequence[SearchNode], task: SearchTask) -> list[tuple[int, Edge]]:
    """The edges that extend the hypotheses of a stack, each with the number of words of its span."""
    options, parameters, edges = task.options, task.parameters, list[tuple[int, Edge]]()
    groups = dict[frozenset[int], list[SearchNode]]()
    for node in nodes:
        groups.setdefault(node.covered, []).append(node)
    for group in groups.values():
        for first in range(parameters.words):
            for last in range(first, min(parameters.words, first + parameters.longest)):
                span = first * parameters.longest + last - first
                start = int(options.first[span])
                follow = range(start, start + int(options.number[span]))
                near = [node for node in group if may_follow(node, first, last, task)]
                if follow and near:
                    edges.append((last - first + 1, Edge(near, follow)))
    return edges


def may_follow(node: SearchNode, first: int, last: int, task: SearchTask) -> bool:
    """Whether a span may be translated after a hypothesis."""
    limit, constraints = task.parameters.distortion, task.options.constraints
    return within_distortion_limit(node, first, last, limit) and (
        not constraints.active or respects_constraints(node, first, last, limit, constraints)
    )


def fill(edges: Sequence[Edge], task: SearchTask) -> dict[Key, SearchNode]:
    """The hypotheses that the best cells of the edges of a stack give."""
    parameters, stack = task.parameters, dict[Key, SearchNode]()
    cells = list[tuple[float, int, tuple[int, int, int], Key, SearchNode]]()
    seen, added, pops, best = set[tuple[int, int, int]](), dict[frozenset[int], int](), 0, -math.inf

    def add(number: int, row: int, column: int) -> None:
        edge, cell = edges[number], (number, row, column)
        if row < len(edge.nodes) and column < len(edge.options) and cell not in seen:
            key, node = extend(edge.nodes[row], edge.options[column], task)
            cells.append((-node.total, len(seen), cell, key, node))
            seen.add(cell)

    for number in range(len(edges)):
        add(number, 0, 0)
    while cells and (pops < parameters.pops or parameters.diversity):
        cell = min(cells, key=lambda cell: cell[:2])
        cells.remove(cell)
        _, _, (number, row, column), key, node = cell
        if pops >= parameters.pops and added.get(node.covered, 0) >= parameters.diversity:
            continue
        pops += 1
        add(number, row, column + 1)
        add(number, row + 1, column)
        if node.total >= best + parameters.beam:
            better = key not in stack or node.score > stack[key].score
            add_to_stack(stack, key, node)
            added[node.covered] = added.get(node.covered, 0) + better
            best = max(best, node.total)
    return stack
