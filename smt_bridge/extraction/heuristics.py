"""Heuristics that combine the links of both directions of word alignment: union, intersection, grow,
grow-diag and the final steps (Och and Ney 2003; Koehn et al. 2005).

Each is a function of the links of one sentence pair, which are pairs (source word, target word) counted from
0, in both directions. smt_bridge/extraction/symmetrization.py computes the same, compiled.
"""

from collections.abc import Callable, Iterable

from nmt.formats.pharaoh import Links

NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1))
DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def grow(forward: Links, reverse: Links, around: Iterable[tuple[int, int]] = NEIGHBORS) -> Links:
    """Add links of the union that are adjacent to a link and align a word that had none, starting from the
    intersection. Candidates are visited repeatedly in a fixed order, as in fast_align's atools; another order
    would give other links."""
    links, around = set(forward & reverse), tuple(around)
    candidates = sorted((forward | reverse) - links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    growing = True
    while growing:
        growing = False
        for source, target in candidates:
            free = source not in sources or target not in targets
            if free and any((source + down, target + right) in links for down, right in around):
                links.add((source, target))
                sources.add(source)
                targets.add(target)
                growing = True
        candidates = [link for link in candidates if link not in links]
    return frozenset(links)


def grow_diag(forward: Links, reverse: Links) -> Links:
    """Grow along diagonals as well."""
    return grow(forward, reverse, (*NEIGHBORS, *DIAGONALS))


def final(links: Links, directions: Iterable[Links], both: bool) -> Links:
    """Add links of each direction with an unaligned source or target word; `both`: with both unaligned."""
    result = set(links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    for direction in directions:
        for source, target in sorted(direction):
            free = source not in sources, target not in targets
            if all(free) if both else any(free):
                result.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(result)


def grow_diag_final(forward: Links, reverse: Links) -> Links:
    """Grow-diag, then add links with an unaligned word."""
    return final(grow_diag(forward, reverse), (forward, reverse), both=False)


def grow_diag_final_and(forward: Links, reverse: Links) -> Links:
    """Grow-diag, then add links with two unaligned words."""
    return final(grow_diag(forward, reverse), (forward, reverse), both=True)


HEURISTICS: dict[str, Callable[[Links, Links], Links]] = {
    "grow-diag-final-and": grow_diag_final_and,
    "grow-diag-final": grow_diag_final,
    "grow-diag": grow_diag,
    "grow": grow,
    "intersection": frozenset.intersection,
    "union": frozenset.union,
    "forward": lambda forward, reverse: forward,
    "reverse": lambda forward, reverse: reverse,
}
