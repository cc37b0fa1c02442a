"""nmt-tokenize, nmt-subword, nmt-vocab and nmt-analyze as installed."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmt.metrics import corpus_bleu

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.ci
def test_tokenize_there_and_back(command: Command) -> None:
    text = "L'homme n'a pas vu l'arbre.\n\n«\xa0Oui\xa0»\n"
    words = command("nmt-tokenize", "-l", "fr", input=text)
    assert words.stdout.split("\n")[:2] == ["L' homme n' a pas vu l' arbre .", ""]
    back = command("nmt-tokenize", "-l", "fr", "--detokenize", input=words.stdout)
    assert back.stdout.split("\n")[0] == "L'homme n'a pas vu l'arbre." and back.stdout.count("\n") == 3
    assert command("nmt-tokenize", "-l", "en", "--lower", input="A B").stdout == "a b\n"


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0c", "\xa0", "\r"])
def test_tokenize_keeps_the_number_of_lines(command: Command, odd: str) -> None:
    done = command("nmt-tokenize", "-l", "en", input=f"a{odd}b\nc\n{odd}\n")
    assert done.returncode == 0 and done.stdout.count("\n") == 3


def test_subword_learn_apply_undo(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("low low low lower\n")
    (tmp_path / "b").write_text("newest newest widest\n")
    assert (
        command(
            "nmt-subword",
            "learn",
            "-q",
            "--input",
            tmp_path / "a",
            tmp_path / "b",
            "--merges",
            6,
            "-o",
            tmp_path / "codes",
        ).returncode
        == 0
    )
    assert (tmp_path / "codes").read_text().startswith("#version: 0.2\n")
    text = "lowest  newer\n\nnew\u2028est\n"
    units = command("nmt-subword", "apply", tmp_path / "codes", input=text)
    assert "@@ " in units.stdout and units.stdout.count("\n") == 3
    assert command("nmt-subword", "undo", input=units.stdout).stdout == "lowest newer\n\nnew\u2028est\n"


def test_vocab_counts_and_reports_coverage(command: Command, tmp_path: Path) -> None:
    done = command("nmt-vocab", "--size", 1, "--output", tmp_path / "v", input="b a b\nb c\n")
    assert (tmp_path / "v").read_text() == "#version: 1 vocabulary size=1\nb\t3\na\t1\nc\t1\n"
    assert "1 of 3 words kept; they cover 60.00% of 5 running words" in done.stderr


def test_vocab_unescapes(command: Command) -> None:
    text = "l&apos; a &amp; &#124;\n"
    assert command("nmt-vocab", "--unescape", input=text).stdout.split("\n")[1:-1] == [
        "&\t1",
        "a\t1",
        "l'\t1",
        "|\t1",
    ]
    assert "l&apos;\t1" in command("nmt-vocab", input=text).stdout


@pytest.mark.ci
def test_text_commands_refuse(command: Command, tmp_path: Path, refused: Callable[..., str]) -> None:
    (tmp_path / "codes").write_text("one two three\n")
    assert "codes:1:" in refused(command("nmt-subword", "apply", tmp_path / "codes", input="a\n"))
    assert "no words" in refused(command("nmt-subword", "learn", input=""))
    assert "<stdin>:2: byte 0xff" in refused(command("nmt-tokenize", "-l", "en", input=b"a\n\xff\n"))
    assert "<stdin>:1: NUL" in refused(command("nmt-vocab", "-q", input="\0"))
    assert "cannot read" in refused(command("nmt-vocab", "--input", tmp_path))
    assert "No space left" in refused(
        command("nmt-tokenize", "-l", "en", "--output", "/dev/full", input="a\n")
    )


SOURCES = ["a b c d", "a b c d e", "a b c d e f"]
REFERENCES = ["x y z w", "x y z w v", "p q r s t u"]
OTHERS = ["x y z", "x y z w", "p q r s t"]
HYPOTHESES = ["x y z w", "x y z w w", "p q r s t t"]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    for name, lines in (("s", SOURCES), ("r", REFERENCES), ("r2", OTHERS), ("h", HYPOTHESES)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    return tmp_path


def test_by_length_writes_table_and_figures(command: Command, system: Path) -> None:
    """The sentence of 4 words is right: 100. That of 5 has 4/5, 3/4, 2/3, 1/2 n-grams right: (0.2)^(1/4) =
    66.87."""
    files = ["--source", system / "s", "--reference", system / "r", "--hypothesis", system / "h"]
    done = command(
        "nmt-analyze",
        "by-length",
        *files,
        "--window",
        1,
        "--least",
        1,
        "--output",
        system / "out",
        "--bleu-tokenize",
        "none",
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in (system / "out" / "by-length.tsv").read_text().split("\n")]
    assert rows[1][:7] == ["source", "4", "4", "4", "1", "100.0000", "1.0000"]
    assert rows[2][:7] == ["source", "5", "5", "5", "1", "66.8740", "1.0000"] and rows[2][8] == "h"
    assert done.stdout.split("\n")[0] == str(corpus_bleu(HYPOTHESES, [REFERENCES], "none"))
    assert done.stdout.split("\n")[1].startswith("chrF2 = ")
    svg = " ".join(ElementTree.parse(system / "out" / "by-length.svg").getroot().itertext())
    assert "source length" in svg and "tok:none" in svg
    assert (system / "out" / "by-length.png").read_bytes().startswith(b"\x89PNG")


def test_by_length_to_stdout_with_two_references(command: Command, system: Path) -> None:
    done = command(
        "nmt-analyze",
        "by-length",
        "--source",
        system / "s",
        "--reference",
        system / "r",
        system / "r2",
        "--hypothesis",
        system / "h",
    )
    assert done.stdout.startswith("by\tlength\t") and "nrefs:2" in done.stderr
    assert str(corpus_bleu(HYPOTHESES, [REFERENCES, OTHERS])) in done.stderr


@pytest.mark.ci
def test_by_length_refuses(command: Command, system: Path, refused: Callable[..., str]) -> None:
    (system / "short").write_text("x\n")
    (system / "empty").write_text("")
    base = [
        "nmt-analyze",
        "by-length",
        "-q",
        "--source",
        system / "s",
        "--reference",
        system / "r",
        "--hypothesis",
    ]
    assert "short: 1 lines, but" in refused(command(*base, system / "short", "--output", system / "out"))
    assert "nosuch" in refused(command(*base, system / "h", "--bleu-tokenize", "nosuch"))
    empty = system / "empty"
    assert "empty file" in refused(
        command(
            "nmt-analyze", "by-length", "-q", "--source", empty, "--reference", empty, "--hypothesis", empty
        )
    )
    assert not (system / "out").exists()
