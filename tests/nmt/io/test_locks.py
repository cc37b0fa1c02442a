"""One command at a time in a folder."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.io import locks

HOLD = (
    "import sys, time; from nmt.io.locks import locked\nwith locked(sys.argv[1], 'nmt-other'):\n  "
    "print('held', flush=True); sys.stdin.read()"
)


def other(folder: Path) -> "subprocess.Popen[str]":
    """A process that holds a folder until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


def test_the_second_is_told_who_holds_it_and_a_kill_lets_go(tmp_path: Path) -> None:
    process = other(tmp_path / "new")
    for _ in range(2):  # being refused does not change what the next is told
        with (
            pytest.raises(
                UserError,
                match=rf"new: in use by nmt-other, process {process.pid} on .*; "
                "wait for it to end, or stop it",
            ),
            locks.locked(tmp_path / "new", "me"),
        ):
            pass
    process.kill()
    process.wait()
    with locks.locked(tmp_path / "new", "me"):
        assert locks.holder(tmp_path / "new").startswith(f"me, process {os.getpid()}")
    assert locks.is_empty(tmp_path / "new")
    for stream in (process.stdin, process.stdout):
        assert stream
        stream.close()


def test_waiting_for_a_short_work(tmp_path: Path) -> None:
    process = other(tmp_path)
    assert process.stdin and process.stdout
    process.stdin.close()  # it lets go in a moment, now or after we have begun to wait
    with locks.locked(tmp_path, "me", wait=True):
        assert locks.holder(tmp_path).startswith("me")
    process.stdout.close()
    assert process.wait() == 0


def test_waiting_for_a_process_that_is_about_to_end(tmp_path: Path) -> None:
    """For some seconds, and no longer."""
    held = locks.locked(tmp_path, "other")
    held.__enter__()
    with pytest.raises(UserError, match="in use by other"), locks.locked(tmp_path, "me", patience=0.2):
        pass
    threading.Timer(0.2, held.__exit__, (None, None, None)).start()
    with locks.locked(tmp_path, "me", patience=60.0):
        assert locks.holder(tmp_path).startswith("me")


def test_only_a_folder_that_was_made_for_the_lock_is_removed(tmp_path: Path) -> None:
    """An empty folder that existed before stays; a new one goes, with those above it, unless it is used."""
    (tmp_path / "old").mkdir()
    for name in ("old", "above/new", "used"):
        with locks.locked(tmp_path / name, "me"):
            if name == "used":
                (tmp_path / name / "file").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old", "used"]


def test_an_error_lets_go(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locks.locked(tmp_path, "me"):
        raise KeyError
    with locks.locked(tmp_path, "me"):
        pass


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: cannot write"), locks.locked(tmp_path / "file", "me"):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that makes no folders")
def test_a_place_where_no_folder_can_be_made_is_told() -> None:
    with (
        pytest.raises(UserError, match="/proc/nosuch/run: cannot write"),
        locks.locked("/proc/nosuch/run", "me"),
    ):
        pass


def test_is_empty(tmp_path: Path) -> None:
    assert locks.is_empty(tmp_path) and locks.is_empty(tmp_path / "nosuch")
    (tmp_path / ".lock").write_text("")
    assert locks.is_empty(tmp_path)
    (tmp_path / "x").write_text("")
    assert not locks.is_empty(tmp_path) and not locks.is_empty(tmp_path / "x")
