"""Lengths of lines in scripts with and without blanks."""

from collections import Counter

import pytest

from nmt.text.units import character_length, is_spaceless, line_length, script


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("  \t ", 0),
        ("The dog sees a cat .", 6),
        ("Café\xa0crème , s'il vous plaît .", 6),  # NBSP is part of a word
        ("Привет , мир", 3),
        ("나는 개를 본다 .", 4),  # Korean has blanks
        ("犬が猫を見る。", 4),  # seven characters
        ("我喜欢猫", 2),
        ("犬 が 猫 を 見る 。", 6),  # segmented
        ("Windows 10を買う。", 4),  # two words, four characters
        ("ฉันรักแมว", 3),  # nine letters
        ("ＡＢＣ", 2),
        ("\u3000", 1),  # an ideographic blank is no blank
    ],
)
def test_lengths_by_hand(text: str, length: int) -> None:
    assert line_length(text) == length


def test_characters_are_counted_without_blanks() -> None:
    assert character_length(" a bc\td\xa0 ") == 5


def test_languages_and_scripts() -> None:
    assert [is_spaceless(code) for code in ("ja", "zh-TW", "zh_Hans", "th", "ko", "vi", "en")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip
    assert script(Counter("Hello, мир")) == "LATIN" and script(Counter("мир 12 x")) == "CYRILLIC"
    assert script(Counter("犬は 猫")) == "CJK" and script(Counter("1 2 .")) == ""
