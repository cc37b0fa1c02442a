"""How many batches an update has, whoever shares them."""

import logging

import pytest

from nmt.training.config import TrainingConfig
from nmt.training.job import TrainingJob, TrainingProgress
from nmt.training.parallel import Team
from nmt.training.sharing import record_shares


def settled(progress: TrainingProgress, size: int, rank: int = 0, **settings: int) -> TrainingProgress:
    """Of a job that stands there, with so many processes."""
    job = TrainingJob.__new__(TrainingJob)
    job.progress, job.team, job.config = progress, Team(rank, size), TrainingConfig(**settings)  # type: ignore[arg-type]
    record_shares(job)
    return job.progress


def test_updates_stay_as_they_were(caplog: pytest.LogCaptureFixture) -> None:
    """Of four processes two are left, then three, then one."""
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    progress = settled(TrainingProgress(), 4, accumulate=2)
    for size in (2, 3, 1):
        progress = settled(progress, size, accumulate=2)
        assert (progress.processes, progress.update_batches) == (size, 8)
    assert [record.getMessage() for record in caplog.records] == [
        "processes: 4; an update is of 8 batches",
        "processes: 2; an update is of 8 batches",
        "processes: 2, of an earlier start 4",
        "processes: 3; an update is of 8 batches",
        "processes: 3, of an earlier start 2",
        "processes: 1, of an earlier start 3",
    ]


def test_updates_of_a_given_size(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    progress = settled(TrainingProgress(), 1, update_batches=6, accumulate=2)
    assert progress.update_batches == 6, "instead of accumulate"
    assert settled(progress, 1, update_batches=8).update_batches == 8
    assert settled(progress, 1).update_batches == 8, "the last one that was given"
    assert [record.getMessage() for record in caplog.records] == ["an update is of 8 batches, before of 6"]


def test_idle_processes_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """A run of one process that four resume. The first tells; a run of an early version said nothing."""
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.WARNING, "nmt")
    settled(TrainingProgress(processes=1, update_batches=1), 4, rank=1)
    assert not caplog.records
    settled(TrainingProgress(processes=1, update_batches=1), 4)
    [warning] = [record.getMessage() for record in caplog.records]
    assert warning == (
        "training.update_batches: an update is of 1, so 3 of the 4 processes have nothing to do; 4 would be "
        "one for each, in larger updates"
    )
    assert settled(TrainingProgress(step=9), 2, accumulate=3).update_batches == 6
