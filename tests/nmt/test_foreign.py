"""Files of folders that strangers made: nothing blocks, nothing of other files is shown."""

import os
from pathlib import Path

import pytest

from nmt import foreign
from nmt.errors import DataError


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    """Through a link inside of its folder too, and where the folder is a link itself."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "b").write_bytes(b"text")
    (tmp_path / "run" / "a").symlink_to("b")
    (tmp_path / "link").symlink_to("run")
    for name in ("run/a", "run/b", "link/a", "link/b"):
        foreign.check(tmp_path / name, 4)
        assert foreign.read(tmp_path / name) == b"text"
    foreign.check(tmp_path / "run" / "missing")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large", "loop"])
def test_what_is_no_regular_file(kind: str, tmp_path: Path) -> None:
    """No process waits for a writer, none reads zeros for ever."""
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "large":
        path.touch()
        os.truncate(path, foreign.SMALL + 1)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    with pytest.raises(OSError, match=r"regular|directory|expected|levels") as error:
        foreign.read(path)
    assert error.value.strerror and str(path) == error.value.filename
    with pytest.raises(DataError, match=r"x: cannot read: "):
        foreign.check(path, foreign.SMALL, inside=False)


def test_a_link_that_leads_out(tmp_path: Path) -> None:
    """`..` in it counts by where it ends."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run-2").mkdir()
    (tmp_path / "run-2" / "secret").write_text("secret")
    (tmp_path / "run" / "vocab").symlink_to("../run-2/secret")
    (tmp_path / "run" / "own").symlink_to("../run/x")
    (tmp_path / "run" / "x").touch()
    assert foreign.leads_out(tmp_path / "run" / "vocab") and not foreign.leads_out(tmp_path / "run" / "own")
    with pytest.raises(DataError, match=r"vocab: a link that leads out") as error:
        foreign.check(tmp_path / "run" / "vocab")
    assert "secret" not in str(error.value)
    foreign.check(tmp_path / "run" / "vocab", inside=False)
