"""A small test set with two systems, and nmt-analyze in this process."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmt.cli import analyze
from nmt.text.vocab import Vocab

SOURCES = ["a b c d e f g h i j k l", "a b q", "a b c d e f g h i j z z", "b a"]
REFERENCES = ["u v w x u v w x u v w", "u v r", "u v w x u v w x u v", "v u"]
GOOD = ["u v w x u v w x u v w", "u v w", "u v w x u v w x", "v u"]
POOR = ["u v w x u w v x u v w", "r", "x w v u x u v w u v", "u v"]

Rows = list[dict[str, str]]
Analyze = Callable[..., Rows]
Drawn = Callable[..., tuple[Rows, str]]
Refuses = Callable[..., str]


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines))


def table_rows(text: str) -> Rows:
    """The rows of a table, by its header."""
    header, *lines = text.rstrip("\n").split("\n")
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """s, r, good, poor, and poor.nbest, a list with another entry; their vocabularies lack q, z and r. It is
    the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("r", REFERENCES), ("good", GOOD), ("poor", POOR)):
        write(tmp_path / name, lines)
    entries = [(n, entry, k) for n, line in enumerate(POOR) for k, entry in enumerate([line, "u u u"], 1)]
    write(tmp_path / "poor.nbest", [f"{n} ||| {entry} ||| F= 1 ||| -{k}" for n, entry, k in entries])
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
        return table_rows(out)

    return run


@pytest.fixture
def drawn(small: Path, capfd: pytest.CaptureFixture[str]) -> Drawn:
    """Run an analysis that draws; the rows of its table, and the texts of its SVG."""

    def run(kind: str, *options: object) -> tuple[Rows, str]:
        status = analyze.main([kind, *map(str, options), "-o", "out"])
        out, err = capfd.readouterr()
        assert status == 0, err
        assert f"out/{kind}.svg" in out and Path(f"out/{kind}.png").read_bytes().startswith(b"\x89PNG")
        texts = ElementTree.parse(f"out/{kind}.svg").getroot().itertext()
        return table_rows(Path(f"out/{kind}.tsv").read_text()), " ".join(texts)

    return run


@pytest.fixture
def refuses(small: Path, capfd: pytest.CaptureFixture[str]) -> Refuses:
    """Run an analysis that refuses its input; the one line that it says."""

    def run(*options: object) -> str:
        assert analyze.main([*map(str, options)]) == 2
        (line,) = capfd.readouterr().err.rstrip("\n").split("\n")
        return line

    return run
