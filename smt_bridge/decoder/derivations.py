"""The best derivations of a searched sentence, best first. The order is exact: best-first search backwards is
guided by the forward scores."""

import heapq
from typing import NamedTuple

import numpy as np

from smt_bridge.decoder.arrays import Floats, Int32s, SearchParameters, SearchState
from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.search import select

BASE = np.uint64(1099511628211)  # of the hash by which texts are told apart
SPREAD = np.uint64(11400714819323198485)


class Listing(NamedTuple):
    """Which derivations an n-best list has."""

    nbest: int  # 0: only the best
    distinct: bool  # of different texts
    factor: int  # with `distinct`: derivations looked at, at most, for each one listed


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
