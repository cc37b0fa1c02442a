from itertools import islice
from pathlib import Path

import pytest

from nmt import files, phrase_table
from nmt.errors import DataError

LINES = [
    b"a man in ||| un homme avec des ||| 0.294118 0.0670965 0.0110375 0.000548344 ||| 0-0 1-1 ||| 51 1359 15 ||| |||",
    b"a ||| b ||| 1 2.718",
    b"&apos;s\xc2\xa0x ||| l&apos; ||| 1  0.5 ||| 0-0 ||| 1 1 1 ||| s 1 ||| {{p x}}",
]


@pytest.mark.parametrize("line", LINES)
def test_line_of_parse_is_byte_equal(line: bytes) -> None:
    assert phrase_table.parse(line, "t:1").line() == line


def test_a_score_is_appended_to_the_third_field_only() -> None:
    assert phrase_table.parse(LINES[0], "t:1").line(b"0.25") == LINES[0].replace(b"0.000548344 |||", b"0.000548344 0.25 |||")
    assert phrase_table.parse(LINES[1], "t:1").line(b"0.25") == LINES[1] + b" 0.25"


def test_escapes_are_undone_for_the_model() -> None:
    assert phrase_table.words(phrase_table.parse(LINES[2], "t:1").source) == ["'s\xa0x"]
    assert phrase_table.unescape("&amp;lt;") == "&lt;"


@pytest.mark.parametrize("line", [b"a ||| b", b"", b" ||| b ||| 1", b"a |||  ||| 1", b"a ||| b |||  ||| 0-0"])
def test_malformed_lines_are_refused(line: bytes) -> None:
    with pytest.raises(DataError, match="t:7: "):
        phrase_table.parse(line, "t:7")


def test_real_table_is_byte_equal(nmt_data: Path) -> None:
    path = nmt_data / "moses-multi30k" / "phrase-table.gz"
    lines = islice(files.read_byte_lines(path), 50000)
    assert all(pair.line() == line for pair, line in zip(phrase_table.read(path), lines, strict=False))
