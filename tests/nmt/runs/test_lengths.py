"""Lengths of lines in the units of several runs."""

import pytest

from nmt.errors import DataError
from nmt.runs.lengths import GIANT, LineLengths
from nmt.text.pipeline import SideConfig, TextPipeline


def pipeline(characters: bool = False) -> TextPipeline:
    return TextPipeline.of(SideConfig(tokenize=False, normalize=False, characters=characters))


def test_a_line_is_as_long_as_in_the_run_that_segments_it_finest() -> None:
    words, both = LineLengths([pipeline()], 5), LineLengths([pipeline(), pipeline(characters=True)], 5)
    limit = words.limit(3)
    assert words.of("ab cd ef gh", True, limit) == 4
    assert both.of("ab cd ef gh", True, limit) == 8
    assert both.of("a b", True, limit) == 0  # no more characters than the limit has words


def test_the_limit_is_what_the_training_allowed_if_that_is_more() -> None:
    assert LineLengths([pipeline()], 5).limit().words == 250
    assert LineLengths([pipeline()], 900).limit().words == 900
    assert LineLengths([pipeline()], 900).limit(7).words == 7


def test_long_lines_are_refused_by_number_or_cut_into_parts() -> None:
    lengths = LineLengths([pipeline()], 5)
    limit = lengths.limit(3, "text", first=10)
    with pytest.raises(DataError, match=r"^text:12: 4 words"):
        lengths.refuse(["a b", "a b c d"], True, limit, "a score")
    assert lengths.parts("a b . c d", True, limit) == ["a b .", "c d"]
    assert lengths.parts("a b", True, limit) == ["a b"]


def test_a_giant_word_counts_by_its_characters() -> None:
    lengths = LineLengths([pipeline(characters=True)], 5)
    limit = lengths.limit(3)
    assert lengths.of("x" * (GIANT * 3 + 1), True, limit) == GIANT * 3 + 1
