"""Folders of mapped arrays: what was written is what is read, and nothing else passes for it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import manifest, mapped

ARRAYS: dict[str, NDArray[np.generic]] = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "codes": np.arange(5, dtype=np.uint8),
    "none": np.zeros((0, 3), np.int64),
}


def write(folder: Path) -> Path:
    folder.mkdir()
    mapped.write(folder, "Numbers", ARRAYS, {"count": 7}, ["/a/table"])
    return folder


def test_read_is_written(tmp_path: Path) -> None:
    opened = mapped.load(write(tmp_path / "folder"))
    assert (opened.kind, opened.numbers, opened.sources) == ("Numbers", {"count": 7}, ["/a/table"])
    assert list(opened.arrays) == sorted(ARRAYS)
    for name, array in opened.arrays.items():
        assert type(array) is np.ndarray and array.dtype == ARRAYS[name].dtype
        assert np.array_equal(array, ARRAYS[name]) and not array.flags.writeable
    assert mapped.is_mapped(tmp_path / "folder") and not mapped.is_mapped(tmp_path)


def test_a_stamp_is_for_one_folder_as_it_was(tmp_path: Path) -> None:
    """A flipped byte is noticed by its time, or with verify; a missing end always."""
    folder, other = write(tmp_path / "folder"), write(tmp_path / "other")
    stamp = tmp_path / "stamp"
    assert not mapped.load(folder, stamp).verified
    mapped.write_stamp(stamp, mapped.load(folder, stamp))
    assert mapped.load(folder, stamp).verified and not mapped.load(other, stamp).verified
    assert not mapped.load(folder, stamp, verify=True).verified
    path = folder / "floats.npy"
    whole, status = path.read_bytes(), path.stat()
    with open(path, "r+b") as stream:
        stream.write(whole[:-1] + b"\x01")
    with pytest.raises(DataError, match=r"floats\.npy: damaged"):
        mapped.load(folder, stamp)
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))  # as a failing disk might
    assert mapped.load(folder, stamp).verified
    with pytest.raises(DataError, match=r"floats\.npy: damaged"):
        mapped.load(folder, stamp, verify=True)
    path.write_bytes(whole[:-1])
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    with pytest.raises(DataError, match=r"floats\.npy: damaged: its size"):
        mapped.load(folder, stamp)
    path.unlink()
    with pytest.raises(DataError, match=r"floats\.npy: missing"):
        mapped.load(folder, stamp)


def test_every_folder_has_a_stamp_of_its_own(tmp_path: Path) -> None:
    """Else each of two models in use would undo the other's; another name of a folder is the same folder."""
    (tmp_path / "cache").mkdir()
    folders = [write(tmp_path / "folder"), write(tmp_path / "other")]
    stamps = [mapped.stamp_file(tmp_path / "cache", folder) for folder in folders]
    for folder, stamp in zip(folders, stamps, strict=True):
        mapped.write_stamp(stamp, mapped.load(folder, stamp))
    assert all(mapped.load(folder, stamp).verified for folder, stamp in zip(folders, stamps, strict=True))
    (tmp_path / "link").symlink_to(folders[0])
    assert mapped.stamp_file(tmp_path / "cache", tmp_path / "link") == stamps[0]


@pytest.mark.parametrize(
    "contents",
    [
        b"{", b"[]", b"{}", b'"x"', b'{"format": "nmt-arrays 1"}', b'{"format": "other 3"}', b"\xff",
        b'{"format": "nmt-arrays 1", "kind": 3, "numbers": {}, "sources": []}',
    ],
)  # fmt: skip
def test_other_folders_are_refused(contents: bytes, tmp_path: Path) -> None:
    folder = write(tmp_path / "folder")
    (folder / mapped.CONTENTS).write_bytes(contents)
    with pytest.raises(DataError, match=r"contents\.json: damaged"):
        mapped.load(folder)
    manifest.write(folder, [path.name for path in folder.iterdir() if path.name != manifest.FILE])
    with pytest.raises(DataError, match="make the folder again"):
        mapped.load(folder)


def test_no_pickles_and_no_other_files(tmp_path: Path) -> None:
    """Even where the checksum is right."""
    folder = write(tmp_path / "folder")
    path = folder / "floats.npy"
    for content in (b"", b"text", path.read_bytes()[:60]):
        path.write_bytes(content)
        manifest.write(folder, [part.name for part in folder.iterdir() if part.name != manifest.FILE])
        with pytest.raises(DataError, match=r"floats\.npy: not an array"):
            mapped.load(folder)
    np.save(path, np.array([{}], object), allow_pickle=True)
    manifest.write(folder, [part.name for part in folder.iterdir() if part.name != manifest.FILE])
    with pytest.raises(DataError, match=r"floats\.npy: not an array"):
        mapped.load(folder)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="not a regular file"):
        mapped.load(folder)


def test_without_a_manifest_a_folder_is_not_complete(tmp_path: Path) -> None:
    """It is written last."""
    folder = write(tmp_path / "folder")
    (folder / manifest.FILE).unlink()
    with pytest.raises(DataError, match=r"manifest\.json: missing"):
        mapped.load(folder)
    assert json.loads((folder / mapped.CONTENTS).read_text(encoding="utf-8"))["kind"] == "Numbers"
