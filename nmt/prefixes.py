"""Many id sequences as a trie, level by level: what begins alike is one node, and a whole level is one matrix
product.

    a b        level 0  the roots: one for each group
    a c        level 1  a
    a c d      level 2  b(parent 0) c(parent 0)      `a b` ends at node 0, `a c` at node 1
               level 3  d(parent 1)                  `a c d` ends at node 0

Built with numpy's sort, no Python per sequence: 2-4 million sequences a second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[int] | NDArray[np.integer]
Ints = NDArray[np.int64]
BLOCK = 512


@dataclass
class Level:
    """The n nodes of one depth, in order of their parents, and the sequences that end at them."""

    words: Ints  # (n,) last word of each node
    parents: Ints  # (n,) its node of the level above; never falling
    ended: Ints  # (m,) sequences as long as this level is deep
    nodes: Ints  # (m,) the node of each; never falling


def levels(sequences: Sequence[Ids], groups: Sequence[int] | Ints | None = None) -> list[Level]:
    """Sequences of one group, numbered from 0, share prefixes; without groups all do. Level 0 are the
    groups."""
    count = len(sequences)
    lengths = np.fromiter(map(len, sequences), np.int64, count)
    roots = np.zeros(count, np.int64) if groups is None else np.asarray(groups, np.int64)
    grid = np.full((count, int(lengths.max(initial=0))), -1, np.int64)
    grid[np.arange(grid.shape[1]) < lengths[:, None]] = np.concatenate(
        [np.zeros(0, np.int64), *map(np.asarray, sequences)]
    )
    order = np.lexsort([*grid.T[::-1], roots])
    grid, lengths, roots = grid[order], lengths[order], roots[order]
    node = roots  # of each sequence, in the level in hand
    fresh = np.ones(count, bool)  # does a sequence differ from the one above it so far?
    fresh[1:] = roots[1:] != roots[:-1]
    empty = lengths == 0
    groups_in_all = int(roots.max(initial=-1)) + 1
    result = [
        Level(np.full(groups_in_all, -1), np.zeros(groups_in_all, np.int64), order[empty], roots[empty])
    ]
    for depth in range(grid.shape[1]):
        column = grid[:, depth]
        fresh[1:] |= column[1:] != column[:-1]
        first = fresh & (lengths > depth)
        ends = lengths == depth + 1
        here = np.cumsum(first) - 1
        result.append(Level(column[first], node[first], order[ends], here[ends]))
        node = here
    return result


def blocks(count: int, size: int = BLOCK) -> Iterator[slice]:
    """0:512, 512:1024 ... up to count."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
