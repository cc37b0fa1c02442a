"""Parallel texts in shards."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.jobs import shards
from nmt.jobs.shards import Shard

ROWS = [("a b", "x", "0-0"), ("", "", ""), ("c", "y z", "0-1"), ("d\u2028\x0c", "w", "")]


def cut(folder: Path, words: int) -> list[str]:
    for column, name in enumerate("sta"):
        text = "".join(row[column] + "\n" for row in ROWS)
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return shards.cut(folder / "job", [str(folder / name) for name in "sta"], words)


def test_what_is_cut_is_read(tmp_path: Path) -> None:
    """An empty line counts as a word; each shard knows its lines."""
    (tmp_path / "job").mkdir()
    names = cut(tmp_path, 4)
    assert [name.removeprefix(f"{tmp_path}/") for name in names] == ["s: lines 1-2", "s: lines 3-4"]
    assert shards.count(tmp_path / "job") == 2
    assert shards.read(tmp_path / "job", 1) == Shard(3, [*ROWS[2:]])
    assert [*shards.read_all(tmp_path / "job")] == ROWS


@pytest.mark.parametrize("words", [1, 1000])
def test_every_size(words: int, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    assert len(cut(tmp_path, words)) == (4 if words == 1 else 1)
    assert [*shards.read_all(tmp_path / "job")] == ROWS


def test_an_empty_text_has_no_shards(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    assert shards.cut(tmp_path, [str(tmp_path / "s")] * 2, 10) == []
    assert shards.count(tmp_path) == 0 and not list(shards.read_all(tmp_path))


def test_texts_of_unequal_length(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "t").write_text("a\n")
    with pytest.raises(DataError, match="1 lines, but"):
        shards.cut(tmp_path, [str(tmp_path / "s"), str(tmp_path / "t")], 10)
