"""The source word that each target word is affiliated with, from a word alignment (Devlin et al. 2014,
section 2.1)."""

from collections.abc import Iterable, Sequence

from nmt.formats.pharaoh import Links

SENTENCE, PHRASE = "sentence", "phrase"  # where the nearest linked word is looked for
LONGEST = 7  # words of a phrase on either side
Phrase = tuple[tuple[int, int], tuple[int, int]]  # (first, last) word of the source and of the target


def affiliations(points: Iterable[tuple[int, int]], source: int, target: int) -> list[int]:
    """Choose one of `source` words for each of `target` words, given the links between them.

    A word with several links takes the middle one, rounded down. A word without links takes the source word
    of the nearest linked target word, on a tie that of the right one. Without any link words lie on the
    diagonal."""
    links: list[list[int]] = [[] for _ in range(target)]
    for a, b in points:
        links[b].append(a)
    linked = [b for b in range(target) if links[b]]
    if not linked:
        return [(2 * b + 1) * source // (2 * target) for b in range(target)]
    middle = {b: sorted(links[b])[(len(links[b]) - 1) // 2] for b in linked}
    return [middle[min(linked, key=lambda position: (abs(position - b), -position))] for b in range(target)]


def affiliations_by_phrase(
    points: Iterable[tuple[int, int]], phrases: Iterable[Phrase], target: int
) -> list[int]:
    """Compute `affiliations` within each phrase pair. The phrases cover all target words."""
    links, result = list(points), [0] * target
    for (first, last), (start, end) in phrases:
        inside = [(a - first, b - start) for a, b in links if first <= a <= last and start <= b <= end]
        own = affiliations(inside, last - first + 1, end - start + 1)
        result[start : end + 1] = [first + position for position in own]
    return result


def affiliate_pair(links: Links, source: int, target: int, within: str) -> list[int]:
    """The affiliations of a sentence pair; `within`: SENTENCE or PHRASE."""
    phrases = fewest_phrases(links, source, target) if within == PHRASE else []
    return affiliations_by_phrase(links, phrases, target) if phrases else affiliations(links, source, target)


def fewest_phrases(links: Links, source: int, target: int, longest: int = LONGEST) -> list[Phrase]:
    """Segment a pair into the fewest phrase pairs of at most `longest` words, as a decoder would translate a
    sentence of its training text. Returns [] where the alignment allows no segmentation."""
    by_source: list[list[int]] = [[] for _ in range(source)]
    by_target: list[list[int]] = [[] for _ in range(target)]
    for a, b in links:
        by_source[a].append(b)
        by_target[b].append(a)
    best: list[list[Phrase] | None] = [[], *[None] * target]  # of the first words of the target
    for end in range(target):
        for start in range(max(0, end - longest + 1), end + 1):
            shorter, current = best[start], best[end + 1]
            if shorter is not None and (current is None or len(shorter) + 1 < len(current)):
                span = source_span(start, end, by_source, by_target)
                if span and span[1] - span[0] < longest:
                    best[end + 1] = [*shorter, (span, (start, end))]
    return best[target] or []


def source_span(
    start: int, end: int, by_source: Sequence[Sequence[int]], by_target: Sequence[Sequence[int]]
) -> tuple[int, int] | None:
    """First and last source word of the phrase pair with a target span; None where there is none."""
    linked = [a for b in range(start, end + 1) for a in by_target[b]]
    if not linked:
        return None
    first, last = min(linked), max(linked)
    inside = all(start <= b <= end for a in range(first, last + 1) for b in by_source[a])
    return (first, last) if inside else None
