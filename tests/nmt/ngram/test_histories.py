"""Counts of contexts: against a naive count, and through their file."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.ngram.histories import LENGTH, Histories

TEXT = [["a", "b"], ["a", "b", "a"], []]


def test_evidence_is_the_longest_counted_context_and_its_count() -> None:
    found = Histories.count(TEXT, 2)
    assert found.counts == {"<s>": 3, "<s> a": 2, "a": 3, "a b": 2, "b": 2, "b a": 1}
    lengths = [(value // LENGTH, value % LENGTH) for value in found.evidence(["a", "x", "a"]).tolist()]
    assert lengths == [(1, 2), (2, 2), (0, 0), (1, 2)]


def test_the_file(tmp_path: Path) -> None:
    found = Histories.count(TEXT, 2)
    found.save(tmp_path / "c.gz")
    again = Histories.load(tmp_path / "c.gz")
    assert again.counts == found.counts and again.words == 2
    (tmp_path / "other").write_text("#version: 1 histories words=2\nx\tb\n")
    with pytest.raises(DataError, match="other: not a file of contexts of nmt-interpolate"):
        Histories.load(tmp_path / "other")
