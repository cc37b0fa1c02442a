"""Text without spaces between words: it is segmented, and comes back."""

import unicodedata
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.text.tokenize import Tokenizer

JAPANESE = "私はSony製のテレビを3.5台買った。「データ」々"
CHINESE = "我们用Python写了3.5个程序,“你好”——……（北京）。"
THAI = "ผมรักประเทศไทย และ Apple 15 เครื่อง ครับ ๑๒ ๆ"
LINES = [
    ("ja", JAPANESE),
    ("zh", CHINESE),
    ("th", THAI),
    ("my", "မြန်မာ နိုင်ငံ"),
    ("km", "ភាសាខ្មែរ"),
    ("lo", "ພາສາລາວ"),
    ("bo", "བོད་སྐད། ཡིན"),
]

KINDS = [(language, kind) for language in ("ja", "zh", "th") for kind in ("character", "word")]


@cache
def tokenizer(language: str, kind: str) -> Tokenizer:
    if kind == "word":
        pytest.importorskip({"ja": "ipadic", "zh": "rjieba", "th": "pythainlp"}[language])
    return Tokenizer(language, segment=kind)


@pytest.mark.parametrize(("language", "line"), LINES)
def test_characters_are_words_by_default_and_come_back(language: str, line: str) -> None:
    words = Tokenizer(language).words(line)
    assert Tokenizer(language).text(words) == line
    assert words == Tokenizer(language, segment="character").words(line)
    assert not any(unicodedata.category(word[0]).startswith("M") for word in words), (
        "a mark without its letter"
    )


def test_what_is_written_with_spaces_follows_the_rules_of_moses() -> None:
    words = Tokenizer("ja").words("私は “Tom’s 3.5, A.B.”を")
    assert words == ["私", "は", "“", "Tom", "'s", "3.5", ",", "A.B.", "”", "を"]
    assert Tokenizer("zh").words("用 Python, Java 写") == ["用", "Python", ",", "Java", "写"]
    assert Tokenizer("zh").text(["用", "Tom", "'s", "C"]) == "用Tom's C"
    assert Tokenizer("zh").text(["用", "Python", ",", "Java", "写"]) == "用Python, Java写"
    assert Tokenizer("zh", case="lower").words("Ａ用ABC") == ["ａ", "用", "abc"]


PIECES = {
    "ja": ["私は", "テレビを", "ー", "「", "」。", "々", "ｶﾞ", "が"],  # the last with a combining mark
    "zh": ["我们", "程序", "，", "。", "《", "——", "…", "𠮷", "“", "”", "‘", "（"],
    "th": ["ผมรัก", "ประเทศไทย", "น้ำ", "ๆ", "ฯ"],
}
LATIN = ["Sony", "A", "3.5", "15", "é"]


@pytest.mark.parametrize(("language", "kind"), KINDS)
@settings(deadline=None)  # dictionaries are read at the first line
@given(data=st.data())
def test_text_of_words_is_the_line(language: str, kind: str, data: st.DataObject) -> None:
    """Blanks beside Chinese and Japanese letters are lost, so there are none; between Latin words they
    stay."""
    pieces = data.draw(st.lists(st.sampled_from([*PIECES[language], *LATIN])))
    line = ""
    for before, piece in zip(["", *pieces], pieces, strict=False):
        latin = before in LATIN and piece in LATIN
        free = language == "th" and before and data.draw(st.booleans())
        line += " " * bool(latin or free) + piece
    words = tokenizer(language, kind).words(line)
    assert tokenizer(language, kind).text(words) == line
    assert not any(set(word) & set(" \t\n") or not word for word in words)
    assert "".join(words).replace("▁", "") == line.replace(" ", "")


def test_blanks_that_say_nothing_and_zero_width_spaces_are_dropped() -> None:
    assert Tokenizer("ja").words(" 私\u3000は Sony\u200b製 ") == ["私", "は", "Sony", "製"]
    assert Tokenizer("th").words("\u3000ไ  ท\u200bย\xa0A ") == ["ไ", "▁", "ท", "ย", "▁", "A"]
    for language in ("ja", "th"):
        for line in ("", "   ", "\u2028", "\u3000", "\u200b", "a\u2028私\x85"):
            words = Tokenizer(language).words(line)
            assert not any(not word or set(word) & set(" \t\n") for word in words)
            assert "\n" not in Tokenizer(language).text(words)


@pytest.mark.ci
def test_other_languages_are_as_they_were() -> None:
    for language in ("en", "ko", "de"):
        line = "私は Sony, 한국어."
        assert Tokenizer(language).words(line) == Tokenizer(language, segment="none").words(line)
    assert Tokenizer("ja", segment="none").words("私は Sony製") == ["私は", "Sony製"]
