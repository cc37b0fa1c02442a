"""Symmetrization of word alignments (Och and Ney 2003; Koehn et al. 2005): union, intersection, grow,
grow-diag, and the final steps.

Links are pairs (source word, target word), counted from 0, in both directions.
"""

from collections.abc import Callable, Iterable

from nmt.formats.pharaoh import Links

SIDES = ((-1, 0), (0, -1), (1, 0), (0, 1))
DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def grow(forward: Links, reverse: Links, around: Iterable[tuple[int, int]] = SIDES) -> Links:
    """Start from the intersection and add links of the union that are next to a link and align a word that
    has none yet.

    Candidates are visited in order, repeatedly, as in fast_align's atools; another order gives other links.
    """
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
    """Grow along diagonals too."""
    return grow(forward, reverse, (*SIDES, *DIAGONALS))


def final(links: Links, directions: Iterable[Links], both: bool) -> Links:
    """Add the remaining links of each direction that have a word (`both`: two words) without a link so
    far."""
    found = set(links)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    for direction in directions:
        for source, target in sorted(direction):
            free = source not in sources, target not in targets
            if all(free) if both else any(free):
                found.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(found)


def grow_diag_final(forward: Links, reverse: Links) -> Links:
    """Grow-diag, then links with an unaligned word."""
    return final(grow_diag(forward, reverse), (forward, reverse), both=False)


def grow_diag_final_and(forward: Links, reverse: Links) -> Links:
    """Grow-diag, then links with two unaligned words."""
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
