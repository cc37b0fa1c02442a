import math
import random
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.io import files

LINES = [
    (
        b"a man in ||| un homme avec des ||| 0.294118 0.0670965 0.0110375 0.000548344 ||| 0-0 1-1 ||| 51 "
        b"1359 "
        b"15 "
        b"||| |||"
    ),
    b"a ||| b ||| 1 2.718",
    b"&apos;s\xc2\xa0x ||| l&apos; ||| 1  0.5 ||| 0-0 ||| 1 1 1 ||| s 1 ||| {{p x}}",
]


@pytest.mark.parametrize("line", LINES)
def test_line_of_parse_is_byte_equal(line: bytes) -> None:
    assert phrase_table.parse(line, "t:1").line() == line


def test_a_score_is_appended_to_the_third_field_only() -> None:
    assert phrase_table.parse(LINES[0], "t:1").line(b"0.25") == LINES[0].replace(
        b"0.000548344 |||", b"0.000548344 0.25 |||"
    )
    assert phrase_table.parse(LINES[1], "t:1").line(b"0.25") == LINES[1] + b" 0.25"


def test_escapes_are_undone_for_the_model() -> None:
    assert phrase_table.words(phrase_table.parse(LINES[2], "t:1").source) == ["'s\xa0x"]


@pytest.mark.parametrize("line", [b"a ||| b", b"", b" ||| b ||| 1", b"a |||  ||| 1", b"a ||| b |||  ||| 0-0"])
def test_malformed_lines_are_refused(line: bytes) -> None:
    with pytest.raises(DataError, match="t:7: "):
        phrase_table.parse(line, "t:7")


# Each row of the table in the notes on what Moses does with a bad line: the line, and what the message has to
# say.
BAD = {
    "log-probabilities": (b"a ||| b ||| -3.2", "score -3.2 is negative, expected a probability.* exp"),
    "minus infinity": (b"a ||| b ||| -inf", "-inf is negative"),
    "nan": (b"a ||| b ||| nan", "nan is not a number.*Bad score"),
    "abc": (b"a ||| b ||| 1 abc", "abc is not a number.*Bad score"),
    "decimal comma": (b"a ||| b ||| 0,5", "0,5 is not a number"),
    "number and more": (b"a ||| b ||| 0.5x", "0.5x is not a number"),
    "underscore": (b"a ||| b ||| 1_0", "1_0 is not a number"),
    "inf": (b"a ||| b ||| inf", "inf is not a number.*-nan"),
    "too large": (b"a ||| b ||| 1e39", "1e39 is infinite"),
    "two fields": (b"a ||| b", "2 fields, expected 3 to 7"),
    "one field": (b"hello", "1 field, expected 3 to 7"),
    "eight fields": (b"a ||| b ||| 1 ||| 0-0 ||| 1 ||| ||| ||| x", "8 fields, expected 3 to 7"),
    "empty line": (b"", "empty line.*Ran out of tokens"),
    "empty source": (b" ||| b ||| 1", "empty source phrase"),
    "empty target": (b"a |||  ||| 1 ||| 0-0", "empty target phrase; Moses crashes"),
    "no scores": (b"a ||| b |||  ||| 0-0", "no scores"),
    "alignment without a blank": (b"a ||| b ||| 1 ||| 0-01-1", "Error parsing alignment"),
    "alignment in brackets": (b"a ||| b ||| 1 ||| (0) (0)", "Error parsing alignment"),
    "alignment with colons": (b"a ||| b ||| 1 ||| 0:0", "Error parsing alignment"),
    "alignment out of range": (b"a ||| b ||| 1 ||| 0-0 9-9", "points outside the phrases .1 and 1 words"),
    "alignment one too far": (b"a a ||| b ||| 1 ||| 0-0 1-1", "points outside the phrases"),
    "source one too far": (b"a ||| b b ||| 1 ||| 1-1", "points outside the phrases"),
    "bar in a word": (b"a ||| ho|mme ||| 1", "'|' in the target phrase 'ho|mme'.*factor"),
    "factored": (b"the|DET ||| le ||| 1", "'|' in the source phrase"),
    "hierarchical": (b"a [X] ||| b [X] ||| 1", "Hiero"),
    "unknown property": (
        b"a ||| b ||| 1 ||| 0-0 ||| 1 ||| ||| {{Foo bar}}",
        "property 'Foo' is unknown to Moses",
    ),
    "byte order mark": (b"\xef\xbb\xbfa ||| b ||| 1", "byte order mark"),
    "latin-1": (b"a ||| \xe9t\xe9 ||| 1", "0xe9 at column 7 is not UTF-8"),
    "binary": (b"\x00\x01binary", "binary file"),
    "half table": (b"a ||| b ||| 0-0 1-1 ||| 0.5", "half"),
    "scores differ": (b"a ||| c ||| 1 1", "2 scores, but the lines above have 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_each_line_that_moses_refuses_or_misreads(case: str, tmp_path: Path) -> None:
    line, message = BAD[case]
    (tmp_path / "t").write_bytes(b"A ||| b ||| 0.5\n" + line + b"\n")
    with pytest.raises(DataError, match=f"t:2: .*{message}") as caught:
        list(phrase_table.read_strict(tmp_path / "t", unsorted=True))
    assert "\n" not in str(caught.value)


GOOD = [
    b"a ||| b ||| +0.5 .5 5E-1 1. 2.718",
    b"a|||b|||1 2|||0-0|||1 1 1",
    b"a  b ||| c ||| 0.5\t0.25 ||| 0-0 1-0 ||| 1 1 1 ||| rnn -3.2 ||| {{Orientation 1 2}}\r",
    b"a ||| b ||| 0.5 1e-38\r",
    b"\xc2\xa0x\xe2\x80\xa8 ||| [ [x x] ||| 1 1 ||| ||| |||",
    b"a ||| b ||| 0 1e-300",
]


@pytest.mark.parametrize("line", GOOD)
def test_what_moses_accepts(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(line + b"\n")
    (pair,) = phrase_table.read_strict(tmp_path / "t")
    assert pair.line() == line
    longer = pair.line(b"0.125")
    (again,) = phrase_table.read_strict(tmp_path / "t")
    assert phrase_table.parse(longer, "t:1").scores == pair.scores + b" 0.125"
    assert longer.replace(b" 0.125", b"", 1) == line and again == pair


def test_a_floored_score_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t").write_bytes(b"a ||| b ||| 0\nb ||| b ||| 1e-300\n")
    assert len(list(phrase_table.read_strict(tmp_path / "t"))) == 2
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [f"{tmp_path}/t:1"]


def test_order_is_that_of_whole_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`the pages |||` comes before `the |||`, since p < |: not the order of sources."""
    (tmp_path / "t").write_bytes(b"the pages ||| x ||| 1\nthe ||| x ||| 1\n")
    assert len(list(phrase_table.read_strict(tmp_path / "t"))) == 2
    (tmp_path / "t").write_bytes(b"the ||| x ||| 1\nthe pages ||| x ||| 1\nA ||| x ||| 1\n")
    with pytest.raises(DataError, match="t:2: not in whole-line LC_ALL=C order"):
        list(phrase_table.read_strict(tmp_path / "t"))
    assert len(list(phrase_table.read_strict(tmp_path / "t", unsorted=True))) == 3
    assert [
        record.getMessage()
        for record in caplog.records
        if "processPhraseTableMin aborts" in record.getMessage()
    ] == [caplog.records[0].getMessage()]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (b"1 1", "has 2 scores"),
        (b"1 1 x 1", "score 'x' of"),
        (b"1 1 nan 1", "score 'nan' of .* not a finite"),
    ],
)
def test_p_of_a_target_that_is_missing_or_no_number(scores: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        phrase_table.direct(phrase_table.parse(b"a ||| b ||| " + scores, "t:1"))


@pytest.mark.parametrize(
    ("scores", "p"), [(b"1 1 .25 1", 0.25), (b"1 1 2.5e-1", 0.25), (b"1 1 0", 1e-38), (b"1 1 1e-99", 1e-38)]
)
def test_p_of_a_target(scores: bytes, p: float) -> None:
    pair = phrase_table.parse(b"a ||| b ||| " + scores, "t:1")
    assert phrase_table.direct(pair) == math.log(p)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b"", []),
        (b" ||| 0-0", []),
        (b" ||| 0-0 ||| 3 2 1 |||", [3, 2, 1]),
        (b" ||| 0-0 ||| 3.5 20.0 1", [3, 20, 1]),
        (b" ||| 0-0 ||| 3 2e1 1", [3, 20, 1]),
        (b" ||| ||| 7\t8  9", [7, 8, 9]),
    ],
)
def test_counts_are_rounded_down(rest: bytes, expected: list[int]) -> None:
    assert phrase_table.counts(phrase_table.parse(b"a ||| b ||| 1 1" + rest, "t:1")) == expected


def test_directories_and_empty_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "pt.minphr"):
        with pytest.raises(DataError, match="a binary table, or a directory; give the text table"):
            list(phrase_table.read_strict(path))
    (tmp_path / "t").write_bytes(b"")
    with pytest.raises(DataError, match="empty file"):
        list(phrase_table.read_strict(tmp_path / "t"))


def strictly(path: Path, unsorted: bool, caplog: pytest.LogCaptureFixture) -> list[object]:
    """The rows of a table, its warnings, and the error that ends it."""
    caplog.clear()
    seen: list[object] = []
    try:
        seen.extend(phrase_table.read_strict(path, unsorted))  # what came before an error, too
    except DataError as error:
        seen.append(str(error))
    return [*seen, *(record.getMessage() for record in caplog.records)]


def test_rows_checked_together_are_judged_like_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tables with a few bytes changed, inserted or removed at random. Many are refused."""
    rng, path, wrong = random.Random(1), tmp_path / "t", 0
    words = [b"a", b"b c", b"d", "é".encode(), b"f &#124; g"]
    for number in range(1200):
        rows = []
        for _ in range(rng.randrange(1, 8)):
            source, target = rng.choice(words), rng.choice(words)
            columns = rng.choice([2] * 30 + [1, 3])
            scores = b" ".join(rng.choice([b"1", b"0.25", b"1e-05", b"3e-45"]) for _ in range(columns))
            last = rng.choice([b"", b" ||| 0-0", b" ||| 0-0 ||| 2 1 1", b" ||| 0-0 ||| 2 1 1 ||| |||"])
            rows.append(b"%s ||| %s ||| %s%s" % (source, target, scores, last))
        text = bytearray(b"\n".join(sorted(rows)) + b"\n")
        for _ in range(number % 3):
            at, byte = rng.randrange(len(text)), rng.choice(b"---\0\t\r\n |[]-+.019eE\xc3\xef{")
            text[at : at + rng.randrange(2)] = bytes([byte] * rng.randrange(3))
        path.write_bytes(text)
        unsorted = number % 5 == 0
        monkeypatch.setattr(phrase_table, "BLOCK", rng.randrange(1, 4))
        together = strictly(path, unsorted, caplog)
        monkeypatch.setattr(phrase_table.StrictRows, "check_together", lambda self, lines: None)
        assert strictly(path, unsorted, caplog) == together, bytes(text)
        monkeypatch.undo()
        wrong += any(isinstance(row, str) and " is " in row for row in together)
    assert wrong > 100


@pytest.mark.ci
def test_real_table_is_byte_equal(nmt_data: Path) -> None:
    """All 839,168 lines, which are sound and in order."""
    path = nmt_data / "moses-multi30k" / "phrase-table.gz"
    count = 0
    for pair, line in zip(phrase_table.read_strict(path), files.read_byte_lines(path), strict=True):
        assert pair.line() == line
        count += 1
    assert count == 839168


def test_a_bad_line_of_many_numbers_is_refused_at_once() -> None:
    """Were there two ways to read a number, a thousand would have 2^1000."""
    with pytest.raises(DataError, match="is not a number"):
        phrase_table.check_scores(b" " + b"221709 " * 2000 + b"x ", "table:1")
