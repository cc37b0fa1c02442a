"""Moses' tokenization and casing."""

import random
import sys
from types import FrameType

import pytest
from sacremoses import MosesTokenizer

from nmt.errors import ConfigError
from nmt.text import tokenize
from nmt.text.tokenize import ESCAPES, Placeholders, Tokenizer, escape, escape_raw, unescape

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


# ---- test protected text -----------------------------------------------------------------------------------
# What is protected from tokenization.


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("see http://a.b/c(d), or (www.x.org).", ["http://a.b/c(d", "www.x.org"]),
        ("mail me@x.org. Or a.b+c@y-z.co.uk!", ["me@x.org", "a.b+c@y-z.co.uk"]),
        ("<b>x</b><br/> 3 < 5 and 7 > 2", ["<b>", "</b>", "<br/>"]),
        ("AT&amp;T &#65; & co;", ["&amp;", "&#65;"]),
        ("10:30 1/2/2024 1.5 1,000 3: a1:2", ["10:30", "1/2/2024"]),
        ("看http://a.b/c。", ["http://a.b/c"]),
        ("nothing @ all", []),
    ],
)
def test_what_is_protected(line: str, kept: list[str]) -> None:
    hidden, places = tokenize.hide_protected(line)
    assert list(places.hidden.values()) == kept
    assert not [one for one in kept if one in hidden]
    back = "".join(map(places.original, places.pattern.split(hidden)))
    assert back.replace(" ", "") == line.replace(" ", "")


def test_placeholders_stay_short() -> None:
    """Whatever a line contains: with a Q more at a time, long runs of them took minutes."""
    places = Placeholders("z" + "q" * 3000 + " ZQB")
    assert len(places.add("x")) < 8 and places.original(places.word(0)) == "x"


def test_many_tags_without_a_partner() -> None:
    """The work is proportional to the number of tags: it was the square of it, 40 s for 8,000."""

    def steps(tags: int) -> int:
        """Lines of code that run, those of generators included."""
        words, lines = ["<a>"] * tags + ["</b>"] * tags, 0

        def trace(frame: FrameType, event: str, argument: object) -> object:
            nonlocal lines
            lines += event == "line" and frame.f_code.co_filename == tokenize.__file__
            return trace

        before = sys.gettrace()
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            pairs = tokenize.tag_pairs([*words, "</a>"])
        finally:
            sys.settrace(before)
        assert pairs == [(tags - 1, 2 * tags)]
        return lines

    assert steps(10) > 40 and steps(800) < 12 * steps(80)  # 10 times, or 100 times


def test_placeholders_are_not_in_the_line() -> None:
    places = Placeholders("zqq ZQ")
    words = [places.add(str(number)) for number in range(1000)]
    assert len(set(words)) == 1000 and words[0] == "ZQAAAAA"
    assert [places.original(word) for word in words] == [str(number) for number in range(1000)]
    assert places.split([f"'{words[1]}.", "x"]) == ["'", words[1], ".", "x"]
    assert places.original("x") == "x"


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("<b> x </b>", [(0, 2)]),
        ("<b> <i> x </i> </b>", [(1, 3), (0, 4)]),
        ("<b> <br> x </b> </b> <hr/>", [(0, 3)]),
        ("<b> <i> </b> </i>", [(0, 2)]),
        ('<a\u00a0href="x"> y </A>', [(0, 2)]),
    ],
)
def test_pairs_of_tags(text: str, pairs: list[tuple[int, int]]) -> None:
    assert tokenize.tag_pairs(text.split(" ")) == pairs
