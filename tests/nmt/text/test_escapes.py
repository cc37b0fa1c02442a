"""Moses' escapes."""

import pytest

from nmt.text.escapes import ESCAPES, escape, escape_raw, unescape


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
