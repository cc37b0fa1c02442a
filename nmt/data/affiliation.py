"""Word-aligned sentence pairs, and the windows of their words that joint models read.

n: order of the model, which reads n - 1 target words before each word; w: width of the source window.

A target word sees the source words around its affiliated one. For the pair `a b c` - `x y`, x belonging to a
and y to c, and windows of three words (`.` end symbol, `_` beyond the sentence):

    word      x       y       .
    before    _ _     _ x     x y
    window    _ a b   b c .   c . _

A model that works from right to left reads the mirrored pair, `c b a` - `y x`: of the pair as it is written,
the end symbols stand at the left end."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.binarized import Ids
from nmt.formats.pharaoh import Links
from nmt.text.vocab import BOS, EOS

Ints = NDArray[np.int64]
BEYOND = BOS  # padding before the sentence and after its end symbol, on both sides


class AlignedPair(NamedTuple):
    """A pair of sentences, as ids without start and end symbols, and for each target word the position of its
    affiliated source word; the length of the source stands for its end symbol."""

    source: Ids
    target: Ids
    affiliation: Ids


class Shape(NamedTuple):
    """The size and direction of the context that a model reads."""

    order: int  # words of an n-gram of the target, the predicted one included
    window: int  # source words, an odd number
    backward: bool = False  # reads both sentences from right to left


def source_windows(source: Ids, window: int) -> Ints:
    """The window around each word of a sentence of L words, and around its end symbol: (L + 1, w). `window`:
    w, an odd number."""
    beyond = [BEYOND] * (window // 2)
    return np.lib.stride_tricks.sliding_window_view(
        np.array([*beyond, *source, EOS, *beyond], np.int64), window
    )


def target_contexts(target: Ids, order: int) -> Ints:
    """The n - 1 words before each word of a sentence of J words, and its end symbol: (J + 1, n - 1)"""
    line = np.array([*[BEYOND] * (order - 1), *target], np.int64)
    return np.lib.stride_tricks.sliding_window_view(line, order - 1)


def mirror_pair(pair: AlignedPair) -> AlignedPair:
    """Return the pair with both sentences reversed. Words affiliated with the source's end symbol stay so."""
    last = len(pair.source) - 1
    affiliation = [position if position > last else last - position for position in pair.affiliation]
    return AlignedPair(pair.source[::-1], pair.target[::-1], affiliation[::-1])


# ---- affiliation -------------------------------------------------------------------------------------------
# The source word that each target word is affiliated with, from a word alignment (Devlin et al. 2014,
# section 2.1).

SENTENCE, PHRASE = "sentence", "phrase"  # scopes of the search for the nearest linked word
LONGEST = 7  # words of a phrase on either side
Phrase = tuple[tuple[int, int], tuple[int, int]]  # (first, last) word of source and of target, inclusive


def affiliations(points: Iterable[tuple[int, int]], source: int, target: int) -> list[int]:
    """Choose the affiliated source word of each target word; returns its index, from 0. `points`: links
    (source word, target word) inside the pair; `source`, `target`: numbers of words.

    A word with several links takes the middle one, rounded down. A word without links takes the source word
    of the nearest linked target word, with ties going to the right. If there are no links at all, words are
    affiliated along the diagonal.
    """
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
    """Choose the affiliated source word of each target word, as in `affiliations`, but only by the links
    inside its phrase pair. `target`: number of target words, all of which the phrases must cover."""
    links, result = list(points), [0] * target
    for (first, last), (start, end) in phrases:
        inside = [(a - first, b - start) for a, b in links if first <= a <= last and start <= b <= end]
        positions = affiliations(inside, last - first + 1, end - start + 1)
        result[start : end + 1] = [first + position for position in positions]
    return result


def affiliate_pair(links: Links, source: int, target: int, within: str) -> list[int]:
    """Choose the affiliated source word of each target word. `source`, `target`: numbers of words; `within`:
    SENTENCE, or PHRASE, which needs a segmentation into phrase pairs and without one is like SENTENCE."""
    phrases = fewest_phrases(links, source, target) if within == PHRASE else []
    return affiliations_by_phrase(links, phrases, target) if phrases else affiliations(links, source, target)


def fewest_phrases(links: Links, source: int, target: int) -> list[Phrase]:
    """Segment a sentence pair into the fewest phrase pairs, as a decoder would to translate a sentence of its
    training text. `source`, `target`: numbers of words; a phrase pair has at most LONGEST words on either
    side. The phrases cover all target words, in order, but not each source word without links. Returns [] if
    the alignment allows no segmentation."""
    by_source: list[list[int]] = [[] for _ in range(source)]
    by_target: list[list[int]] = [[] for _ in range(target)]
    for a, b in links:
        by_source[a].append(b)
        by_target[b].append(a)
    best: list[list[Phrase] | None] = [[], *[None] * target]  # fewest phrases for the first n target words
    for end in range(target):
        for start in range(max(0, end - LONGEST + 1), end + 1):
            shorter, current = best[start], best[end + 1]
            if shorter is not None and (current is None or len(shorter) + 1 < len(current)):
                span = source_span(start, end, by_source, by_target)
                if span and span[1] - span[0] < LONGEST:
                    best[end + 1] = [*shorter, (span, (start, end))]
    return best[target] or []


def source_span(
    start: int, end: int, by_source: Sequence[Sequence[int]], by_target: Sequence[Sequence[int]]
) -> tuple[int, int] | None:
    """First and last source word of the phrase pair with the target words from `start` to `end`, inclusive;
    None if the links allow none. `by_source`, `by_target`: for each word the words that it is linked to."""
    linked = [a for b in range(start, end + 1) for a in by_target[b]]
    if not linked:
        return None
    first, last = min(linked), max(linked)
    inside = all(start <= b <= end for a in range(first, last + 1) for b in by_source[a])
    return (first, last) if inside else None
