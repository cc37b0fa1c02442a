"""What a killed extraction left is removed by the next one, and nothing else; a full disk is told with the
file that it stopped."""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.io import locks
from smt_bridge.extraction import tables
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.tables import WORK, TableInputs, TableOutputs


def killed_folder(parent: Path) -> Path:
    """As kill -9 leaves it."""
    code = """
import os, signal
from smt_bridge.extraction.tables import WORK
with WORK.make('table') as folder:
    (folder / 'text').mkdir()
    (folder / 'text' / '00000').write_bytes(b'x')
    (folder / 'words.part12').write_bytes(b'x')
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=parent, check=False)
    assert done.returncode == -signal.SIGKILL
    return next(parent.glob("smt-extract.*"))


def test_left_over_folders_are_swept(tmp_path: Path) -> None:
    left = killed_folder(tmp_path)
    names = "smt-extract.ABCDEFGH", "smt-extract.notes", "smt-extract.12345678"
    strangers = dict(zip(names, ("text", "x", "mine.txt"), strict=True))
    for name, inside in strangers.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / inside).write_text("x")
    (tmp_path / "smt-extract.12345678" / locks.FILE).write_text("smt-extract, process 1 on x, since then")
    with WORK.make(str(tmp_path / "table")) as working, WORK.make(str(tmp_path / "other")) as second:
        # one in use is not swept by the other
        assert working.exists() and second.exists() and not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(strangers)
    assert all((tmp_path / name / inside).exists() for name, inside in strangers.items())


@pytest.mark.parametrize("lock", [True, False])
def test_a_start_that_was_killed_at_once_leaves_an_empty_folder(lock: bool, tmp_path: Path) -> None:
    left = tmp_path / "smt-extract.abcdefgh"
    left.mkdir()
    if lock:
        (left / locks.FILE).touch()
    WORK.sweep(tmp_path)
    assert not left.exists()


def test_who_has_just_begun_loses_nothing_to_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another extraction sweeps between the making of the folder and its lock."""
    make = tempfile.mkdtemp

    def made_and_swept(prefix: str, dir: Path) -> str:
        folder = make(prefix=prefix, dir=dir)
        WORK.sweep(tmp_path)
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_swept)
    with WORK.make(str(tmp_path / "table")) as folder:
        assert folder.exists() and locks.holder(folder).startswith("smt-extract, process")
    assert not list(tmp_path.iterdir())


def write_texts(folder: Path, lines: int) -> None:
    """Each line has phrases of its own."""
    for name, text in (("s", "a{0} b c\n"), ("t", "x y{0} z\n"), ("a", "0-0 1-1 2-2\n")):
        (folder / name).write_text("".join(text.format(number) for number in range(lines)))


def build(folder: Path) -> None:
    inputs = TableInputs(str(folder / "s"), str(folder / "t"), str(folder / "a"))
    tables.build(inputs, TableOutputs(str(folder / "table")), ExtractConfig())


def extract_with_little_room(folder: Path, size: int) -> None:
    """In a process of its own: no file may grow beyond `size` bytes."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        build(folder)
    except UserError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        (folder / "message").write_text(str(error))


@pytest.mark.parametrize(("size", "lines"), [(200, 3), (1200, 33)])
def test_a_full_disk_is_told_with_its_file(
    size: int, lines: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_texts(tmp_path, lines)
    build(tmp_path)  # compiles: numba's cache has no little room
    (tmp_path / "table").unlink()
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=extract_with_little_room, args=(tmp_path, size))
    process.start()
    process.join()
    message = (tmp_path / "message").read_text()
    assert message.startswith(str(tmp_path / "smt-extract."))
    assert message.endswith("cannot write: File too large")
    assert sorted(os.listdir(tmp_path)) == ["a", "message", "s", "t"]
    assert "Traceback" not in capfd.readouterr().err
