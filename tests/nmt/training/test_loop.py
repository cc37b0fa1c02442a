"""One update of the training loop, its limits, and what a validation changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.data.batches import make_batch
from nmt.models.config import RNNConfig
from nmt.models.rnn.translator import Translator
from nmt.training.config import TrainingConfig
from nmt.training.job import AnyBatch, Job, Progress
from nmt.training.loop import judge, limit_reached, update
from nmt.training.optimizers import make_optimizer, rate_of


def test_limits() -> None:
    config = TrainingConfig(max_steps=10, max_epochs=2, max_minutes=1.0, patience=3)
    assert limit_reached(config, Progress(step=9, epoch=1, seconds=59.9, bad=2)) == ""
    assert limit_reached(config, Progress(step=10)).startswith("max_steps")
    assert limit_reached(config, Progress(epoch=2)).startswith("max_epochs")
    assert limit_reached(config, Progress(seconds=60)).startswith("max_minutes")
    assert limit_reached(config, Progress(bad=3)).startswith("patience")
    assert limit_reached(TrainingConfig(patience=0), Progress(step=10**9, bad=10**9)) == ""


class NoBatches:
    """A stream for tests that bring their own batches."""

    def __len__(self) -> int:
        return 0

    def batches(self, epoch: int, start: int = 0) -> Iterator[AnyBatch]:
        yield from ()


def job(model: Translator, directory: Path = Path(), **options: object) -> Job:
    config = TrainingConfig(optimizer="sgd", learning_rate=1.0, clip=0, **options)  # type: ignore[arg-type]
    return Job(
        directory=directory,
        config=config,
        model=model,
        optimizer=make_optimizer("sgd", model.parameters(), 1.0, 0, 0),
        stream=NoBatches(),
        validate=None,
        stop=lambda: False,
    )


@pytest.mark.parametrize("cost", ["sentence", "word", "sum"])
def test_accumulated_batches_are_one_batch(cost: str) -> None:
    """Two batches of unlike size in one update move the weights as their union does."""
    pairs = [([3, 4], [3]), ([5], [4, 5, 6, 3]), ([6, 3], [3, 4])]
    results = []
    for cuts in ([pairs], [pairs[:1], pairs[1:]]):
        torch.manual_seed(0)
        model = Translator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5), 7, 7).double()
        words = model.decoder.output.words
        mean = (
            model.loss(make_batch(*zip(*pairs, strict=True)))
            / {"sentence": 3, "word": 2 + 5 + 3, "sum": 1}[cost]
        )
        expected = words.detach() - torch.autograd.grad(mean, words)[0]
        total, norm = update(job(model, cost=cost), [make_batch(*zip(*cut, strict=True)) for cut in cuts])
        assert torch.allclose(words, expected, atol=1e-12)
        results.append((total, norm, words.detach().clone()))
    assert results[0][:2] == pytest.approx(results[1][:2], abs=1e-10)
    assert torch.allclose(results[0][2], results[1][2], atol=1e-12)


def test_the_rate_of_an_update_follows_schedule_and_decay() -> None:
    torch.manual_seed(0)
    model = Translator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7)
    work = job(model, warmup=4, schedule="inverse_sqrt")
    work.progress.decayed = 0.5
    batch, rates = make_batch([[3]], [[4]]), []
    for work.progress.step in (0, 1, 3, 15):
        update(work, [batch])
        rates.append(rate_of(work.optimizer))
    assert rates == [0.125, 0.25, 0.5, 0.25]  # half of 1/4, 2/4, 1 and √(4/16)


def test_the_best_validation_is_noted_and_a_plateau_lowers_the_rate() -> None:
    config, progress = TrainingConfig(decay=0.5, decay_patience=2), Progress()
    found = []
    for progress.step, value in enumerate([1.0, 2.0, 2.0, 1.5, 1.9, 2.5], 1):
        found.append((judge(config, progress, value), progress.best_step, progress.bad, progress.decayed))
    assert found == [
        (True, 1, 0, 1.0), (True, 2, 0, 1.0), (False, 2, 1, 1.0), (False, 2, 2, 0.5), (False, 2, 3, 0.5),
        (True, 6, 0, 0.5),
    ]  # fmt: skip
