"""Lines that are too long: parts that lose nothing, cut where a sentence or clause ends."""

import random

import pytest

from nmt.errors import DataError
from nmt.text.long_lines import Limit, parts, pieces


def test_parts_are_the_line() -> None:
    """Nothing is lost or added, no part is larger than the limit, whatever the words are."""
    rng = random.Random(1)
    for _ in range(300):
        limit = rng.randint(1, 12)
        words = [
            "x" * rng.randint(1, 6) + rng.choice(["", "", "", ".", ",", '."', "!)"])
            for _ in range(rng.randint(1, 60))
        ]
        for size in (lambda word: 1, len):
            found = parts(words, limit, size)
            assert "".join(word for part in found for word in part) == "".join(words)
            assert all(part and sum(map(size, part)) <= limit for part in found)
            assert [word for part in found for word in part] == words or (size is len and limit < 8)


def test_cut_at_sentences_then_clauses_then_anywhere() -> None:
    assert parts("a b . c d . e f .".split(), 4) == [["a", "b", "."], ["c", "d", "."], ["e", "f", "."]]
    assert parts("a b , c d e f g .".split(), 5) == [["a", "b", ","], ["c", "d", "e", "f", "g"], ["."]]
    assert parts("a b c d e".split(), 2) == [["a", "b"], ["c", "d"], ["e"]]
    assert (
        parts("Mr. A b c d e f g h i! B".split(), 20)[0] == "Mr. A b c d e f g h i!".split()
    )  # no part of one word
    assert parts(["short", "y" * 10], 4, len) == [["shor"], ["t"], ["yyyy"], ["yyyy"], ["yy"]]


def test_raw_text_without_blanks() -> None:
    for line in ("一。二三，四", "a b, c 一二。三 d", "。。x", "\ta  b "):
        assert "".join(pieces(line)) == line.rstrip(" \t")
    assert pieces("一二。三四，五") == ["一二。", "三四，", "五"]


def test_refused_by_number() -> None:
    Limit(3, "in.en").refuse([1, 3, 0], "a score")
    with pytest.raises(
        DataError,
        match=r"^in\.en:12: 1,004 words, more than --max-line-words 3: too long for a score; split the line",
    ):
        Limit(3, "in.en", 10).refuse([1, 1004], "a score")
    with pytest.raises(DataError, match=r"^line 1: 4 words"):
        Limit(3).refuse([4], "a score")
