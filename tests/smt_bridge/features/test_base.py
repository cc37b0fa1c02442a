"""Pairs of words, and identities."""

from pathlib import Path

import numpy as np

from nmt.formats import phrase_table
from smt_bridge.features.base import WordPairs, digest, of_phrases

LINES = [b"a b ||| x ||| 1", b"a b ||| y z ||| 1", b"c ||| x ||| 1", b"c ||| w ||| 1"]


def pairs() -> WordPairs:
    return of_phrases([phrase_table.parse(line, "t:1") for line in LINES])


def test_a_source_stands_once() -> None:
    found = pairs()
    assert found.sources == [["a", "b"], ["c"]] and found.source_of == [0, 0, 1, 1]
    assert found.targets == [["x"], ["y", "z"], ["x"], ["w"]] and len(found) == 4 and not found.whole


def test_taking_rows_keeps_each_pair() -> None:
    rows = np.array([3, 1])
    found, whole = pairs().take(rows), pairs()
    for place, row in enumerate(rows):
        assert found.targets[place] == whole.targets[row]
        assert found.sources[found.source_of[place]] == whole.sources[whole.source_of[row]]
    assert pairs().take([2, 3]).sources == [["c"]]  # a source without pairs is not read


def test_an_identity_is_of_names_contents_and_settings(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    one, two = tmp_path / "a", tmp_path / "b"
    first = digest("lm", [one])
    assert first == digest("lm", [one]) and len(first) == 32
    others = [digest("lm", [two]), digest("translation", [one]), digest("lm", [one], b"x")]
    (tmp_path / "a").write_text("2")
    assert len({first, *others, digest("lm", [one])}) == 5
