"""A small test set with two systems, and nmt-analyze in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import analyze
from nmt.text.vocab import Vocab

SOURCES = ["a b c d e f g h i j k l", "a b q", "a b c d e f g h i j z z", "b a"]
REFERENCES = ["u v w x u v w x u v w", "u v r", "u v w x u v w x u v", "v u"]
GOOD = ["u v w x u v w x u v w", "u v w", "u v w x u v w x", "v u"]
POOR = ["u v w x u w v x u v w", "r", "x w v u x u v w u v", "u v"]

Rows = list[dict[str, str]]
Analyze = Callable[..., Rows]
Refuses = Callable[..., str]


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """s, r, good, poor; their vocabularies lack q, z and r. It is the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("r", REFERENCES), ("good", GOOD), ("poor", POOR)):
        write(tmp_path / name, lines)
    Vocab(dict.fromkeys("abcdefghijkl", 1), 99).save(tmp_path / "s.vocab")
    Vocab(dict.fromkeys("uvwx", 1), 99).save(tmp_path / "t.vocab")
    return tmp_path


@pytest.fixture
def rows(small: Path, capfd: pytest.CaptureFixture[str]) -> Analyze:
    """Run an analysis; the rows of its table."""

    def run(*options: object) -> Rows:
        status = analyze.main([*map(str, options)])
        out, err = capfd.readouterr()
        assert status == 0, err
        header, *lines = out.rstrip("\n").split("\n")
        return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]

    return run


@pytest.fixture
def refuses(small: Path, capfd: pytest.CaptureFixture[str]) -> Refuses:
    """Run an analysis that refuses its input; the one line that it says."""

    def run(*options: object) -> str:
        assert analyze.main([*map(str, options)]) == 2
        (line,) = capfd.readouterr().err.rstrip("\n").split("\n")
        return line

    return run
