"""What units add to a text, and where words begin and end."""

import pytest

from nmt.text import spelling
from nmt.text.scripts import byte_letter
from nmt.text.spelling import BOUNDARY, bounded
from nmt.text.subwords.bpe import BPE
from nmt.text.subwords.sentencepiece import Unigram


@pytest.mark.parametrize(
    ("text", "raw", "expected"),
    [
        ("lo", False, "lo"),
        ("low er ", False, "low|er|"),
        (" l'eau.", False, "|l'eau."),
        (" l'eau.", True, "|l|'|eau|.|"),
        ("  a  b ", True, "|a|b|"),
        ("熱泵 ok", True, "|熱|泵|ok"),
        ("e\u0301te\u0301", True, "e\u0301te\u0301"),
        (byte_letter(0xC3) + byte_letter(0xA9) + "a", True, byte_letter(0xC3) + byte_letter(0xA9) + "a"),
        ("", True, ""),
    ],
)
def test_boundaries(text: str, raw: bool, expected: str) -> None:
    assert bounded(text, raw).replace(BOUNDARY, "|") == expected


def test_parts_make_the_whole() -> None:
    """Joined parts have the boundaries of the whole, but for those that several parts give."""
    for text in ("It's a (small) 3.5 熱泵 dog.", "l'eau  x"):
        for cut in range(len(text) + 1):
            parts = bounded(text[:cut], True) + bounded(text[cut:], True)
            assert spelling.BLANKS.sub(BOUNDARY, parts) == bounded(text, True)


def test_words_of_two_units() -> None:
    """Where words go on, as the kinds of units themselves number them."""
    units = ["<s>", "</s>", "<unk>", "lo@@", "wer", "case"]
    joints = spelling.of_units([BPE.spell(unit) for unit in units], raw=False).joints
    for one in (3, 4, 5):
        for other in (3, 4, 5):
            same = BPE([]).word_numbers([units[one], units[other]]) == [0, 0]
            assert joints.inside([one, other], 1) == same
    pieces = ["<s>", "</s>", "<unk>", "▁lo", "wer", "▁", ".", "<0xC3>"]
    joints = spelling.of_units([Unigram.spell(piece) for piece in pieces], raw=True).joints
    inside = {(one, other) for one in range(3, 8) for other in range(3, 8) if joints.inside([one, other], 1)}
    assert inside == {(3, 4), (4, 4), (3, 7), (4, 7), (7, 7), (7, 4)}
    assert not joints.inside([3, 4], 0) and not joints.inside([3, 4], 2) and not joints.inside([3, 2], 1)


def test_columns_are_the_texts() -> None:
    texts = ["", "", "", "ab ", "c", "def  "]
    made = spelling.of_units(texts, raw=False)
    rows: dict[int, str] = dict.fromkeys(range(len(texts)), "")
    for codes in made.columns.codes:
        for unit, code in zip(made.columns.order.tolist(), codes.tolist(), strict=False):
            rows[unit] += chr(code)
    assert list(rows.values()) == made.texts
