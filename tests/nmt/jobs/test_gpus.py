"""GPUs among workers, without any."""

from pathlib import Path

import pytest

from nmt.jobs import gpus


def test_one_each_then_they_share(tmp_path: Path) -> None:
    claims = [gpus.claim(tmp_path / "gpus", ["0", "1"]) for _ in range(3)]
    assert [number for number, _ in claims[:2]] == [0, 1] and claims[2][0] in (0, 1) and claims[2][1] is None
    lock = claims[0][1]
    assert lock
    lock.release()  # as the end of its process does
    assert gpus.claim(tmp_path / "gpus", ["0", "1"])[0] == 0


@pytest.mark.parametrize("planted", ["link", "writable", "file"])
def test_a_planted_folder_is_not_used(planted: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The temporary folder is everybody's: whoever made this name there could hold the locks, or have them
    opened elsewhere. The process shares, and nothing is written."""
    folder, elsewhere = tmp_path / "gpus", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if planted == "link":
        folder.symlink_to(elsewhere)
    elif planted == "file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    number, lock = gpus.claim(folder, ["0", "1"])
    assert number in (0, 1) and lock is None and "gpus: is not this user's alone" in caplog.text
    assert not any(elsewhere.iterdir()) and (folder.is_file() or not any(folder.iterdir()))


def test_a_lock_that_is_a_link_is_passed_over(tmp_path: Path) -> None:
    folder, precious = tmp_path / "gpus", tmp_path / "precious"
    folder.mkdir(mode=0o700)
    precious.write_text("text")
    (folder / "0.lock").symlink_to(precious)
    assert gpus.claim(folder, ["0", "1"])[0] == 1 and precious.read_text() == "text"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_hosts_that_hide_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number 0 of one worker is number 1 of another: they are told apart by their names."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    found = []
    for visible in ("2,3", "1,2", "3"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        gpus.own.cache_clear()
        number, lock = gpus.own(len(visible.split(",")))
        found.append((number, lock and Path(lock.lock_file).name))
        names = lock  # held until the next one has chosen
        assert names or visible
    gpus.own.cache_clear()
    assert [number for number, _ in found] == [0, 0, 0]
    assert [name for _, name in found] == ["2.lock", "1.lock", "3.lock"]
