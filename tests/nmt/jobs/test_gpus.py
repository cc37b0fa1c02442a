"""GPUs among workers, without any."""

from pathlib import Path

import pytest

from nmt.jobs import gpus


def test_one_each_then_they_share(tmp_path: Path) -> None:
    claims = [gpus.claim(tmp_path, ["0", "1"]) for _ in range(3)]
    assert [number for number, _ in claims[:2]] == [0, 1] and claims[2][0] in (0, 1) and claims[2][1] is None
    lock = claims[0][1]
    assert lock
    lock.release()  # as the end of its process does
    assert gpus.claim(tmp_path, ["0", "1"])[0] == 0


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
