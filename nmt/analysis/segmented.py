"""BLEU by the number of words that a system's subwords cut into several units."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from nmt.analysis.buckets import LEAST, Curves, by_count, by_side
from nmt.analysis.systems import System
from nmt.text.subwords.bpe import SEPARATOR

SPACE = "\u2581"  # before the first unit of a word, in SentencePiece's units


def segmented_words(units: Sequence[str]) -> int:
    """How many words of a sentence are cut into several units, of BPE (`lower@@ case`) or of SentencePiece
    (`\u2581lower case`), where the punctuation beside a word does not count."""
    if any(unit.startswith(SPACE) for unit in units):
        numbers = accumulate(unit.startswith(SPACE) for unit in units)
        sizes = Counter(n for n, unit in zip(numbers, units, strict=True) if any(map(str.isalnum, unit)))
    else:
        sizes = Counter(accumulate([False, *(not unit.endswith(SEPARATOR) for unit in units[:-1])]))
    return sum(size > 1 for size in sizes.values())


def by_segmented(
    systems: Sequence[System],
    source: Sequence[Sequence[str]],
    reference: Sequence[Sequence[str]],
    least: int = LEAST,
) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... words of several units: system -> source,
    reference, both -> buckets.

    `source` and `reference` hold the units of each sentence. Buckets of fewer than `least` sentences are left
    out.
    """
    return by_count(systems, segmented_sides(source, reference), least)


def segmented_sides(
    source: Sequence[Sequence[str]], reference: Sequence[Sequence[str]]
) -> dict[str, list[int]]:
    """Words of several units in the source, in the reference, and the larger of the two."""
    return by_side(list(map(segmented_words, source)), list(map(segmented_words, reference)))
