"""Tables in arrays: what stands in the files, whatever their order."""

import random
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from smt_bridge.decoder.text_tables import check_lines, read_table
from tests.nmt.formats.test_phrase_table import BAD
from tests.smt_bridge.decoder.models import decoder, sentence, write_model

# ---- test table checks -------------------------------------------------------------------------------------
# The decoder's reader refuses what `smt-ini check` refuses, with the same line, and sparse features
# besides.


ROWS = [
    b"a ||| p q ||| 0.5 0.25 ||| 0-0 0-1 ||| 3 2 1 ||| |||",
    b"a b ||| p&apos; ||| 1 1e-05 ||| 0-0 1-0 ||| 3 2 1 ||| |||",
    "b ||| d\u00e9j\u00e0 ||| 0.5 0.125 ||| ||| 3 2 1 ||| ||| {{LHS X}}".encode(),
    b"c ||| r ||| .5 5E-1",
]
# Besides what every reader of phrase tables refuses
OWN = {
    "sparse": (b"b ||| p ||| 1 ||| 0-0 ||| 3 2 1 ||| rnn -3.2 |||", "sparse feature 'rnn'"),
    "columns": (b"b ||| p ||| 1 1 ||| 0-0", "2 scores, but the ini says num-features=1"),
    "far outside": (b"b ||| p ||| 1 ||| 0-99999999999999999999 |||", "is not of the form 0-0 1-2"),
    "latin-1 in the counts": (b"b ||| p ||| 1 ||| 0-0 ||| \xe9 ||| ||| {{LHS X}}", "byte 0xe9"),
}
REFUSED = {**BAD, **OWN}
del REFUSED["scores differ"]


def write(folder: Path, rows: list[bytes]) -> tuple[str, str]:
    """A phrase table, and a reordering table of the same pairs."""
    (folder / "table").write_bytes(b"".join(row + b"\n" for row in rows))
    (folder / "reordering").write_bytes(
        b"".join(b"|||".join(row.split(b"|||")[:2]) + b"||| .2 .3 .5 .2 .3 .5\n" for row in rows)
    )
    return str(folder / "table"), str(folder / "reordering")


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("reordered", [False, True])
def test_bad_lines_are_named(case: str, reordered: bool, tmp_path: Path) -> None:
    row, message = REFUSED[case]
    path, reordering = write(
        tmp_path, [b"a ||| b ||| 0.5", b"a c ||| d ||| 1 ||| 0-0 1-0", row, b"x ||| y ||| .5"]
    )
    with pytest.raises(DataError, match=f"^{path}:3: .*{message}"):
        read_table(path, 1, reordering if reordered else None)


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
            read_table(path, 2, None)
        except DataError as error:
            found = str(error)
        assert bool(expected) == bool(found), repr(bytes(changed)[:60])
        refused += bool(found)
    assert 100 < refused < 350


# ---- test table --------------------------------------------------------------------------------------------


def test_tables_in_any_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Unsorted tables whose rows do not match line by line are the same model; a missing reordering row costs
    nothing, and is told."""
    folder = write_model(tmp_path, 2)
    lines = [sentence(number, 4) for number in range(20)]
    expected = [decoder(folder, stack=10).translate_line(line).derivations[0].total for line in lines]
    rows = (folder / "table").read_text().split("\n")[:-1]
    (folder / "table").write_text("".join(f"{row}\n" for row in reversed(rows)))
    found = [decoder(folder, stack=10).translate_line(line).derivations[0].total for line in lines]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    others = (folder / "reordering").read_text().split("\n")[:-1]
    (folder / "reordering").write_text("".join(f"{row}\n" for row in others[1:]))
    with caplog.at_level("WARNING", logger="smt_bridge"):
        table = decoder(folder).system.table
    assert "no row for 1 pairs" in caplog.text
    source, target = (part.encode() for part in others[0].split(" ||| ")[:2])
    row = next(row for row in table.of(source.decode()) if " ".join(table.text(row)).encode() == target)
    assert np.isnan(table.reordering[row]).all() and (np.delete(table.reordering, row, 0) < 0).all()


def test_blanks_between_words(tmp_path: Path) -> None:
    """Tabs and several spaces separate words for Moses: such a row is found by its words."""
    path, _ = write(
        tmp_path, [*ROWS, b"b \t c ||| s  t ||| 1 1 ||| 0-0 1-1", b"b c ||| u ||| 1 1 ||| 0-0 1-0"]
    )
    read = read_table(path, 2, None)
    assert [read.text(row) for row in read.of("b c")] == [["s", "t"], ["u"]]
    assert read.points(read.of("b c")[0]) == [(0, 0), (1, 1)]


def test_short_reordering_line(tmp_path: Path) -> None:
    path, reordering = write(tmp_path, ROWS)
    (tmp_path / "reordering").write_text("a ||| p q\n")
    with pytest.raises(DataError, match=f"^{reordering}:1: 2 fields"):
        read_table(path, 2, reordering)


def naive(path: Path) -> list[tuple[str, list[str], list[float], str]]:
    """Source, target, probabilities and alignment of each row, short sources first, otherwise sorted."""
    rows = []
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        source, target, scores, alignment = line.split(" ||| ")[:4]
        rows.append((source, target.split(), [*map(float, scores.split())], alignment))
    return sorted(rows, key=lambda row: (row[0].count(" "), row[0].split(" ")))


def with_points(line: str, rng: random.Random) -> str:
    """A row with one random alignment point."""
    fields = line.split(" ||| ")
    point = "-".join(str(rng.randrange(len(fields[side].split()))) for side in (0, 1))
    return " ||| ".join([*fields[:3], point, *fields[4:]])


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_one_by_one(shuffled: bool, tmp_path: Path) -> None:
    """Phrases, logarithms, alignments and reordering of each row."""
    write_model(tmp_path, 3)
    rng = random.Random(3)
    reordering = {}
    for name in ("table", "reordering"):
        lines = (tmp_path / name).read_text().split("\n")[:-1]
        if name == "table":
            lines = [with_points(line, rng) for line in lines]
        else:  # only few different ones, so that some are equal
            lines = [
                " ||| ".join(
                    [*line.split(" ||| ")[:2], " ".join(rng.choice(["0.2", "0.5"]) for _ in range(6))]
                )
                for line in lines
            ]
            reordering = {tuple(line.split(" ||| ")[:2]): line.split(" ||| ")[2].split() for line in lines}
        if shuffled:
            rng.shuffle(lines)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    found = read_table(str(tmp_path / "table"), 4, str(tmp_path / "reordering"))
    rows = naive(tmp_path / "table")
    assert found.is_sound() and found.rows == len(rows)
    for row, (source, target, scores, alignment) in enumerate(rows):
        assert row in found.of(source) and found.text(row) == target
        np.testing.assert_allclose(found.scores[row], np.log(scores), rtol=1e-6)
        points = [tuple(map(int, point.split("-"))) for point in alignment.split()]
        assert found.points(row) == points
        six = reordering[source, " ".join(target)]
        np.testing.assert_allclose(found.reordering[row], np.log([*map(float, six)]), rtol=1e-6)
    assert found.source_count == len({row[0] for row in rows}) and not len(found.of("nowhere"))
    assert not len(found.rows_of(0)) and not len(found.of("a a a a a a a a"))


def test_a_probability_of_0(tmp_path: Path) -> None:
    """As in Moses its logarithm is -100, and nothing is below."""
    path, _ = write(tmp_path, [b"a ||| p ||| 0 1e-45 ||| 0-0", b"b ||| q ||| 1 0.5 ||| 0-0"])
    scores = read_table(path, 2, None).scores
    assert scores[0].tolist() == [-100.0, -100.0] and scores[1, 0] == 0.0
