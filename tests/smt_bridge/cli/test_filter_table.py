"""smt-filter-table: both tables row by row; texts that are not escaped, or hold nothing."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import phrase_table
from nmt.io import files
from smt_bridge.tables import filter as filter_table
from smt_bridge.tables.filter import Occurring
from tests.conftest import Command

TABLE = b"a b ||| x ||| 1\na b ||| y ||| 1\na ||| x ||| 1\nb a ||| x ||| 1\nc ||| x ||| 1\n"
REORDERING = TABLE.replace(b"||| 1", b"||| 0.1 0.2 0.7 0.1 0.2 0.7")


def test_both_tables(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(TABLE))
    (tmp_path / "r").write_bytes(REORDERING)
    (tmp_path / "one").write_text("z a  b\n")
    (tmp_path / "two").write_text("c\n")
    line = "t.gz --input one two -o o.gz --reordering r --reordering-output ro".split()
    done = command("smt-filter-table", *line, cwd=tmp_path)
    assert done.returncode == 0 and "4 pairs kept" in done.stderr
    assert gzip.decompress((tmp_path / "o.gz").read_bytes()) == TABLE.replace(b"b a ||| x ||| 1\n", b"")
    kept = REORDERING.replace(b"b a ||| x ||| 0.1 0.2 0.7 0.1 0.2 0.7\n", b"")
    assert (tmp_path / "ro").read_bytes() == kept


@pytest.mark.parametrize("gone", range(3))
def test_a_missing_row_is_told(
    gone: int, command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    """Moses gives such a pair probability 1."""
    rows = REORDERING.split(b"\n")[:-1]
    (tmp_path / "t").write_bytes(TABLE)
    (tmp_path / "r").write_bytes(b"".join(row + b"\n" for number, row in enumerate(rows) if number != gone))
    (tmp_path / "one").write_text("a b\n")
    line = "t -q -i one -o o --reordering r --reordering-output ro".split()
    assert "probability 1, a bonus" in refused(command("smt-filter-table", *line, cwd=tmp_path))
    assert not (tmp_path / "o").exists() and not (tmp_path / "ro").exists()


def test_unescaped_text_is_warned_of(command: Command, refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(TABLE)
    (tmp_path / "one").write_text("a ' b\n")
    line = ["smt-filter-table", *"t -i one -o o".split()]
    assert "where Moses" in command(*line, cwd=tmp_path).stderr
    (tmp_path / "one").write_text("ein\n")
    done = command(*line, "-q", cwd=tmp_path)
    assert done.returncode == 0 and "t: no pair is kept" in done.stderr and not (tmp_path / "o").read_bytes()
    (tmp_path / "one").write_text("\n")
    assert "no words" in refused(command(*line, "-q", cwd=tmp_path))
    assert "go together" in refused(command(*line, "-q", "--reordering", "t", cwd=tmp_path))


TEXTS = {"s": "a b\na b\nc\nb a\n", "t": "x\nx\nz\ny\n"}


@pytest.fixture
def tables(tmp_path: Path) -> None:
    """Tables with counts, their texts, and a text to be translated."""
    for name, text in {**TEXTS, "dev": "a b\n"}.items():
        (tmp_path / name).write_text(text)
    rows = [b"a b ||| x", b"b ||| x", b"b ||| y", b"c ||| z"]
    counts = [b"2 2 2", b"2 3 1", b"1 3 1", b"1 1 1"]
    table = [row + b" ||| 1 1 1 1 ||| 0-0 ||| " + count for row, count in zip(rows, counts, strict=True)]
    (tmp_path / "table").write_bytes(b"".join(row + b"\n" for row in table))
    (tmp_path / "reordering").write_bytes(b"".join(row + b" ||| 0.1 0.2 0.7\n" for row in rows))


@pytest.mark.ci
@pytest.mark.usefixtures("tables")
def test_pruning_without_and_with_a_text(command: Command, tmp_path: Path) -> None:
    """-ln p over 4 pairs: a b with x 1/6, b with x 1, b with y 1/4 of one that is in 3, c with z 1/4."""
    line = "table --source s --target t --prune-significance a-e -o o.gz --reordering reordering"
    done = command("smt-filter-table", *line.split(), *"--reordering-output r".split(), cwd=tmp_path)
    assert done.returncode == 0 and "2 pairs kept" in done.stderr, done.stderr
    assert "2 of 4 pairs have a significance below 1.385 (alpha" in done.stderr
    kept = gzip.decompress((tmp_path / "o.gz").read_bytes())
    assert [row[:7] for row in kept.split(b"\n")[:-1]] == [b"a b |||", b"c ||| z"]
    assert [row[:7] for row in (tmp_path / "r").read_bytes().split(b"\n")[:-1]] == [b"a b |||", b"c ||| z"]
    done = command("smt-filter-table", *"table -i dev --prune-count 2 -o p".split(), cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "p").read_bytes().count(b"\n") == 1, done.stderr
    done = command("smt-filter-table", *"table --prune-entropy 1 -o p".split(), cwd=tmp_path)
    assert done.returncode == 0 and "0 of 4 pairs are replaced by shorter ones" in done.stderr


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("table", "nothing to filter by"),
        ("table --prune-significance a+e", "go together"),
        ("table --prune-significance a+e --source s", "go together"),
        ("table --prune-count 1 --source s --target t", "go together"),
        ("table --prune-significance e --source s --target t", "expected a+e, a-e"),
        ("table --prune-significance 1 --source s --target none", "none: cannot read"),
        ("table --prune-significance 1 --source dev --target t", "dev: 1 line, but t has 4"),
        ("table --prune-significance 1 --source t --target s", "no pair of table occurs"),
        ("- --prune-entropy 1", "reads the table twice"),
        ("reordering --prune-count 1", "'a b ||| x' has no counts"),
    ],
)
def test_pruning_is_refused(
    line: str, message: str, command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    assert message in refused(command("smt-filter-table", "-q", *line.split(), "-o", "o", cwd=tmp_path))
    assert not (tmp_path / "o").exists()


@pytest.mark.ci
def test_real_system(nmt_data: Path, command: Command, tmp_path: Path) -> None:
    """98,085 pairs remain for val and test_2016_flickr (counted by an independent script of n-gram sets),
    rows stay matched."""
    folder = nmt_data / "moses-multi30k"
    texts = [folder / "corpus" / f"{name}.tok.en" for name in ("val", "test_2016_flickr")]
    reordering = folder / "reordering-table.wbe-msd-bidirectional-fe.gz"
    line = [folder / "phrase-table.gz", "-i", *texts, "--reordering", reordering]
    done = command("smt-filter-table", *line, *"-o o --reordering-output r".split(), cwd=tmp_path)
    assert done.returncode == 0 and "98,085 pairs kept" in done.stderr, done.stderr
    pairs, rows = (list(phrase_table.read(tmp_path / name)) for name in ("o", "r"))
    assert len(pairs) == 98085
    assert all((a.source, a.target) == (b.source, b.target) for a, b in zip(pairs, rows, strict=True))
    grams = {
        tuple(words[at : at + n])
        for path in texts
        for words in map(files.split_words, files.read_lines(path))
        for n in range(1, 8)
        for at in range(len(words))
    }
    assert all(tuple(pair.source.decode().split(" ")) in grams for pair in pairs[::50])


@pytest.mark.parametrize("longest", [1, 3, 8])
def test_equal_to_looking_for_each_phrase(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_table, "LONGEST", longest)
    rng = random.Random(1)
    words = ["a", "aa", "ab", "b"]  # one inside another
    lines = [[rng.choice(words) for _ in range(rng.randrange(12))] for _ in range(20)]
    wanted = Occurring(b" ".join(word.encode() for word in line) for line in lines)
    for _ in range(3000):
        phrase = [rng.choice(words) for _ in range(rng.randrange(1, 7))]
        occurs = any(line[at : at + len(phrase)] == phrase for line in lines for at in range(len(line)))
        assert (" ".join(phrase).encode() in wanted) == occurs
