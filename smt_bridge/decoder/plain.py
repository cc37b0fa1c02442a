"""Stack decoding and cube pruning in plain Python: the reference against which the compiled searches are
tested. They are also used if numba is missing, or if a language model is a KenLM binary.

Everything is done in the simplest way: candidates are scored immediately, recombined in a dictionary, sorted,
and pruned. Cube pruning keeps all cells that may come next in a list, and takes the best from it.
"""

import heapq
import itertools
import math
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.compute.compiled import go_on
from smt_bridge.decoder.arrays import Int32s, OptionArrays, ReorderingConstraints, SearchParameters
from smt_bridge.decoder.compiled_search import Paths
from smt_bridge.decoder.coverage import early_distortion
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.decoder.model import Listing, SearchTask
from smt_bridge.decoder.sentence import spans
from smt_bridge.moses.reordering import LEFT, MONOTONE, RIGHT, SWAP

Key = tuple[Hashable, ...]  # hypotheses with equal keys are recombined


@dataclass
class SearchNode:
    """A hypothesis. `ways` lists all recombined ways to reach it, as (score, edge score, parent, option),
    where the edge score is what the option adds to the parent's score; `score` is the highest of these
    scores."""

    covered: frozenset[int]
    first: int  # first source word of the last phrase
    last: int  # last source word of the last phrase
    contexts: tuple[Hashable, ...]  # states of the language models
    memory: tuple[int, ...]  # states of the stateful features
    score: float
    total: float  # score plus future cost
    parent: "SearchNode | None" = None
    option: int = -1
    ways: list[tuple[float, float, "SearchNode", int]] = field(default_factory=list)
    regions: tuple[tuple[int, int], ...] = ()  # the uppermost one last; see orientations.py


def future(options: OptionArrays, covered: frozenset[int], n: int) -> float:
    """The future cost of a sentence of n words of which the words `covered` are translated: the sum of the
    best scores of the untranslated stretches."""
    total, start = 0.0, 0
    while start < n:
        if start in covered:
            start += 1
            continue
        end = start
        while end + 1 < n and end + 1 not in covered:
            end += 1
        total += float(options.future[start, end])
        start = end + 1
    return total


def first_gap(node: SearchNode) -> int:
    return next(word for word in itertools.count() if word not in node.covered)


def within_distortion_limit(node: SearchNode, start: int, last: int, limit: int) -> bool:
    """Whether a span can be translated next: it must be untranslated, within the distortion limit, and leave
    the first gap within reach."""
    if any(word in node.covered for word in range(start, last + 1)):
        return False
    gap = first_gap(node)
    return limit < 0 or (abs(start - node.last - 1) <= limit and (start == gap or last + 1 - gap <= limit))


def respects_constraints(
    node: SearchNode, start: int, last: int, limit: int, constraints: ReorderingConstraints
) -> bool:
    """Whether walls and zones allow the untranslated span from `start` to `last` to be translated after a
    hypothesis. `limit`: the distortion limit, -1 for none. Follows the rules of `coverage.permits`, with sets
    of words."""
    gap = first_gap(node)
    if start == gap == len(node.covered):
        return True  # in order
    if start > gap and any(constraints.wall[gap:last]):
        return False  # a gap is left before a wall
    span = set(range(start, last + 1))
    for number, (first, end) in enumerate(constraints.zones.tolist()):
        zone = set(range(first, end + 1))
        missing = zone - node.covered
        entered = missing != zone
        if not missing or not (span & zone or entered):
            continue
        if not span & zone:
            return False  # leaves a zone that is not finished
        if start > gap and 0 <= limit <= end - gap:
            return False  # the first gap could not be reached from the zone's end
        if start <= first:
            continue
        if last > end and not missing <= span:
            return False  # leaves a gap in the zone
        if last <= end:
            skipped = min((word for word in missing if word < start), default=last)
            if any(constraints.local[word] == number for word in range(skipped, min(end, last))):
                return False  # a gap is left before a wall of the zone
    return True


def lm_gains(
    task: SearchTask, node: SearchNode, option: int, complete: bool, gain: float
) -> tuple[float, tuple[Hashable, ...]]:
    """Add the weighted language model scores of an option that extends a hypothesis to `gain`; also returns
    the language models' states after it. `complete`: with the end of the sentence."""
    options, after = task.options, []
    words = slice(int(options.start[option]), int(options.start[option] + options.length[option]))
    for weight, lm, ids, state in zip(
        task.model.lm_weights, task.model.word_lms, options.words, node.contexts, strict=True
    ):
        log_prob, state = lm.walk(state, ids[words].tolist())
        if complete and options.length[option] > 0:
            end, state = lm.end(state)
            log_prob += end
        gain += weight * log_prob
        after.append(state)
    return gain, tuple(after)


def feature_gains(
    task: SearchTask, node: SearchNode, option: int, complete: bool
) -> tuple[float, list[int], list[int]]:
    """Weighted score that the stateful features give an option that extends a hypothesis; also returns their
    states and recombination keys. `complete`: with the end of the sentence."""
    gain, memory, keys = 0.0, [], []
    for weighted, scorer, state in zip(task.model.stateful, task.scorers, node.memory, strict=True):
        gains = scorer.gains(Candidates(np.array([option]), np.array([state]), complete))
        gain += float(gains.values[0] @ weighted.weights)
        memory.append(int(gains.states[0]))
        keys.append(int(gains.recombined[0]))
    return gain, memory, keys


def backward_orientation(node: SearchNode, first: int, last: int) -> int:
    """The orientation of a phrase relative to the uppermost region of a hypothesis, or to its last phrase."""
    start, end = node.regions[-1] if node.regions else (node.first, node.last)
    if first == end + 1:
        return MONOTONE
    return SWAP if last + 1 == start else RIGHT if first > end else LEFT


def forward_orientation(node: SearchNode, first: int, last: int, hierarchical: bool) -> int:
    """The orientation of a phrase as the last phrase of a hypothesis sees it."""
    if first > node.last and (first == node.last + 1 or (hierarchical and node.last + 1 not in node.covered)):
        return MONOTONE
    if first < node.first and (
        last + 1 == node.first or (hierarchical and node.first - 1 not in node.covered)
    ):
        return SWAP
    return RIGHT if first > node.last else LEFT


def merge_regions(regions: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Merge the two uppermost regions as long as they are adjacent."""
    while len(regions) > 1:
        (a, b), (c, d) = regions[-2:]
        if b + 1 != c and d + 1 != a:
            break
        regions = (*regions[:-2], (min(a, c), max(b, d)))
    return regions


def extend(node: SearchNode, option: int, task: SearchTask) -> tuple[Key, SearchNode]:
    """Extend a hypothesis by an option; returns the recombination key and the new hypothesis."""
    options, parameters = task.options, task.parameters
    first, last = int(task.sentence.first[option]), int(task.sentence.last[option])
    covered = node.covered | set(range(first, last + 1))
    complete = len(covered) == parameters.words
    early = parameters.early
    jump = early_distortion(first, last, node.last, first_gap(node)) if early else abs(first - node.last - 1)
    gain = float(options.score[option]) - jump * parameters.distortion_weight
    regions = merge_regions((*node.regions, (first, last))) if parameters.regions else ()
    if parameters.reordering:
        gain += float(options.backward[option, parameters.score_of[backward_orientation(node, first, last)]])
        way = parameters.score_of[forward_orientation(node, first, last, parameters.hierarchical)]
        gain += float(options.forward[node.option, way]) if node.parent else 0.0
    gain, contexts = lm_gains(task, node, option, complete, gain)
    feature_gain, memory, keys = feature_gains(task, node, option, complete)
    score = node.score + (gain + feature_gain)
    extended = SearchNode(
        covered=covered,
        first=first,
        last=last,
        contexts=contexts,
        memory=tuple(memory),
        score=score,
        total=score + future(options, covered, parameters.words),
        parent=node,
        option=option,
        regions=regions,
    )
    ordered = (first, int(options.forward_id[option]), regions) if parameters.reordering else ()
    return (covered, last, contexts, *keys, *ordered), extended


def search(task: SearchTask, listing: Listing, stop: threading.Event | None = None) -> Paths:
    """Search the whole sentence, stack by stack. Returns the options of the best derivation and its total
    score, or those of the n best derivations, best first; two empty lists if the sentence cannot be
    translated. Raises Stopped once `stop` is set."""
    options, parameters, n = task.options, task.parameters, task.parameters.words
    number, first = options.number, options.first
    stacks: list[dict[Key, SearchNode]] = [{} for _ in range(n + 1)]
    stacks[0][()] = start_node(task)
    best = [-math.inf] * (n + 1)
    for stack in stacks[:-1]:
        for node in survivors(stack, parameters):
            go_on(stop)
            for a, b in spans(n, parameters.longest):
                span = a * parameters.longest + b - a
                if not number[span] or not may_follow(node, a, b, task):
                    continue
                for option in range(first[span], first[span] + number[span]):
                    key, extended = extend(node, option, task)
                    size = len(extended.covered)
                    if extended.total >= best[size] + parameters.beam:
                        # as in Moses, hypotheses below the beam are not even recombined
                        add_to_stack(stacks[size], key, extended)
                        best[size] = max(best[size], extended.total)
    return list_paths(survivors(stacks[-1], parameters), task, listing)


def start_node(task: SearchTask) -> SearchNode:
    """The hypothesis that has translated nothing."""
    return SearchNode(
        covered=frozenset(),
        first=-2,
        last=-1,
        contexts=tuple(lm.start() for lm in task.model.word_lms),
        memory=tuple(scorer.start_state for scorer in task.scorers),
        score=0.0,
        total=future(task.options, frozenset(), task.parameters.words),
    )


def add_to_stack(stack: dict[Key, SearchNode], key: Key, node: SearchNode) -> None:
    """Add a hypothesis to a stack. If the stack has another with the same recombination key, that one gets
    the new way instead, and also its score, parent and option if the score is higher."""
    assert node.parent
    way = (node.score, node.score - node.parent.score, node.parent, node.option)
    recombined = stack.setdefault(key, node)
    recombined.ways.append(way)
    if node.score > recombined.score:
        recombined.score, recombined.total = node.score, node.total
        recombined.parent, recombined.option, recombined.memory = node.parent, node.option, node.memory


def survivors(stack: dict[Key, SearchNode], parameters: SearchParameters) -> list[SearchNode]:
    """The hypotheses of a stack that survive pruning, best first; among equals, the oldest first."""
    nodes = sorted(stack.values(), key=lambda node: -node.total)
    nodes = nodes[: parameters.stack] if parameters.stack else nodes
    beam = parameters.beam
    return [node for node in nodes if node.total >= nodes[0].total + beam or math.isinf(beam)]


def best_path(node: SearchNode) -> Int32s:
    """The options of the best derivation of a hypothesis, in target order."""
    path = []
    while node.parent:
        path.append(node.option)
        node = node.parent
    return np.array(path[::-1], np.int32)


def list_paths(finals: Sequence[SearchNode], task: SearchTask, listing: Listing) -> Paths:
    """List the best derivation, or the n best ones, that end in `finals`, the hypotheses of the last stack,
    best first: their options in target order, and their total scores."""
    if not listing.nbest:
        return [best_path(node) for node in finals[:1]], [node.score for node in finals[:1]]
    # entries: -score, age, hypothesis, the options after it, what they add
    heap: list[tuple[float, int, SearchNode, tuple[int, ...], float]] = [
        (-node.score, age, node, (), 0.0) for age, node in enumerate(finals)
    ]
    heapq.heapify(heap)
    age, derivations = len(heap), 0
    seen: set[tuple[int, ...]] = set()
    paths: list[Int32s] = []
    totals = []
    while heap and len(paths) < listing.nbest:
        negative, _, node, path, tail = heapq.heappop(heap)
        if not node.parent:
            derivations += 1
            if listing.distinct and derivations > listing.nbest * listing.factor:
                break
            text = tuple(task.sentence.word_ids(path))
            if not listing.distinct or text not in seen:
                seen.add(text)
                paths.append(np.array(path, np.int32))
                totals.append(-negative)
            continue
        for _, edge, parent, option in node.ways:
            age += 1
            heapq.heappush(heap, (-(parent.score + edge + tail), age, parent, (option, *path), tail + edge))
    return paths, totals


# ---- cube pruning ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edge:
    """Hypotheses of one coverage, best first, and the options of a span that may follow each of them."""

    nodes: Sequence[SearchNode]
    options: Sequence[int]


def cube_search(task: SearchTask, listing: Listing, stop: threading.Event | None = None) -> Paths:
    """Search by cube pruning, which takes no stateful features; arguments, results and errors as for
    `search`."""
    n = task.parameters.words
    edges: list[list[Edge]] = [[] for _ in range(n + 1)]
    nodes = [start_node(task)]
    for stack in range(1, n + 1):
        go_on(stop)
        for words, edge in extension_edges(nodes, task):
            edges[stack - 1 + words].append(edge)
        nodes = survivors(fill_stack(edges[stack], task), task.parameters)
    return list_paths(nodes, task, listing)


def extension_edges(nodes: Sequence[SearchNode], task: SearchTask) -> list[tuple[int, Edge]]:
    """List the edges that extend the hypotheses of a stack, each with the number of words of its span."""
    options, parameters, edges = task.options, task.parameters, list[tuple[int, Edge]]()
    groups = dict[frozenset[int], list[SearchNode]]()
    for node in nodes:
        groups.setdefault(node.covered, []).append(node)
    for group in groups.values():
        for first, last in spans(parameters.words, parameters.longest):
            span = first * parameters.longest + last - first
            start = int(options.first[span])
            span_options = range(start, start + int(options.number[span]))
            near = [node for node in group if may_follow(node, first, last, task)]
            if span_options and near:
                edges.append((last - first + 1, Edge(near, span_options)))
    return edges


def may_follow(node: SearchNode, first: int, last: int, task: SearchTask) -> bool:
    """Whether a span may be translated after a hypothesis."""
    limit, constraints = task.parameters.distortion, task.options.constraints
    return within_distortion_limit(node, first, last, limit) and (
        not constraints.active or respects_constraints(node, first, last, limit, constraints)
    )


def fill_stack(edges: Sequence[Edge], task: SearchTask) -> dict[Key, SearchNode]:
    """Turn the best cells of the edges that lead to a stack into hypotheses: recombination key -> hypothesis.
    A cell is a hypothesis of an edge extended by one of its options."""
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
