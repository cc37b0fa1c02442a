"""Combine the links of both directions of word alignment, compiled, for all sentence pairs of a text. The
heuristics in plain Python are in heuristics.py; both give the same links."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.formats.pharaoh import Links
from smt_bridge.extraction.heuristics import DIAGONALS, HEURISTICS, NEIGHBORS
from smt_bridge.extraction.packed_corpus import Int64s, PackedLinks, pack_links

Words = NDArray[np.uint16]


class Rules(NamedTuple):
    """The rules that a heuristic consists of."""

    needed: int  # bits of the directions that must have a link for it to be in the initial set; 0: either
    around: int = 0  # how many of STEPS lead to cells that a link grows to
    final: int = 0  # unaligned words, 1 or 2, that a link of the final step needs; 0: no final step


IN_FORWARD, IN_REVERSE, CHOSEN = 1, 2, 4  # bits of a cell
IN_BOTH = IN_FORWARD | IN_REVERSE
RULES = {
    "grow-diag-final-and": Rules(IN_BOTH, 8, 2),
    "grow-diag-final": Rules(IN_BOTH, 8, 1),
    "grow-diag": Rules(IN_BOTH, 8),
    "grow": Rules(IN_BOTH, 4),
    "intersection": Rules(IN_BOTH),
    "union": Rules(0),
    "forward": Rules(IN_FORWARD),
    "reverse": Rules(IN_REVERSE),
}
STEPS = np.array([*NEIGHBORS, *DIAGONALS])


def symmetrize(forward: Sequence[Links], reverse: Sequence[Links], heuristic: str) -> PackedLinks:
    """Combine the links of both directions, sentence pair by sentence pair, with the source word first in
    both. `heuristic`: a name in HEURISTICS; KeyError for another one. Both must have as many sentence
    pairs."""
    if heuristic not in RULES:  # of a plugin
        return pack_links(map(HEURISTICS[heuristic], forward, reverse))
    left, right = pack_links(forward), pack_links(reverse)
    assert len(left) == len(right)
    room = len(left.source) + len(right.source)
    source, target = np.empty(room, np.uint16), np.empty(room, np.uint16)
    offsets = np.zeros(len(left) + 1, np.int64)
    rules = RULES[heuristic]
    size = combine(
        left.source, left.target, left.offsets, right.source, right.target, right.offsets,
        STEPS[: rules.around], rules, source, target, offsets,
    )  # fmt: skip
    return PackedLinks(source[:size].copy(), target[:size].copy(), offsets)


@njit
def combine(
    source: Words, target: Words, cut: Int64s, other_source: Words, other_target: Words, other_cut: Int64s,
    around: Int64s, rules: Rules, to_source: Words, to_target: Words, offsets: Int64s,
) -> int:  # fmt: skip
    """Combine the links of all N pairs; returns the number of links.

    `source`, `target`, `cut`: the arrays of the forward direction, see `PackedLinks`; `other_...`: those of
    the reverse direction; `around` (K, 2): steps to the cells that a link grows to. The result is written to
    `to_source`, `to_target` and `offsets` (N + 1,).
    """
    size = 0
    for pair in range(len(cut) - 1):
        start, end, first, last = cut[pair], cut[pair + 1], other_cut[pair], other_cut[pair + 1]
        n = m = 0
        for index in range(start, end):
            n, m = max(n, source[index] + 1), max(m, target[index] + 1)
        for index in range(first, last):
            n, m = max(n, other_source[index] + 1), max(m, other_target[index] + 1)
        cells = np.zeros((n, m), np.uint8)
        for index in range(start, end):
            cells[source[index], target[index]] |= IN_FORWARD
        for index in range(first, last):
            cells[other_source[index], other_target[index]] |= IN_REVERSE
        rows, columns = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
        for i in range(n):
            for j in range(m):
                directions = cells[i, j]
                if directions and directions & rules.needed == rules.needed:
                    cells[i, j] |= CHOSEN
                    rows[i] = columns[j] = True
        growing = len(around) > 0
        while growing:
            growing = False
            for i in range(n):
                for j in range(m):
                    if not cells[i, j] or cells[i, j] & CHOSEN or (rows[i] and columns[j]):
                        continue
                    for step in range(len(around)):
                        down, right = i + around[step, 0], j + around[step, 1]
                        if 0 <= down < n and 0 <= right < m and cells[down, right] & CHOSEN:
                            cells[i, j] |= CHOSEN
                            rows[i] = columns[j] = growing = True
                            break
        if rules.final:
            for direction in (IN_FORWARD, IN_REVERSE):
                for i in range(n):
                    for j in range(m):
                        if not cells[i, j] & direction or cells[i, j] & CHOSEN:
                            continue
                        if int(not rows[i]) + int(not columns[j]) >= rules.final:
                            cells[i, j] |= CHOSEN
                            rows[i] = columns[j] = True
        for i in range(n):
            for j in range(m):
                if cells[i, j] & CHOSEN:
                    to_source[size], to_target[size] = i, j
                    size += 1
        offsets[pair + 1] = size
    return size
