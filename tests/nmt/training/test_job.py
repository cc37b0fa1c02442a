"""How many batches an update has, and how many updates an epoch."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from nmt.data.batches import WHOLE, Share
from nmt.training.config import TrainingConfig
from nmt.training.job import (
    AnyBatch,
    TrainingJob,
    TrainingProgress,
    last_update,
    limit_reached,
    seconds_left,
    time_used,
)
from nmt.training.parallel import Team

# ---- test job ----------------------------------------------------------------------------------------------


class Seven:
    """A stream that only counts."""

    def count(self, epoch: int) -> int:
        return 7

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[AnyBatch]:
        yield from ()


@pytest.mark.parametrize(
    ("given", "before", "processes", "expected"),
    [(0, 0, 1, (2, 4)), (0, 0, 3, (6, 2)), (0, 4, 3, (4, 2)), (5, 4, 3, (5, 2)), (1, 0, 2, (1, 7))],
)
def test_batches_of_an_update(given: int, before: int, processes: int, expected: tuple[int, int]) -> None:
    """As configured; else as before; else `accumulate` of each process."""
    job = TrainingJob.__new__(TrainingJob)
    job.config = TrainingConfig(accumulate=2, update_batches=given)
    job.progress, job.team, job.stream = TrainingProgress(update_batches=before), Team(0, processes), Seven()
    assert (job.update_batches, job.epoch_updates) == expected


# ---- test limits -------------------------------------------------------------------------------------------
# When a training ends, and how long it still takes.


def job(
    batches: int = 7, progress: TrainingProgress | None = None, processes: int = 1, **options: object
) -> TrainingJob:
    """A job of epochs of so many batches, without a model."""
    return TrainingJob(
        config=TrainingConfig(**{"validate_every": 0, **options}),  # type: ignore[arg-type]
        stream=SimpleNamespace(count=lambda epoch: batches),
        progress=progress or TrainingProgress(),
        team=Team(0, processes),
        **dict.fromkeys(("directory", "model", "optimizer", "validate", "stop")),  # type: ignore[arg-type]
    )


def test_limits() -> None:
    config = TrainingConfig(max_steps=10, max_epochs=2, max_minutes=1.0, patience=3)
    assert limit_reached(config, TrainingProgress(step=9, epoch=1, seconds=59.9, bad=2)) == ""
    assert limit_reached(config, TrainingProgress(step=10)).startswith("max_steps")
    assert limit_reached(config, TrainingProgress(epoch=2)).startswith("max_epochs")
    assert limit_reached(config, TrainingProgress(seconds=60)).startswith("max_minutes")
    assert limit_reached(config, TrainingProgress(bad=3)).startswith("patience")
    assert limit_reached(TrainingConfig(patience=0), TrainingProgress(step=10**9, bad=10**9)) == ""


def test_the_minutes_hold_the_last_validation() -> None:
    config = TrainingConfig(max_minutes=1.0)
    progress = TrainingProgress(seconds=44.9, validation_seconds=15.0)
    assert not limit_reached(config, progress) and time_used(config, progress) == pytest.approx(44.9 / 45)
    progress.seconds = 45
    assert limit_reached(config, progress) and time_used(config, progress) == 1
    assert time_used(config, TrainingProgress(validation_seconds=99)) == 1
    assert time_used(TrainingConfig(max_epochs=1), progress) == 0


def test_the_last_update_is_that_of_the_nearest_limit() -> None:
    """Updates of an epoch are its batches, a few at a time; the last of an epoch may be of fewer."""
    assert last_update(job(max_epochs=3, accumulate=2)) == 3 * 4
    assert last_update(job(max_epochs=3, accumulate=2, processes=2)) == 3 * 2
    assert last_update(job(max_epochs=3, max_steps=5)) == 5
    assert last_update(job(max_epochs=3, max_steps=50)) == 21
    assert last_update(job(max_steps=50)) == 50
    assert last_update(job(max_minutes=1)) == 0


def test_the_time_left_holds_updates_and_validations() -> None:
    """Half a second an update, ten a validation; each epoch of seven updates has one."""
    progress = TrainingProgress(step=7, validation_seconds=10.0, seconds=30.0)
    assert seconds_left(job(progress=progress, max_epochs=3), 0.5) == 14 * 0.5 + 2 * 10
    assert seconds_left(job(progress=progress, max_epochs=3, validate_every=14), 0.5) == 14 * 0.5 + 10
    assert seconds_left(job(progress=progress, max_steps=7), 0.5) == 0
    assert seconds_left(job(progress=progress, max_epochs=9, max_minutes=1), 0.5) == 30
    assert seconds_left(job(progress=progress, max_epochs=3, max_minutes=9), 0.5) == 27
    assert seconds_left(job(progress=progress), 0.5) is None
