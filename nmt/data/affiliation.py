"""The source word that each target word belongs to, from a word alignment (Devlin et al. 2014, section
2.1)."""

from collections.abc import Iterable, Sequence

from nmt.formats.pharaoh import Links

SENTENCE, PHRASE = "sentence", "phrase"  # where the nearest linked word is looked for
LONGEST = 7  # words of a phrase on either side
Phrase = tuple[tuple[int, int], tuple[int, int]]  # (first, last) word of the source and of the target


def affiliations(points: Iterable[tuple[int, int]], source: int, target: int) -> list[int]:
    """For each of `target` words one of `source` words, given the links between them.

    A word with one link belongs to that source word, one with several to the middle one, rounded down. A word
    without links belongs where the nearest linked target word does, of two the right one. Without any link
    words lie on the diagonal.
    """
    links: list[list[int]] = [[] for _ in range(target)]
    for a, b in points:
        links[b].append(a)
    linked = [b for b in range(target) if links[b]]
    if not linked:
        return [(2 * b + 1) * source // (2 * target) for b in range(target)]
    middle = {b: sorted(links[b])[(len(links[b]) - 1) // 2] for b in linked}
    return [middle[min(linked, key=lambda other: (abs(other - b), -other))] for b in range(target)]


def within_phrases(points: Iterable[tuple[int, int]], phrases: Iterable[Phrase], target: int) -> list[int]:
    """The same phrase by phrase; the target words of all phrases are those of the sentence."""
    links, found = list(points), [0] * target
    for (first, last), (begin, end) in phrases:
        inside = [(a - first, b - begin) for a, b in links if first <= a <= last and begin <= b <= end]
        own = affiliations(inside, last - first + 1, end - begin + 1)
        found[begin : end + 1] = [first + place for place in own]
    return found


def of_pair(links: Links, source: int, target: int, within: str) -> list[int]:
    """The affiliations of a sentence pair; `within`: SENTENCE or PHRASE."""
    phrases = fewest_phrases(links, source, target) if within == PHRASE else []
    return within_phrases(links, phrases, target) if phrases else affiliations(links, source, target)


def fewest_phrases(links: Links, source: int, target: int, longest: int = LONGEST) -> list[Phrase]:
    """The fewest phrase pairs of at most `longest` words that cover the target, as a decoder would translate
    a sentence that it has seen; [] where the alignment allows none."""
    by_source: list[list[int]] = [[] for _ in range(source)]
    by_target: list[list[int]] = [[] for _ in range(target)]
    for a, b in links:
        by_source[a].append(b)
        by_target[b].append(a)
    best: list[list[Phrase] | None] = [[], *[None] * target]  # of the first words of the target
    for end in range(target):
        for begin in range(max(0, end - longest + 1), end + 1):
            before, after = best[begin], best[end + 1]
            if before is not None and (after is None or len(before) + 1 < len(after)):
                span = source_span(begin, end, by_source, by_target)
                if span and span[1] - span[0] < longest:
                    best[end + 1] = [*before, (span, (begin, end))]
    return best[target] or []


def source_span(
    begin: int, end: int, by_source: Sequence[Sequence[int]], by_target: Sequence[Sequence[int]]
) -> tuple[int, int] | None:
    """The source words that a target span makes a phrase pair with; None where it makes none."""
    linked = [a for b in range(begin, end + 1) for a in by_target[b]]
    if not linked:
        return None
    first, last = min(linked), max(linked)
    inside = all(begin <= b <= end for a in range(first, last + 1) for b in by_source[a])
    return (first, last) if inside else None
