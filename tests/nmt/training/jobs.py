"""A training job without files, for tests of the loop and of what it saves."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from nmt.data.batches import ALL_BATCHES, Batch, Share, make_batch
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.training.config import RunConfig, TrainingConfig
from nmt.training.job import TrainingJob
from nmt.training.loop import update
from nmt.training.parallel import Team
from nmt.training.state import LogTable

PAIRS = make_batch([[3, 4], [5]], [[4], [6, 3]])


class NullLogTable(LogTable):
    """A log that discards everything."""

    def __init__(self) -> None:
        pass

    def add(self, values: Mapping[str, str]) -> None:
        pass

    def size(self) -> int:
        return 0

    def close(self) -> None:
        pass


NO_LOGS = (NullLogTable(), NullLogTable())


class Batches:
    """A stream of the same batches in each epoch."""

    def __init__(self, content: Sequence[Batch]) -> None:
        self.content = content

    def count(self, epoch: int) -> int:
        return len(self.content)

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[Batch]:
        yield from self.content[start:]


def tiny_model(seed: int = 0, **options: object) -> RNNTranslator:
    torch.manual_seed(seed)
    sizes = {"embedding": 4, "hidden": 5, "maxout": 3, **options}
    return RNNTranslator(RNNConfig(**sizes), 7, 7)  # type: ignore[arg-type]


def make_job(
    run: Path = Path(),
    model: RNNTranslator | None = None,
    batches: Sequence[Batch] = (PAIRS,),
    team: Team | None = None,
    **training: object,
) -> TrainingJob:
    """A job that trains with SGD; `training`: settings of the section of that name."""
    settings = TrainingConfig(**{"optimizer": "sgd", "tensorboard": False, **training})  # type: ignore[arg-type]
    job = TrainingJob(RunConfig(run=str(run), training=settings), team=team or Team())
    job.set_up(model or tiny_model(), Batches(batches))
    return job


def weights(job: TrainingJob) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in job.model.parameters()]


def train_updates(job: TrainingJob, updates: int) -> list[list[torch.Tensor]]:
    """Train on the batches of the first epoch in each update; returns the weights after each."""
    job.model.train()
    after = []
    for _ in range(updates):
        update(job, list(job.stream.batches(0)))
        job.progress.step += 1
        after.append(weights(job))
    return after


def equal(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
