"""Which of the languages that are served a text is in."""

import asyncio
from collections.abc import Sequence

import pytest

from nmt.serve.endpoints import BadRequest
from nmt.serve.engine import EngineInfo
from nmt.serve.languages import DETECTED_CHARACTERS, LanguageDetector
from tests.nmt.serve.engines import Upper, serving


class Reads(Upper):
    """Fits as well as the share of a text that is its letter."""

    def __init__(self, letter: str, source: str, target: str = "fr") -> None:
        super().__init__(EngineInfo("fake", "", source, target))
        self.letter = letter

    def fit(self, line: str) -> float:
        assert len(line) <= DETECTED_CHARACTERS and "\n" not in line
        return line.count(self.letter) / len(line)


def detected(
    text: str, *engines: Upper, names: Sequence[str] = ("one", "two", "three")
) -> list[tuple[str, float]]:
    return asyncio.run(LanguageDetector(serving(*engines, names=names)).candidates(text))


def test_the_likeliest_comes_first_and_those_that_do_not_fit_are_left_out() -> None:
    engines = Reads("e", "en"), Reads("d", "de"), Reads("x", "cs")
    assert detected("e\ndd", *engines) == [("de", 50.0), ("en", 25.0)]
    assert detected("eed" + "x" * 5000, *engines)[0] == ("cs", 99.7)


def test_a_language_fits_as_well_as_its_best_engine() -> None:
    assert detected("aab", Reads("b", "en"), Reads("a", "en", "de")) == [("en", 66.7)]


def test_where_nothing_fits_a_language_is_named_all_the_same() -> None:
    assert detected("zz", Reads("a", "en"), Reads("b", "de")) == [("en", 0.0)]


def test_engines_of_unknown_languages_are_not_asked() -> None:
    with pytest.raises(BadRequest):
        detected("a", Reads("a", "", ""))
