"""BLEU by the number of unknown words (Fig. 6.4c), and of the subsets of Table 6.1."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.analysis.buckets import LEAST, Curves, by_count, by_side
from nmt.analysis.lengths import lengths
from nmt.analysis.systems import System, TestSet
from nmt.analysis.table import Table, fields_of
from nmt.text.vocab import Vocab

MIN_LENGTH, MAX_LENGTH = 10, 20  # words of both sides in the second half of Table 6.1


def unknown_words(test: TestSet, source: Vocab, target: Vocab) -> dict[str, list[int]]:
    """Words outside the vocabularies in the source, in the first reference, and the larger of the two."""

    def missing(lines: Sequence[str], vocab: Vocab) -> list[int]:
        return [sum(word not in vocab.ids for word in files.split_words(line)) for line in lines]

    return by_side(missing(test.sources, source), missing(test.references[0], target))


def by_unknown(systems: Sequence[System], source: Vocab, target: Vocab, least: int = LEAST) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... unknown words:
    system -> source, reference, both -> buckets.

    `source` and `target` say which words are known. Buckets of fewer than `least` sentences are left out.
    """
    return by_count(systems, unknown_words(systems[0].test, source, target), least)


@dataclass
class SubsetScore:
    """The scores of one system on one subset of the test set."""

    subset: str
    system: str
    sentences: int
    bleu: float | None  # 0 to 100; None without sentences
    chrf: float | None  # 0 to 100
    ratio: float | None  # words of the hypotheses over words of the references


def subsets(
    test: TestSet, source: Vocab, target: Vocab, min_length: int = MIN_LENGTH, max_length: int = MAX_LENGTH
) -> dict[str, NDArray[np.bool_]]:
    """The rows of Table 6.1, as masks over the sentences: all; no unknown word in source and reference;
    `min_length` to `max_length` words on both sides; both conditions together."""
    return subsets_without("unknown", unknown_words(test, source, target), test, min_length, max_length)


def subsets_without(
    kind: str,
    counts: Mapping[str, Sequence[int]],
    test: TestSet,
    min_length: int = MIN_LENGTH,
    max_length: int = MAX_LENGTH,
) -> dict[str, NDArray[np.bool_]]:
    """As `subsets`, without words of any kind, counted by side and sentence."""
    known = np.array(counts["both"]) == 0
    by = lengths(test)
    medium = np.all(
        [
            (np.array(by[side]) >= min_length) & (np.array(by[side]) <= max_length)
            for side in ("source", "reference")
        ],
        0,
    )
    band = f"{min_length}-{max_length} words"
    return {
        "all": np.ones(len(known), bool),
        f"no {kind}": known,
        band: medium,
        f"{band}, no {kind}": known & medium,
    }


def score_subsets(systems: Sequence[System], masks: Mapping[str, NDArray[np.bool_]]) -> list[SubsetScore]:
    """One entry per subset and system; a subset without sentences has no scores."""
    return [
        SubsetScore(
            subset=name,
            system=system.name,
            sentences=int(mask.sum()),
            bleu=system.bleu(mask).score if mask.any() else None,
            chrf=system.chrf(mask).score if mask.any() else None,
            ratio=system.ratio(mask) if mask.any() else None,
        )
        for name, mask in masks.items()
        for system in systems
    ]


def table(scores: Iterable[SubsetScore]) -> Table:
    columns = {"subset": "", "system": "", "sentences": "", "bleu": ".4f", "chrf": ".4f"}
    return Table(columns | {"length_ratio": ".4f"}, fields_of(scores))
