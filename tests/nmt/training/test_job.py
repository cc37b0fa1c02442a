"""How many batches an update has, and how many updates an epoch."""

from collections.abc import Iterator

import pytest

from nmt.data.shares import WHOLE, Share
from nmt.training.config import TrainingConfig
from nmt.training.job import AnyBatch, Job, Progress
from nmt.training.parallel import Team


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
    job = Job.__new__(Job)
    job.config = TrainingConfig(accumulate=2, update_batches=given)
    job.progress, job.team, job.stream = Progress(update_batches=before), Team(0, processes), Seven()
    assert (job.update_batches, job.epoch_updates) == expected
