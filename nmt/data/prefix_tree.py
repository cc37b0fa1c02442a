"""Many sequences of token ids as tries, level by level: a common prefix is one node, so that a whole level
can be one matrix product.

    a b        level 0  the roots: one for each group
    a c        level 1  a
    a c d      level 2  b(parent 0) c(parent 0)      `a b` ends at node 0, `a c` at node 1
               level 3  d(parent 1)                  `a c d` ends at node 0
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nmt.data.binarized import Ids

Ints = NDArray[np.int64]
BLOCK = 512  # nodes computed at a time


@dataclass
class TrieLevel:
    """The n nodes of one depth, in order of their parents, and the m sequences that end at them."""

    token_ids: Ints  # (n,) last token of each node; -1 at the roots
    parents: Ints  # (n,) index of its parent in the level above; non-decreasing
    ended: Ints  # (m,) indices of the sequences that end at this level
    nodes: Ints  # (m,) the node at which each of them ends; non-decreasing

    @staticmethod
    def empty() -> "TrieLevel":
        none = np.zeros(0, np.int64)
        return TrieLevel(token_ids=none, parents=none, ended=none, nodes=none)


def levels(sequences: Sequence[Ids], groups: Sequence[int] | Ints | None = None) -> list[TrieLevel]:
    """Build the levels of the tries. `groups`: for each sequence the number of its group, from 0; only
    sequences of the same group share prefixes. Without groups all do. The nodes of level 0 are the groups."""
    count = len(sequences)
    lengths = np.fromiter(map(len, sequences), np.int64, count)
    roots = np.zeros(count, np.int64) if groups is None else np.asarray(groups, np.int64)
    grid = np.full((count, int(lengths.max(initial=0))), -1, np.int64)
    ids = np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum()))
    grid[np.arange(grid.shape[1]) < lengths[:, None]] = ids
    order = np.lexsort([*grid.T[::-1], roots])
    grid, lengths, roots = grid[order], lengths[order], roots[order]
    node = roots  # of each sequence, in the current level
    fresh = np.ones(count, bool)  # whether a sequence differs from the previous one so far
    fresh[1:] = roots[1:] != roots[:-1]
    empty = lengths == 0
    groups_in_all = int(roots.max(initial=-1)) + 1
    result = [
        TrieLevel(
            token_ids=np.full(groups_in_all, -1),
            parents=np.zeros(groups_in_all, np.int64),
            ended=order[empty],
            nodes=roots[empty],
        )
    ]
    for depth in range(grid.shape[1]):
        column = grid[:, depth]
        fresh[1:] |= column[1:] != column[:-1]
        first = fresh & (lengths > depth)
        ends = lengths == depth + 1
        here = np.cumsum(first) - 1
        result.append(
            TrieLevel(token_ids=column[first], parents=node[first], ended=order[ends], nodes=here[ends])
        )
        node = here
    return result


def blocks(count: int, size: int = BLOCK) -> Iterator[slice]:
    """Yield slices of `size` that cover 0 to `count`; the last may be shorter."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
