"""Standard streams that are closed, locales that are not UTF-8, names of files that are not: with installed
commands."""

import os
import subprocess
from pathlib import Path

import pytest

from nmt import files
from tests.conftest import BIN, Command

ODD = os.fsdecode(b"caf\xe9")  # a name as an old disk has it
PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of the shell; $B is the folder of the commands."""
    return subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**os.environ, "B": str(BIN)},
        check=False,
    )


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("a b\nb\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "blamed"),
    [
        ("$B/nmt-vocab <&-", "<stdin>: cannot read"),
        ("$B/nmt-vocab -i text >&-", "<stdout>: cannot write"),
        ("$B/nmt-analyze scores --first text --second text -o . >&-", "text:1: expected a number"),
        ("$B/smt-ini show text >&-", "text"),
    ],
)
def test_a_closed_stream_that_is_needed_is_told_in_one_line(text: Path, line: str, blamed: str) -> None:
    done = shell(line, text)
    assert done.returncode == 2 and blamed in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_closed_stream_that_is_not_needed_is_no_error(text: Path) -> None:
    """And no file that is opened gets its number: nothing else is written into it."""
    done = shell("$B/nmt-vocab -i text -o vocab <&- >&-; echo $?; $B/nmt-vocab -i text 2>&-", text)
    assert done.stdout == "0\n#version: 1 vocabulary size=2\nb\t2\na\t1\n"
    assert (text / "vocab").read_text(encoding="utf-8") == "#version: 1 vocabulary size=2\nb\t2\na\t1\n"


@pytest.mark.parametrize("locale", [{}, PLAIN])
def test_names_of_files_need_not_be_utf8(text: Path, command: Command, locale: dict[str, str]) -> None:
    """Read, written, and named in messages, whose bytes are UTF-8 all the same."""
    os.rename(text / "text", text / ODD)
    done = command("nmt-vocab", "-i", text / ODD, "-o", text / f"{ODD}.vocab", **locale)
    assert done.returncode == 0 and os.path.getsize(text / f"{ODD}.vocab")
    done = command("nmt-vocab", "-i", text / f"{ODD}.no", **locale)
    assert done.returncode == 2 and "caf\\udce9.no: cannot read" in done.stderr


def test_names_and_text_are_utf8_in_every_locale(tmp_path: Path, command: Command) -> None:
    (tmp_path / "é").write_text("a b c d\ne f g h\n", encoding="utf-8")
    (tmp_path / "b").write_text("a b c d\ne f g i\n", encoding="utf-8")
    line = [
        "-r",
        tmp_path / "é",
        "--baseline",
        tmp_path / "é",
        "--hypothesis",
        tmp_path / "b",
        "--names",
        "é",
        ODD,
    ]
    done = command("nmt-analyze", "compare", *line, "-o", tmp_path / "out", **PLAIN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("compare.svg\n")
    rows = (tmp_path / "out" / "compare.tsv").read_text(encoding="utf-8").split("\n")
    assert rows[1].startswith("é\t") and rows[2].startswith("caf\\udce9\t")


def test_output_that_is_text_is_utf8(tmp_path: Path) -> None:
    files.write_text(tmp_path / "out", [ODD])
    assert (tmp_path / "out").read_text(encoding="utf-8") == "caf\\udce9\n"
