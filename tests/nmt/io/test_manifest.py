"""Every file of a folder has a checksum at every moment, and no other content passes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.errors import DataError, UserError
from nmt.io import manifest, mapped
from nmt.io.mapped import MEMORY, ArrayStorage, GrowingArray, blocks
from tests.conftest import file_size_limit


def publish(folder: Path, content: dict[str, bytes], drop: tuple[str, ...] = ()) -> None:
    for name, data in content.items():
        (folder / f"{name}.part").write_bytes(data)
    manifest.publish(folder, {name: folder / f"{name}.part" for name in content}, drop)


def test_each_flipped_bit_cut_and_absence_is_seen(tmp_path: Path) -> None:
    data = bytes(range(40))
    publish(tmp_path, {"a": data, "b": b"other"})
    manifest.verify(tmp_path, ["a", "b"])
    for place in range(len(data)):
        (tmp_path / "a").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(DataError, match=r"a: damaged: size or checksum"):
            manifest.verify(tmp_path, ["a"])
        (tmp_path / "a").write_bytes(data[:place])
        with pytest.raises(DataError, match="damaged"):
            manifest.verify(tmp_path, ["a"])
    manifest.verify(tmp_path, ["b"])
    (tmp_path / "a").unlink()
    with pytest.raises(DataError, match=r"a: missing, but manifest\.json lists it"):
        manifest.verify(tmp_path, ["a"])
    (tmp_path / "stranger").write_bytes(b"x")
    with pytest.raises(DataError, match=r"stranger: not in manifest\.json"):
        manifest.verify(tmp_path, ["stranger"])


def test_a_missing_manifest_is_named_where_there_has_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    assert manifest.read(tmp_path) is None
    with pytest.raises(DataError, match=r"manifest\.json: missing"):
        manifest.verify(tmp_path, ["a"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        '{"format": 1}',
        '{"format": "nmt-manifest 1", "files": 3}',
        "[" * 5000,
        '{"format": "nmt-manifest 1"}',
        '{"format": "nmt-manifest 1", "files": {"a": [{"size": Infinity, "sha256": ""}]}}',
    ],
)
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json: "):
        manifest.read(tmp_path)


def test_what_is_read_is_what_was_checked(tmp_path: Path) -> None:
    """The name may be given to another file between check and reading."""
    publish(tmp_path, {"a": b"old"})
    with manifest.open_verified(tmp_path, "a", manifest.read(tmp_path)) as stream:
        publish(tmp_path, {"a": b"new"})
        assert stream.read() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"
    manifest.verify(tmp_path, ["a"])


KILLED = """
import os, sys
from pathlib import Path
from nmt.io import manifest

folder, moment, parts, drop = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(), sys.argv[4].split()
calls = iter(range(1000))
def watched(real):
    def call(*args, **kwargs):
        if next(calls) == moment:
            os._exit(9)
        real(*args, **kwargs)
    return call
os.replace, Path.unlink = watched(os.replace), watched(Path.unlink)
manifest.publish(folder, {name: folder / f"{name}.part" for name in parts}, drop)
"""


def killed_at(folder: Path, moment: int, content: dict[str, bytes], drop: str) -> bool:
    """publish in a process of its own, which ends for good before its `moment`-th rename or removal; False
    when it came to its end."""
    for name, data in content.items():
        (folder / f"{name}.part").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(moment), " ".join(content), drop], check=False
    )
    assert done.returncode in (0, 9)
    return done.returncode == 9


@pytest.mark.ci
def test_killed_at_any_moment_the_folder_is_sound(tmp_path: Path) -> None:
    """Again and again, over what the kill before has left: each file has its old content or its new one, and
    either passes."""
    publish(tmp_path, {"state": b"0", "step-0": b"0"})
    moment = 0
    while killed_at(
        tmp_path, moment, {"step-1": b"1" * (moment + 2), "state": b"1" * (moment + 2)}, "step-0"
    ):
        there = [name for name in ("state", "step-0", "step-1") if (tmp_path / name).exists()]
        state = (tmp_path / "state").read_bytes()
        manifest.verify(tmp_path, ["state"])
        manifest.verify(tmp_path, ["step-0" if state == b"0" else "step-1"])
        assert "step-0" not in there or (tmp_path / "step-0").read_bytes() == b"0"
        moment += 1
    assert moment >= 5  # two manifests, two files, a removal
    entries = manifest.read(tmp_path)
    assert (
        entries
        and sorted(entries) == ["state", "step-1"]
        and all(len(found) == 1 for found in entries.values())
    )


def test_stamps_follow_the_content(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("abc")
    before = manifest.stamp(path)
    assert manifest.unchanged(path, before)
    os.utime(path, ns=(1, 1))
    assert manifest.unchanged(path, before)  # another date, the same text
    path.write_text("abd")
    assert not manifest.unchanged(path, before)
    path.write_text("abcd")
    os.utime(path, ns=(1, int(before["time"])))
    assert not manifest.unchanged(path, before)  # the same date, but longer
    path.unlink()
    with pytest.raises(DataError, match="cannot read"):
        manifest.unchanged(path, before)


# ---- mapped arrays -----------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("header", ["(" * 9000, "-" * 9000 + "1", "[" * 900, "{'shape': 1}", "1"])
def test_a_header_that_is_none(header: str, tmp_path: Path) -> None:
    """numpy lets Python parse it: errors of the tokenizer, and of its own memory, are of the file, too."""
    text = header.encode() + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(DataError, match=r"a\.npy: not an array of numpy"):
        mapped.map_array(tmp_path / "a.npy")


@pytest.mark.parametrize("lacking", [1, 100, 10_000])
def test_a_disk_that_is_full_near_the_end_of_an_array(lacking: int, tmp_path: Path) -> None:
    """numpy's own writing loses the last bytes without an error."""
    mapped.save_array(tmp_path / "whole", numbers := np.arange(5000.0))
    size = (tmp_path / "whole").stat().st_size
    with file_size_limit(size):
        mapped.write(tmp_path, "Numbers", {"numbers": numbers}, {})
    (folder := tmp_path / "folder").mkdir()
    with (
        file_size_limit(size - lacking),
        pytest.raises(UserError, match="folder: cannot write: File too large"),
    ):
        mapped.write(folder, "Numbers", {"numbers": numbers}, {})
    assert not mapped.is_mapped(folder)


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
    other = mapped.stamp_file(tmp_path / "cache", os.fsdecode(b"caf\xe9"))  # a name that is not UTF-8
    assert other not in stamps


@pytest.mark.parametrize(
    "contents",
    [
        b"{", b"[]", b"{}", b'"x"', b'{"format": "nmt-arrays 1"}', b'{"format": "other 3"}', b"\xff",
        b'{"format": "nmt-arrays 1", "kind": 3, "numbers": {}, "sources": []}',
        b'{"format": "nmt-arrays 1", "kind": "x", "numbers": {"count": "seven"}, "sources": []}',
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


@pytest.mark.parametrize("allocates", [True, False])
def test_temporary_arrays(allocates: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not allocates:  # as on macOS
        monkeypatch.delattr(os, "posix_fallocate")
    for storage in (ArrayStorage(), ArrayStorage(tmp_path)):
        numbers, matrix, nothing = (
            storage.empty(shape, kind) for shape, kind in ((5, np.int64), ((2, 3), np.float32), (0, np.int32))
        )
        numbers[:], matrix[:] = range(5), 0.5
        assert numbers.tolist() == [0, 1, 2, 3, 4] and matrix.tolist() == [[0.5] * 3] * 2
        assert numbers.dtype == np.int64 and not len(nothing) and not list(tmp_path.iterdir())
    with file_size_limit(2 << 20), pytest.raises(OSError, match="large"):
        ArrayStorage(tmp_path).empty(3 << 20, np.uint8)


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_rows_of_arrays(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "ROWS", rows)
    grown = GrowingArray(MEMORY, np.int64)
    for part in ([], [5, 3], [4], [9, 8, 7, 6, 2]):
        grown.add(np.array(part, np.int64))
    assert grown.values.tolist() == [5, 3, 4, 9, 8, 7, 6, 2]
    assert MEMORY.take(grown.values, np.array([7, 0, 0])).tolist() == [2, 5, 5]
    assert MEMORY.select(grown.values, grown.values > 5).tolist() == [9, 8, 7, 6]


def test_blocks_of_rows() -> None:
    assert [*blocks(7, 3)] == [slice(0, 3), slice(3, 6), slice(6, 7)] and not [*blocks(0, 3)]
