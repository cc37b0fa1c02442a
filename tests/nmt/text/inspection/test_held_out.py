"""Pairs held out for development: sound ones, once each, always the same."""

from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.text.inspection.held_out import held_out, split
from nmt.text.inspection.texts import inspect_pairs

LINES = 120


def texts(folder: Path, numbers: list[int]) -> tuple[str, str]:
    """Pairs of these numbers; of ten, one is empty, one repeats its source."""
    sources = [f"word {0 if number % 10 == 5 else number}\n" for number in numbers]
    targets = ["\n" if number % 10 == 3 else f"mot {number}\n" for number in numbers]
    for name, lines in (("a.en", sources), ("b.fr", targets)):
        (folder / name).write_text("".join(lines))
    return str(folder / "a.en"), str(folder / "b.fr")


def test_the_same_pairs_in_any_order(tmp_path: Path) -> None:
    found = []
    for numbers in (list(range(LINES)), list(range(LINES))[::-1]):
        paths = texts(tmp_path, numbers)
        rows = held_out(inspect_pairs(*paths))
        train, dev = ([tmp_path / f"{part}.{side}" for side in "st"] for part in ("train", "dev"))
        split(paths, train, dev, rows)
        lines = [path.read_text().splitlines() for path in (*train, *dev)]
        assert len(lines[2]) == len(lines[3]) == len(rows) == 95 // 20
        assert len(lines[0]) == len(lines[1]) == LINES - len(rows)
        assert not set(lines[2]) & set(lines[0]) and not set(lines[3]) & set(lines[1]) and "" not in lines[3]
        pairs = list(zip(*(Path(path).read_text().splitlines() for path in paths), strict=True))
        assert sorted([*zip(*lines[:2], strict=True), *zip(*lines[2:], strict=True)]) == sorted(pairs)
        found.append(set(zip(*lines[2:], strict=True)))
    assert found[0] == found[1]


def test_too_few(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="14 pairs without faults that occur once are too few"):
        held_out(inspect_pairs(*texts(tmp_path, list(range(19)))))


def test_files_keep_their_order(tmp_path: Path) -> None:
    paths = texts(tmp_path, list(range(30)))
    split(paths, [tmp_path / "x", tmp_path / "y"], [tmp_path / "v", tmp_path / "w"], np.array([1, 7]))
    assert (tmp_path / "v").read_text() == "word 1\nword 7\n"
    assert (tmp_path / "w").read_text() == "mot 1\nmot 7\n"
