"""The job folder of scoring: truncated, damaged and lost records, and jobs with other settings."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import phrase_table
from nmt.work.store import lock_job, recorded_settings
from smt_bridge.jobs import Scores, ScoringJob, is_lost, lost_chunks_remedy, lost_scores, open_job
from smt_bridge.tables.score import score_chunks

BLOCKS = [np.array([[1.5, -2.0], [0.0, 3.0]]), np.array([[4.0, 5.0], [6.0, 7.0]]), np.array([[8.0, 9.0]])]


def filled(folder: Path) -> ScoringJob:
    job = ScoringJob(folder, 2)
    for block in BLOCKS:
        job.add(block)
    return job


def same(found: list[NDArray[np.float64]], expected: list[NDArray[np.float64]]) -> bool:
    return len(found) == len(expected) and all((a == b).all() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("keep", [0, 5, 8, 20, 39])
def test_a_torn_record_is_cut_off_and_written_over(tmp_path: Path, keep: int) -> None:
    assert same(list(filled(tmp_path).finished()), BLOCKS) and ScoringJob(tmp_path, 2).count() == 3
    place = tmp_path / "scores"
    whole = place.read_bytes()
    place.write_bytes(whole[:40] + whole[40:80][: keep // 2] if keep > 8 else whole[: 40 + keep])
    job = ScoringJob(tmp_path, 2)
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
    job = ScoringJob(tmp_path, 2)
    assert same(list(job.finished()), BLOCKS[:1])
    job.add(BLOCKS[0])
    # what followed the damage is gone
    assert same(list(ScoringJob(tmp_path, 2).finished()), [BLOCKS[0], BLOCKS[0]])


def test_a_job_goes_on_with_its_own_settings_only(tmp_path: Path) -> None:
    output = str(tmp_path / "o")
    open_job(output, {"shard": (1, 2), "features": ["x"]}, 1, resume=False).add(np.ones((3, 1)))
    recorded = json.loads((tmp_path / "o.job" / "job.json").read_text())
    assert recorded == recorded_settings(output) == {"shard": [1, 2], "features": ["x"]}
    with pytest.raises(ConfigError, match="--resume continues it"):
        open_job(output, {"shard": (1, 2), "features": ["x"]}, 1, resume=False)
    with pytest.raises(ConfigError, match=r"other settings \(features\)"):
        open_job(output, {"shard": (1, 2), "features": ["y"]}, 1, resume=True)
    assert open_job(output, {"shard": (1, 2), "features": ["x"]}, 1, resume=True).count() == 1


@pytest.mark.parametrize("text", ["{", "", "[1]", "7", '"x"', "[" * 100_000])
def test_damaged_settings(text: str, tmp_path: Path) -> None:
    (tmp_path / "o.job").mkdir()
    (tmp_path / "o.job" / "job.json").write_text(text)
    (tmp_path / "o.job" / "scores").write_text("scores")
    with pytest.raises(DataError, match=r"job\.json: damaged; remove"):
        open_job(str(tmp_path / "o"), {}, 1, resume=True)
    with pytest.raises(DataError, match="damaged"):
        recorded_settings(str(tmp_path / "o"))


@pytest.mark.parametrize("tail", [b"\xff\xff\xff\xff\0\0\0\0some", bytes(1000)])
def test_what_is_no_chunk(tail: bytes, tmp_path: Path) -> None:
    """A damaged length must not allocate memory; after a power failure a file may have its new size without
    the last bytes having been written."""
    filled(tmp_path)
    with open(tmp_path / "scores", "ab") as stream:
        stream.write(tail)
    assert same(list(ScoringJob(tmp_path, 2).finished()), BLOCKS)


def test_scores_of_another_input(tmp_path: Path) -> None:
    job = filled(tmp_path)
    pairs = [phrase_table.parse(b"a ||| %d ||| 1" % number, "t:1") for number in range(3)]
    for pieces in ([], [pairs]):
        with pytest.raises(DataError, match=r"scores: holds 2 scores where the input has \d rows; remove"):
            next(score_chunks(pieces, None, 1, job))  # type: ignore[arg-type]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """The second process is told which one is at work; an empty job folder is removed, one with results is
    kept."""
    output = str(tmp_path / "o")
    with lock_job(output, "smt-score-table"):
        with pytest.raises(UserError, match=r"o\.job: in use by smt-score-table, process \d+ on"):
            lock_job(output, "smt-rescore").__enter__()
        assert (tmp_path / "o.job").exists()
    assert not (tmp_path / "o.job").exists()
    with lock_job(output, "smt-score-table"):
        open_job(output, {}, 1, resume=False).add(np.ones((1, 1)))
    assert (tmp_path / "o.job" / "job.json").exists()
    with lock_job(output, "smt-score-table"):
        open_job(output, {}, 1, resume=True).remove()
        assert not (tmp_path / "o.job").exists()


def test_lost_chunks_are_computed_in_their_place(tmp_path: Path) -> None:
    """The second and the fourth of five chunks are lost; the fourth is lost again."""
    blocks = [*BLOCKS, BLOCKS[1] + 1, BLOCKS[2] + 1]
    job = ScoringJob(tmp_path, 2)
    for number, block in enumerate(blocks):
        job.add(lost_scores(*block.shape) if number in (1, 3) else block)
    asked: list[int] = []

    def compute(chunks: Iterator[int]) -> Iterator[tuple[int, Scores]]:
        for number in chunks:
            asked.append(number)
            yield number, blocks[number] if number == 1 else lost_scores(*blocks[number].shape)

    read = iter(range(100))
    job.recompute_lost(read, compute)
    assert asked == [1, 3] and next(read) == 4  # what follows the last lost chunk is not read
    found = list(ScoringJob(tmp_path, 2).finished())
    assert same(found[:3], blocks[:3]) and is_lost(found[3]) and same(found[4:], blocks[4:])
    with pytest.raises(DataError, match=f"holds {len(blocks[3])} scores where the input has 1 rows"):
        job.recompute_lost(
            iter(range(100)), lambda chunks: ((number, blocks[number][:1]) for number in chunks)
        )
    job.recompute_lost(iter(range(100)), lambda chunks: ((number, blocks[number]) for number in chunks))
    assert same(list(ScoringJob(tmp_path, 2).finished()), blocks)


def test_what_is_lost() -> None:
    assert is_lost(lost_scores(2, 3)) and not is_lost(lost_scores(2, 0))
    assert not is_lost(np.array([[np.nan, 1.0]]))


def test_what_to_do_about_lost_chunks(tmp_path: Path) -> None:
    assert "give files" in lost_chunks_remedy(None)
    assert f"kept in {tmp_path}: " in lost_chunks_remedy(ScoringJob(tmp_path, 1))
