"""How well are frequent and rare words translated? Precision, recall and F1 of words by their frequency, as
in compare-mt (Neubig et al. 2019)."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.resampling import Floats
from nmt.analysis.systems import System, TestSet
from nmt.analysis.table import Table, fields_of

EDGES = (0, 1, 2, 5, 10, 100, 1000)  # the smallest frequency of each group

Ints = NDArray[np.int64]


@dataclass
class WordAccuracy:
    """One system's translation of the words of one group. A word is right as often as both the translation
    and the first reference have it."""

    system: str
    first: int  # frequencies of the group
    last: int | None  # None: no bound
    reference: int  # words of the group in the first reference
    hypothesis: int  # and in the translations
    matches: int
    precision: float  # 0 to 100
    recall: float  # 0 to 100
    f1: float  # 0 to 100


def reference_counts(test: TestSet) -> Counter[str]:
    """How often the first reference has each word: where nothing is known of the training text."""
    return Counter(word for words in test.reference_words[0] for word in words)


def word_statistics(system: System, counts: Mapping[str, int]) -> Ints:
    """Words in the reference, in the translation, and in both, by sentence and group: (sentences, groups,
    3)."""
    references = system.test.reference_words[0]
    found = np.zeros((len(references), len(EDGES), 3), np.int64)
    groups: dict[str, int] = {}
    for row, (hypothesis, reference) in enumerate(zip(system.words, references, strict=True)):
        ours, theirs = Counter(hypothesis), Counter(reference)
        for word in ours.keys() | theirs.keys():
            group = groups.get(word)
            if group is None:
                group = groups[word] = bisect_right(EDGES, counts.get(word, 0)) - 1
            found[row, group] += theirs[word], ours[word], min(ours[word], theirs[word])
    return found


def f1_of(sums: NDArray[np.generic]) -> Floats:
    """F1, 0 to 100, of sums (..., 3) of words in the reference, in the translation, and in both."""
    numbers = np.asarray(sums, np.float64)
    return 200 * numbers[..., 2] / np.maximum(numbers[..., 0] + numbers[..., 1], 1)


def by_frequency(systems: Sequence[System], counts: Mapping[str, int]) -> list[WordAccuracy]:
    """The accuracy of each system on the words of each group of frequencies in `counts`, which are those of
    the training text, or of the reference; groups without words in the reference are left out."""
    return [found for system in systems for found in accuracies(system.name, word_statistics(system, counts))]


def accuracies(name: str, statistics: Ints) -> Iterator[WordAccuracy]:
    sums = statistics.sum(0)
    lasts = [edge - 1 for edge in EDGES[1:]]
    for first, last, (reference, hypothesis, matches), f1 in zip(
        EDGES, [*lasts, None], sums.tolist(), f1_of(sums).tolist(), strict=True
    ):
        if reference:
            yield WordAccuracy(
                system=name,
                first=first,
                last=last,
                reference=reference,
                hypothesis=hypothesis,
                matches=matches,
                precision=100 * matches / max(1, hypothesis),
                recall=100 * matches / reference,
                f1=f1,
            )


def label(first: int, last: int | None) -> str:
    """The frequencies of a group: 5-9."""
    return f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"


def table(found: Iterable[WordAccuracy]) -> Table:
    columns = {"system": "", "first": "", "last": "", "reference": "", "hypothesis": "", "matches": ""}
    return Table(columns | {"precision": ".2f", "recall": ".2f", "f1": ".2f"}, fields_of(found))
