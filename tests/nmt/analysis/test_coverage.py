"""Do a text and a list of words have the same form?"""

import logging

import pytest

from nmt.analysis.coverage import check, is_subwords, likely_reason
from nmt.errors import ConfigError

TEXT = "a man sees the dog , and the dog sees a man .".split()
KNOWN = set(TEXT)


def counts(words: list[str]) -> dict[str, int]:
    return {word: 10 * words.count(word) for word in words}


@pytest.mark.parametrize(
    ("text", "known", "share", "reason"),
    [
        (TEXT, KNOWN, 0, ""),
        (["Emu", *TEXT], KNOWN, 1 / 14, ""),  # a word that is really unknown
        ([word.capitalize() for word in TEXT], KNOWN, 11 / 13, "its words are lower-cased"),
        (TEXT, {word.upper() for word in KNOWN}, 11 / 13, "the text is lower-cased"),
        ("a man sees the dog, and the dog sees a man.".split(), KNOWN, 2 / 11, "not tokenized"),
        ("A Man Sees The Dog, And The Dog Sees A Man.".split(), KNOWN, 1, "neither tokenized nor"),
        ("un homme voit le chien".split(), KNOWN, 1, "exchanged"),
        ("ein Mann sieht den Hund".split(), KNOWN, 1, ""),
    ],
)
def test_the_likely_reason(text: list[str], known: set[str], share: float, reason: str) -> None:
    found, why = likely_reason(counts(text), known, set("un homme voit le chien".split()))
    assert found == pytest.approx(share) and reason in why and bool(reason) == bool(why)


def test_units_are_told_from_words() -> None:
    assert is_subwords({"lower@@", "case"}) and is_subwords({"\u2581low", "er"})
    assert not is_subwords({"a@b", "x", "@"}) and not is_subwords(set())
    with pytest.raises(ConfigError, match=r"en.vocab: holds subword units"):
        check([TEXT], {"lower@@", "case"}, set(), "en.vocab")


def test_most_is_refused_and_less_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "nmt")
    check([TEXT] * 9, KNOWN, set(), "en.vocab")
    assert not caplog.messages
    with pytest.raises(ConfigError, match=r"en.vocab: 85% of .* lower-cased and the text is not"):
        check([[word.capitalize() for word in TEXT]] * 9, KNOWN, set(), "en.vocab")
    check([["A", *TEXT[1:]]] * 9, KNOWN, set(), "en.vocab")
    check([["x"]] * 99, KNOWN, set(), "en.vocab")
    assert [message[:13] for message in caplog.messages] == ["en.vocab: 8% ", "en.vocab: 100"]
    check([["x"]], KNOWN, set(), "en.vocab")  # one word says nothing
    assert len(caplog.messages) == 2
