"""BLEU as a function of sentence length (Fig. 6.4 a and b): corpus BLEU in a sliding window of lengths."""

from collections.abc import Sequence

from nmt.analysis.buckets import LEAST, Curves, by_side, curves_of, sliding
from nmt.analysis.systems import System, TestSet
from nmt.text.units import line_length

WINDOW = 10  # lengths, as in section 6.5.1


def lengths(test: TestSet) -> dict[str, list[int]]:
    """Words, as `line_length` counts them, of the source, of the first reference, and of the longer of the
    two."""

    def words(lines: Sequence[str]) -> list[int]:
        return [line_length(line) for line in lines]

    return by_side(words(test.sources), words(test.references[0]))


def by_length(systems: Sequence[System], window: int = WINDOW, least: int = LEAST) -> Curves:
    """BLEU and chrF by sentence length: system -> source, reference, both -> buckets of `window` lengths.

    Buckets of fewer than `least` sentences are left out. `systems` share one test set.
    """
    return curves_of(
        systems,
        lengths(systems[0].test),
        lambda values, system: sliding(values, system, window, least),
    )
