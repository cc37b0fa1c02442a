"""The decoder's reader refuses what `smt-ini check` refuses, with the same line, and sparse features
besides."""

import random
from pathlib import Path

import pytest

from nmt.errors import DataError
from smt_bridge.decoder import table
from smt_bridge.decoder.table_checks import check_lines

ROWS = [
    b"a ||| p q ||| 0.5 0.25 ||| 0-0 0-1 ||| 3 2 1 ||| |||",
    b"a b ||| p&apos; ||| 1 1e-05 ||| 0-0 1-0 ||| 3 2 1 ||| |||",
    "b ||| d\u00e9j\u00e0 ||| 0.5 0.125 ||| ||| 3 2 1 ||| ||| {{LHS X}}".encode(),
    b"c ||| r ||| .5 5E-1",
]
BAD = {
    "latin-1": (b"b ||| d\xe9j\xe0 ||| 1 1 ||| 0-0 ||| 3 2 1 ||| |||", "byte 0xe9 at column 8 is not UTF-8"),
    "latin-1 in the counts": (b"b ||| p ||| 1 1 ||| 0-0 ||| \xe9 ||| ||| {{LHS X}}", "byte 0xe9"),
    "alignment": (b"b ||| p ||| 1 1 ||| 0:0 ||| 3 2 1 ||| |||", "alignment '0:0' is not of the form 0-0 1-2"),
    "outside": (b"b ||| p ||| 1 1 ||| 0-1 ||| 3 2 1 ||| |||", "alignment '0-1' points outside the phrases"),
    "far outside": (b"b ||| p ||| 1 1 ||| 0-99999999999999999999 |||", "is not of the form 0-0 1-2"),
    "points run together": (b"b ||| p ||| 1 1 ||| 0-00-0 ||| 3 2 1 ||| |||", "is not of the form 0-0 1-2"),
    "factors": (b"b ||| ho|mme ||| 1 1 ||| 0-0 ||| 3 2 1 ||| |||", "'|' in the target phrase 'ho|mme'"),
    "factors of the source": (b"b|x ||| p ||| 1 1", "'|' in the source phrase"),
    "non-terminal": (
        b"b [X] ||| p [X] ||| 1 1 ||| 0-0 ||| 3 2 1 ||| |||",
        "non-terminal in the source phrase",
    ),
    "property": (
        b"b ||| p ||| 1 1 ||| 0-0 ||| 3 2 1 ||| ||| {{Foo bar}}",
        "phrase property 'Foo' is unknown to Moses",
    ),
    "sparse": (b"b ||| p ||| 1 1 ||| 0-0 ||| 3 2 1 ||| rnn -3.2 |||", "sparse feature 'rnn'"),
    "negative": (b"b ||| p ||| 1 -1 ||| 0-0", "score -1 is negative"),
    "infinite": (b"b ||| p ||| 1 1e39 ||| 0-0", "score 1e39 is infinite in single precision"),
    "no number": (b"b ||| p ||| 1 nan ||| 0-0", "score nan is not a number"),
    "latin-1 beside others": (
        "d\u00e9".encode() + b" ||| d\xe9j\xe0 ||| 1 1",
        "byte 0xe9 at column 10 is not UTF-8",
    ),
    "columns": (b"b ||| p ||| 1 ||| 0-0", "1 scores, but"),
    "empty target": (b"b ||| ||| 1 1 ||| 0-0", "empty target phrase"),
    "empty source": (b" ||| p ||| 1 1 ||| 0-0", "empty source phrase"),
    "empty line": (b"", "empty line"),
    "two fields": (b"b ||| p", "2 fields, expected 3 to 7"),
    "NUL": (b"b ||| p\0 ||| 1 1 ||| 0-0", "NUL character"),
    "byte order mark": (b"\xef\xbb\xbfb ||| p ||| 1 1 ||| 0-0", "a byte order mark"),
    "eight fields": (b"b ||| p ||| 1 1 ||| 0-0 ||| 1 ||| ||| ||| x", "8 fields, expected 3 to 7"),
}


def write(folder: Path, rows: list[bytes]) -> tuple[str, str]:
    """A phrase table, and a reordering table of the same pairs."""
    (folder / "table").write_bytes(b"".join(row + b"\n" for row in rows))
    (folder / "reordering").write_bytes(
        b"".join(b"|||".join(row.split(b"|||")[:2]) + b"||| .2 .3 .5 .2 .3 .5\n" for row in rows)
    )
    return str(folder / "table"), str(folder / "reordering")


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("reordered", [False, True])
def test_bad_lines_are_named(case: str, reordered: bool, tmp_path: Path) -> None:
    row, message = BAD[case]
    path, reordering = write(tmp_path, [*ROWS[:2], row, *ROWS[2:]])
    with pytest.raises(DataError) as caught:
        table.read(path, 2, reordering if reordered else None)
    assert str(caught.value).startswith(f"{path}:3: ") and message in str(caught.value)


def test_what_the_check_refuses_is_refused(tmp_path: Path) -> None:
    """Tables with a few bytes changed anywhere: loaded where no line is refused, else refused. (Only the
    counts are not looked at.)"""
    rng = random.Random(5)
    text = b"\n".join(ROWS) + b"\n"
    refused = 0
    for _ in range(400):
        changed = bytearray(text)
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(changed))
            changed[place : place + rng.randint(0, 1)] = rng.choice(
                [b"|", b" ", b"\t", b"0", b"-", b"[", b"]", b"9", b"\r", b"x", b"", b"|||"]
            )
        (tmp_path / "table").write_bytes(changed)
        path = str(tmp_path / "table")
        expected = found = ""
        try:
            check_lines(path, 2)
        except DataError as error:
            expected = str(error)
        try:
            table.read(path, 2, None)
        except DataError as error:
            found = str(error)
        assert bool(expected) == bool(found), repr(bytes(changed)[:60])
        refused += bool(found)
    assert 100 < refused < 350
