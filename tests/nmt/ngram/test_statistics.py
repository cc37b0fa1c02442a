"""The statistics of n-grams are those of a naive count."""

from collections import Counter

import pytest

from nmt.ngram.statistics import statistics
from tests.nmt.ngram.test_kneser_ney import some_text


def test_equal_to_a_naive_count() -> None:
    text, other = some_text(1), [*some_text(2, 50), [], ["never", "never"]]

    def occurrences(sentences: list[list[str]], n: int) -> list[tuple[str, ...]]:
        lines = [("<s>", *words, "</s>") for words in sentences]
        found = [line[at : at + n] for line in lines for at in range(len(line) - n + 1)]
        return [gram for gram in found if gram != ("<s>",)]

    for n, row in enumerate(statistics(text, 5, other), 1):
        here, there = Counter(occurrences(text, n)), occurrences(other, n)
        assert (row.words, row.occurrences, row.distinct) == (n, sum(here.values()), len(here))
        assert row.once == pytest.approx(sum(count == 1 for count in here.values()) / len(here))
        assert row.unseen == pytest.approx(sum(gram not in here for gram in there) / len(there))


def test_a_short_text_without_another() -> None:
    found = statistics([["a", "b", "a"]], 6)
    assert [(row.distinct, row.once, row.unseen) for row in found] == [
        (3, 2 / 3, None), (4, 1, None), (3, 1, None), (2, 1, None), (1, 1, None), (0, 0, None)
    ]  # fmt: skip
