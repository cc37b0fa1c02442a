"""Moses' tokenization and casing."""

import random

import pytest
from sacremoses import MosesTokenizer

from nmt.errors import ConfigError
from nmt.text.tokenize import ESCAPES, Tokenizer, escape, escape_raw, unescape

# ---- test tokenize -----------------------------------------------------------------------------------------


def test_tokenize_lower_and_back() -> None:
    tokenizer = Tokenizer("fr", case="keep")
    words = tokenizer.words("L'homme n'a pas vu l'arbre, hier.")
    assert words == ["L'", "homme", "n'", "a", "pas", "vu", "l'", "arbre", ",", "hier", "."]
    assert tokenizer.text(words) == "L'homme n'a pas vu l'arbre, hier."
    assert Tokenizer("fr", case="lower").words("L'Été") == ["l'", "été"]


def test_no_escapes_are_written() -> None:
    assert Tokenizer("en").words('a & b\'s [c] | "d"') == [
        "a", "&", "b", "'s", "[", "c", "]", "|", '"', "d", '"',
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "cs"])
def test_periods_are_cut_as_sacremoses_does(language: str) -> None:
    """Its sets of characters are made once, which changes no word."""
    words = "U.S. e.g. Mr. a. é.b. 5. 1.5. ... No. 7 dne Ž. 你. X. x".split()
    rng, rules = random.Random(1), Tokenizer(language)
    for _ in range(200):
        line = " ".join(rng.choices(words, k=6))
        expected = MosesTokenizer(language).tokenize(line, escape=False)
        assert rules.words(line) == expected, line


@pytest.mark.parametrize("line", ["", "   ", "\u2028", "\xa0 \x85", "a\u2028b", "c\x0cd\re"])
def test_words_never_contain_a_blank_or_line_end(line: str) -> None:
    for case in ("keep", "lower"):
        for word in Tokenizer("en", case=case).words(line):
            assert word and not set(word) & set(" \t\n")


def test_truecase_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="truecase model"):
        Tokenizer("en", case="truecase").words("a")
    with pytest.raises(ConfigError, match="expected one of keep, truecase, lower"):
        Tokenizer("en", case="upper")


# ---- test escapes ------------------------------------------------------------------------------------------
# Moses' escapes.


@pytest.mark.parametrize("word", ["a|b", "[x]", "<", "rock'n'roll", '"', "AT&T", "&amp;", "plain", "&", ""])
def test_escaping_is_undone(word: str) -> None:
    assert unescape(escape(word)) == unescape(word)
    assert not set(escape(word)) & set("|[]<>'\"")


def test_what_is_escaped_already_stays() -> None:
    for escaped, plain in ESCAPES:
        assert escape(escaped) == escaped and escape(plain) == escaped


def test_escapes_are_undone_once() -> None:
    assert unescape("&amp;lt;") == "&lt;"


@pytest.mark.parametrize("word", ["a|b", "rock'n'roll", "AT&T", "&amp;", "&amp;lt;", "&", "", "a\u00a0b"])
def test_raw_text_comes_back_as_it_was(word: str) -> None:
    assert unescape(escape_raw(word)) == word
    assert not set(escape_raw(word)) & set("|[]<>'\"")
