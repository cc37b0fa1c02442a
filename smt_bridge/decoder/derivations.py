"""The best derivations of a searched sentence, best first: exact, since the forward scores are what
best-first search needs to know."""

import heapq
from typing import Any

import numpy as np

from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.search import select

BASE = np.uint64(1099511628211)  # of the hash by which texts are told apart


@njit
def best_option_path(S: Any, hypothesis: int) -> Any:
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
def derivations(
    S: Any, limits: Any, count: int, distinct: bool, factor: int, start: Any, length: Any, text: Any
) -> Any:
    """Up to `count` derivations: their options, one after the other; where each ends; their totals.

    `text[start[o] : start[o] + length[o]]` are the target words of option o. `distinct`: one for each text,
    of the first
    count x factor derivations.
    """
    finals = select(S, limits, limits.words)
    # a node: a hypothesis, and the options from there to the end of the sentence
    hypothesis, option, after = [np.int64(-1)], [np.int64(-1)], [np.int64(-1)]
    tail, size, digest = [0.0], [np.int64(0)], [np.uint64(0)]
    ways = [0.0]  # sorted ways into hypotheses: score before the way, edge
    ways.clear()
    way_edge = [np.int64(0)]
    way_edge.clear()
    first_way = np.full(S.counters[0], -1, np.int64)
    last_way = np.zeros(S.counters[0], np.int64)
    heap = [
        (0.0, np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    ]  # -score, age, hypothesis, its next way (-1: complete), node after it
    heap.clear()
    age = np.int64(0)
    for final in finals:
        heapq.heappush(heap, (-S.score[final], age, np.int64(final), np.int64(0), np.int64(0)))
        age += 1
    seen = {np.uint64(0)}
    seen.clear()
    chosen = np.empty(64, np.int32)
    used = 0
    ends = np.zeros(count, np.int64)
    totals = np.zeros(count)
    found, looked = 0, 0
    while len(heap) > 0 and found < count:
        negative, _, here, way, node = heapq.heappop(heap)
        if here == 0:
            looked += 1
            new = True
            if distinct:
                if looked > count * factor:
                    break
                new = digest[node] not in seen
                seen.add(digest[node])
            if new:
                walk = node
                while after[walk] >= 0:
                    if used == len(chosen):
                        chosen = np.concatenate((chosen, np.empty(len(chosen), np.int32)))
                    chosen[used] = option[walk]
                    used += 1
                    walk = after[walk]
                ends[found] = used
                totals[found] = -negative
                found += 1
            continue
        if first_way[here] < 0:  # sort the ways into this hypothesis
            edges = 0
            edge = S.edge[here]
            while edge >= 0:
                edges += 1
                edge = S.edge_next[edge]
            scores, numbers = np.empty(edges), np.empty(edges, np.int64)
            edge = S.edge[here]
            for i in range(edges):
                scores[edges - 1 - i] = S.score[S.edge_parent[edge]] + S.edge_score[edge]
                numbers[edges - 1 - i] = edge
                edge = S.edge_next[edge]
            order = np.argsort(-scores, kind="mergesort")
            first_way[here] = len(ways)
            for i in range(edges):
                ways.append(scores[order[i]])
                way_edge.append(numbers[order[i]])
            last_way[here] = len(ways)
        place = first_way[here] + way
        if place + 1 < last_way[here]:
            heapq.heappush(heap, (-(ways[place + 1] + tail[node]), age, here, way + 1, node))
            age += 1
        edge = way_edge[place]
        chosen_option = S.edge_option[edge]
        power, mixed = np.uint64(1), digest[node]
        for _ in range(size[node]):
            power *= BASE
        for i in range(length[chosen_option] - 1, -1, -1):
            mixed += (
                power
                * (np.uint64(text[start[chosen_option] + i]) + np.uint64(1))
                * np.uint64(11400714819323198485)
            )
            power *= BASE
        hypothesis.append(np.int64(here))
        option.append(np.int64(chosen_option))
        after.append(np.int64(node))
        tail.append(tail[node] + S.edge_score[edge])
        size.append(size[node] + np.int64(length[chosen_option]))
        digest.append(mixed)
        heapq.heappush(
            heap,
            (
                -(ways[place] + tail[node]),
                age,
                np.int64(S.edge_parent[edge]),
                np.int64(0),
                np.int64(len(option) - 1),
            ),
        )
        age += 1
    return chosen[:used], ends[:found], totals[:found]
