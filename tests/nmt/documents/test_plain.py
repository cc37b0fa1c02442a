"""Plain text as a document: what is not text stays, and lines that were wrapped are translated together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.documents import plain
from nmt.documents.inline import AlignedTranslation
from nmt.errors import DataError
from tests.nmt.documents.fake import translated


def upper(text: str) -> str:
    return translated(text.encode(), "a.txt").decode()


@given(st.text(st.sampled_from("ab1. \n\t\r-*>\ufeff\u2028é"), max_size=60))
def test_without_a_translation_the_text_stays_byte_for_byte(text: str) -> None:
    document = plain.parse(text.encode(), "a.txt")
    assert document.write([AlignedTranslation("")] * len(document.lines)) == text.encode()


@given(st.text(st.sampled_from("ab. \n\t-"), max_size=60))
def test_short_lines_stay_lines(text: str) -> None:
    assert upper(text).lower() == text


def test_margins_and_breaks_stay() -> None:
    text = "\ufeffTitle\r\n\r\n  - first point\r\n  1. second\n> quoted\n\n\t***\nlast"
    assert plain.parse(text.encode(), "a").lines == ["Title", "first point", "second", "quoted", "last"]
    assert upper(text) == text.upper()


WRAPPED = """\
  The old man who lives in the house sees
  the black dog. The dog runs
  and the nurses hear her when she follows
  the boy.
- A point that is long enough to be broken
  over two lines.
"""


def test_wrapped_lines_are_one_text() -> None:
    document = plain.parse(WRAPPED.encode(), "a.txt")
    assert document.lines == [
        "The old man who lives in the house sees the black dog. The dog runs",
        "and the nurses hear her when she follows the boy.",
        "A point that is long enough to be broken over two lines.",
    ]
    target = document.write(
        [AlignedTranslation("la " * 30), AlignedTranslation("x"), AlignedTranslation("é " * 40)]
    )
    lines = target.decode().splitlines()
    assert max(map(len, lines)) <= max(map(len, WRAPPED.splitlines()))
    assert [line[:2] for line in lines] == ["  ", "  ", "  ", "  ", "- ", "  "]


def test_a_sentence_a_line_is_not_wrapped() -> None:
    text = "The old man who lives in the house sees her.\nThe black dog follows the nurses, and they run.\n"
    assert len(plain.parse(text.encode(), "a.txt").lines) == 2


@pytest.mark.parametrize(
    "data, message",
    [
        (b"a\n\xff\xfe", "b.txt:2: byte 0xff"),
        (b"\xff\xfea\0", "b.txt:1: is UTF-16"),
        (b"a\n\nb\0", "b.txt:3: NUL"),
    ],
)
def test_other_encodings_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        plain.parse(data, "b.txt")
