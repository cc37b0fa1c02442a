import json
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError
from smt_bridge.job import Job, open_job, settings_of

BLOCKS = [np.array([[1.5, -2.0], [0.0, 3.0]]), np.array([[4.0, 5.0], [6.0, 7.0]]), np.zeros((0, 2))]


def filled(folder: Path) -> Job:
    job = Job(folder, 2)
    for block in BLOCKS:
        job.add(block)
    return job


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return len(found) == len(expected) and all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_what_is_added_is_read(tmp_path: Path) -> None:
    assert same(list(filled(tmp_path).finished()), BLOCKS) and Job(tmp_path, 2).count() == 3


@pytest.mark.parametrize("keep", [0, 5, 8, 20, 39])
def test_a_torn_record_is_cut_off_and_written_over(tmp_path: Path, keep: int) -> None:
    filled(tmp_path)
    place = tmp_path / "scores"
    whole = place.read_bytes()
    place.write_bytes(whole[:40] + whole[40:80][: keep // 2] if keep > 8 else whole[: 40 + keep])
    job = Job(tmp_path, 2)
    assert same(list(job.finished()), BLOCKS[:1])
    for block in BLOCKS[1:]:
        job.add(block)
    assert place.read_bytes() == whole


def test_a_damaged_record_ends_what_is_finished(tmp_path: Path) -> None:
    filled(tmp_path)
    place = tmp_path / "scores"
    data = bytearray(place.read_bytes())
    data[50] ^= 1  # inside the second block
    place.write_bytes(data)
    job = Job(tmp_path, 2)
    assert same(list(job.finished()), BLOCKS[:1])
    job.add(BLOCKS[0])
    assert same(list(Job(tmp_path, 2).finished()), [BLOCKS[0], BLOCKS[0]])  # what followed the damage is gone


def test_a_job_goes_on_with_its_own_settings_only(tmp_path: Path) -> None:
    output = str(tmp_path / "o")
    open_job(output, {"shard": (1, 2), "features": ["x"]}, 1, resume=False).add(np.ones((3, 1)))
    assert settings_of(output) == {"shard": [1, 2], "features": ["x"]}
    with pytest.raises(ConfigError, match="--resume goes on with it"):
        open_job(output, {"shard": (1, 2), "features": ["x"]}, 1, resume=False)
    with pytest.raises(ConfigError, match=r"other settings \(features\)"):
        open_job(output, {"shard": (1, 2), "features": ["y"]}, 1, resume=True)
    assert open_job(output, {"shard": (1, 2), "features": ["x"]}, 1, resume=True).count() == 1
    Path(f"{output}.job/job.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        open_job(output, {}, 1, resume=True)


def test_settings_are_plain_json(tmp_path: Path) -> None:
    open_job(str(tmp_path / "o"), {"a": 1}, 1, resume=True)
    assert json.loads((tmp_path / "o.job" / "job.json").read_text()) == {"a": 1}
