"""BLEU by the number of unknown words (Fig. 6.4c), and of the subsets of Table 6.1."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.analysis.buckets import Bucket, at_most
from nmt.analysis.by_length import lengths
from nmt.analysis.systems import System, TestSet
from nmt.data.vocab import Vocab

SHORTEST, LONGEST = 10, 20  # words of both sides in the second half of Table 6.1


def counts(test: TestSet, source: Vocab, target: Vocab) -> dict[str, list[int]]:
    """Words outside the vocabularies in the source, in the (first) reference, and the larger of both
    numbers."""
    in_source = [sum(word not in source.ids for word in files.split_words(line)) for line in test.sources]
    in_reference = [
        sum(word not in target.ids for word in files.split_words(line)) for line in test.references[0]
    ]
    return {
        "source": in_source,
        "reference": in_reference,
        "both": [max(pair) for pair in zip(in_source, in_reference, strict=True)],
    }


def by_unknown(
    systems: Sequence[System], source: Vocab, target: Vocab, least: int = 1
) -> dict[str, dict[str, list[Bucket]]]:
    """Each point: all sentences with at most that many unknown words."""
    keys = counts(systems[0].test, source, target)
    return {
        system.name: {name: at_most(values, system, least) for name, values in keys.items()}
        for system in systems
    }


@dataclass
class SubsetRow:
    subset: str
    system: str
    sentences: int
    bleu: float
    chrf: float
    ratio: float


def subsets(
    test: TestSet, source: Vocab, target: Vocab, shortest: int = SHORTEST, longest: int = LONGEST
) -> dict[str, NDArray[np.bool_]]:
    """The rows of Table 6.1: no unknown word in source and reference; shortest to longest words on both
    sides; both."""
    known = np.array(counts(test, source, target)["both"]) == 0
    both = lengths(test)
    medium = np.all(
        [
            (np.array(both[side]) >= shortest) & (np.array(both[side]) <= longest)
            for side in ("source", "reference")
        ],
        0,
    )
    band = f"{shortest}-{longest} words"
    return {
        "all": np.ones(len(known), bool),
        "no unknown": known,
        band: medium,
        f"{band}, no unknown": known & medium,
    }


def score_subsets(systems: Sequence[System], parts: Mapping[str, NDArray[np.bool_]]) -> list[SubsetRow]:
    """One row a system and subset; a subset without a sentence has scores of 0."""
    return [
        SubsetRow(
            name,
            system.name,
            int(which.sum()),
            system.bleu(which).score,
            system.chrf(which).score,
            system.ratio(which),
        )
        for name, which in parts.items()
        for system in systems
    ]


def to_tsv(rows: Sequence[SubsetRow]) -> Iterator[str]:
    yield "\t".join(["subset", "system", "sentences", "bleu", "chrf", "length_ratio"])
    for row in rows:
        yield "\t".join(
            [
                row.subset,
                row.system,
                str(row.sentences),
                f"{row.bleu:.4f}",
                f"{row.chrf:.4f}",
                f"{row.ratio:.4f}",
            ]
        )
