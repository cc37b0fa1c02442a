"""Files of parts: what is read is what was written, and damage is noticed."""

from pathlib import Path

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.jobs import arrays, parts

ROWS = np.arange(12, dtype=np.uint64).reshape(4, 3)


def written(folder: Path) -> Path:
    """In a folder that does not exist yet; the rows lie in another order in memory."""
    path = folder / "stage" / "00000"
    parts.write(path, [b"one", b"", np.asfortranarray(ROWS), np.zeros((0, 3), np.uint64)])
    return path


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert parts.count(path) == 4 and parts.is_whole(path)
    assert [parts.read(path, part) for part in (0, 1)] == [b"one", b""]
    assert (arrays.rows(path, 2, 3) == ROWS).all() and arrays.rows(path, 3, 3).shape == (0, 3)
    assert [one.name for one in path.parent.iterdir()] == ["00000"]


def test_the_same_parts_are_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = path.read_bytes()
    assert written(tmp_path).read_bytes() == before


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not parts.is_whole(path), place
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        assert not parts.is_whole(path), end
    path.write_bytes(whole + b"x")
    assert not parts.is_whole(path)
    path.write_bytes(whole)
    assert parts.is_whole(path)


def test_damage_is_one_line_for_who_reads(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(UserError, match=r"00001: missing or damaged; .* --resume"):
        parts.read(path.with_name("00001"), 0)
    with pytest.raises(parts.Damaged):
        parts.count(tmp_path / "none")
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    with pytest.raises(parts.Damaged, match="00000"):
        parts.read(path, 0)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(parts.Damaged):
        parts.read(path, 2)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "stage").write_text("in the way")
    with pytest.raises(UserError, match="00000: cannot write: File exists"):
        written(tmp_path)
    with pytest.raises(UserError, match="cannot write"):
        parts.write(Path("/proc/none/00000"), [b"x"])
