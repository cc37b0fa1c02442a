"""Word alignments: symmetrization by its rules, the command as installed, other tools' alignments, bad
input."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import DataError
from smt_bridge.cli import align
from smt_bridge.extraction import alignment
from smt_bridge.extraction.symmetrize import HEURISTICS, Links
from tests.conftest import Command


def random_links(rng: random.Random, source: int, target: int, count: int) -> Links:
    return frozenset((rng.randrange(source), rng.randrange(target)) for _ in range(count))


def test_heuristics_lie_between_intersection_and_union() -> None:
    rng = random.Random(1)
    for _ in range(300):
        forward, reverse = (random_links(rng, 6, 7, rng.randrange(10)) for _ in range(2))
        made = {name: combine(forward, reverse) for name, combine in HEURISTICS.items()}
        assert made["intersection"] == forward & reverse and made["union"] == forward | reverse
        assert all(
            made["intersection"] <= links <= made["union"]
            for name, links in made.items()
            if name not in ("forward", "reverse")
        )
        assert (
            made["grow-diag"] <= made["grow-diag-final-and"] and made["grow-diag"] <= made["grow-diag-final"]
        )
        joined = {a for a, _ in made["grow-diag"]}, {b for _, b in made["grow-diag"]}
        added = made["grow-diag-final-and"] - made["grow-diag"]
        assert all(a not in joined[0] and b not in joined[1] for a, b in added)
        assert (made["forward"], made["reverse"]) == (forward, reverse)


def test_grow_diag_final_and_by_hand() -> None:
    """Intersection 0-0; 1-1 is a diagonal neighbor with a free word; 3-3 is joined by no neighbor and has two
    free words; 0-3 has one only."""
    forward, reverse = frozenset({(0, 0), (1, 1), (3, 3)}), frozenset({(0, 0), (0, 3)})
    assert HEURISTICS["grow-diag"](forward, reverse) == {(0, 0), (1, 1)}
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0)}
    assert HEURISTICS["grow-diag-final-and"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    assert HEURISTICS["grow-diag-final"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    # One free word is enough for a neighbor, none is not: 1-0 joins, then 1-1 has a free target, and 0-1
    # nothing new.
    forward, reverse = frozenset({(0, 0), (1, 0), (1, 1), (0, 1)}), frozenset({(0, 0)})
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0), (0, 1), (1, 0)}


@pytest.mark.ci
def test_real_alignments_are_fast_aligns(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """fast_align and atools, the real programs, made the alignment that lies beside the corpus; ours differs
    in 5 of 29,000 lines."""
    corpus = nmt_data / "moses-multi30k"
    done = command(
        "smt-align",
        "-s",
        corpus / "corpus/train.tok.en",
        "-t",
        corpus / "corpus/train.tok.fr",
        "-o",
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (
        list(alignment.read(tmp_path / "out")),
        list(alignment.read(corpus / "aligned.grow-diag-final-and.gz")),
    )
    assert len(ours) == len(theirs) == 29_000
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 20


@pytest.mark.parametrize("method", alignment.ALIGNERS)
def test_command_aligns_and_repeats_itself(
    method: str, smt_model: Path, tmp_path: Path, command: Command
) -> None:
    given = ["-s", smt_model / "dev.en", "-t", smt_model / "dev.fr", "--method", method]
    assert (
        command(
            "smt-align",
            *given,
            "-o",
            tmp_path / "a",
            "--forward-output",
            tmp_path / "f",
            "--reverse-output",
            tmp_path / "r",
        ).returncode
        == 0
    )
    assert command("smt-align", *given, "-o", tmp_path / "b").returncode == 0
    text = (tmp_path / "a").read_bytes()
    assert text == (tmp_path / "b").read_bytes()
    assert text.count(b"\n") == 60 and text.count(b"-") > 200
    again = command("smt-align", *given[:4], "--forward", tmp_path / "f", "--reverse", tmp_path / "r")
    assert again.stdout.encode() == text


def test_empty_sides_get_no_links(tmp_path: Path, command: Command) -> None:
    (tmp_path / "s").write_text("a b\n\nc\na c\n")
    (tmp_path / "t").write_text("x y\nz\n\nx z\n")
    done = command("smt-align", "-s", tmp_path / "s", "-t", tmp_path / "t")
    assert done.returncode == 0 and "2 sentence pairs get no links" in done.stderr
    lines = done.stdout.split("\n")
    assert len(lines) == 5 and lines[1] == lines[2] == "" and lines[0]


Refused = Callable[..., str]


def test_bad_input(tmp_path: Path, command: Command, refused: Refused) -> None:
    (tmp_path / "s").write_text("a b\nc\n")
    (tmp_path / "t").write_text("x\n")
    line = refused(command("smt-align", "-s", tmp_path / "s", "-t", tmp_path / "t", "-o", tmp_path / "out"))
    assert "t: 1 lines, but" in line and not (tmp_path / "out").exists()
    (tmp_path / "t").write_text("\n\n")
    assert "nothing to align" in refused(command("smt-align", "-s", tmp_path / "s", "-t", tmp_path / "t"))
    (tmp_path / "t").write_text("x\ny\n")
    (tmp_path / "f").write_text("0-0\n0-1\n")
    line = refused(
        command(
            "smt-align",
            "-s",
            tmp_path / "s",
            "-t",
            tmp_path / "t",
            "--forward",
            tmp_path / "f",
            "--reverse",
            tmp_path / "f",
        )
    )
    assert "f:2: point 0-1 is outside" in line
    with pytest.raises(DataError, match=r"f:3: '1\?2' is no alignment point"):
        alignment.parse("0-0 1?2", "f:3")


def test_without_an_aligner(tmp_path: Path, command: Command, refused: Refused) -> None:
    (tmp_path / "thot").mkdir()
    (tmp_path / "thot" / "__init__.py").write_text("raise ImportError('not here')\n")
    (tmp_path / "s").write_text("a\n")
    for name, more in (("smt-align", []), ("smt-train", [tmp_path / "model"])):
        line = refused(
            command(name, *more, "-s", tmp_path / "s", "-t", tmp_path / "s", PYTHONPATH=str(tmp_path))
        )
        assert "nmt-smt[smt]" in line and "sil-thot" in line
    assert not (tmp_path / "model").exists()


class Diagonal:
    """An aligner of a plugin: the words of equal position."""

    def check(self) -> None:
        pass

    def align(self, sources: alignment.Texts, targets: alignment.Texts) -> list[Links]:
        pairs = zip(sources, targets, strict=True)
        return [frozenset((at, at) for at in range(min(len(a), len(b)))) for a, b in pairs]


def test_an_aligner_added_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(alignment.ALIGNERS, "diagonal", Diagonal())
    for name, text in (("s", "a b c\n\n"), ("t", "x y\nz\n")):
        (tmp_path / name).write_text(text)
    line = ["-s", str(tmp_path / "s"), "-t", str(tmp_path / "t"), "-o", str(tmp_path / "o"), "-q"]
    assert align.main([*line, "--method", "diagonal"]) == 0
    assert (tmp_path / "o").read_text() == "0-0 1-1\n\n"
