"""A saved training is restored exactly; weights that are not numbers are never saved."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.data.batches import WHOLE, Batch, Share, make_batch
from nmt.errors import CheckpointError, UserError
from nmt.io import manifest
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.runs import checkpoint
from nmt.training.config import TrainingConfig
from nmt.training.job import TrainingJob
from nmt.training.loop import update
from nmt.training.optimizers import make_optimizer
from nmt.training.records import NullLogTable
from nmt.training.state import check_finite, load_state, restore, save

TABLES = (NullLogTable(), NullLogTable())


class OneBatch:
    """A stream of the same batch."""

    def count(self, epoch: int) -> int:
        return 1

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[Batch]:
        yield make_batch([[3, 4], [5]], [[4], [6, 3]])


def model(seed: int = 0) -> RNNTranslator:
    torch.manual_seed(seed)
    return RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3, dropout=0.5), 7, 7)


def job(model: RNNTranslator, directory: Path = Path()) -> TrainingJob:
    config = TrainingConfig(optimizer="adam", learning_rate=0.1, keep=2)
    optimizer = make_optimizer("adam", model.parameters(), 0.1, 0, 0)
    return TrainingJob(
        directory=directory,
        config=config,
        model=model,
        optimizer=optimizer,
        stream=OneBatch(),
        validate=None,
        stop=lambda: False,
    )


def go(work: TrainingJob, updates: int) -> None:
    work.model.train()
    for _ in range(updates):
        update(work, list(work.stream.batches(0)))
        work.progress.step += 1


def test_a_restored_training_continues_bit_by_bit(tmp_path: Path) -> None:
    """Weights, moments of the optimizer and random numbers of the dropout."""
    whole = job(model(), tmp_path)
    go(whole, 3)
    save(whole, TABLES)
    go(whole, 3)
    parts = job(model(seed=9), tmp_path)
    state = load_state(tmp_path)
    assert state is not None
    restore(parts, state)
    assert parts.progress.step == 3 and parts.log_sizes == (0, 0)
    go(parts, 3)
    for expected, found in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(expected, found)


def test_nothing_is_restored_before_the_first_save_nor_from_foreign_files(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    work = job(model(), tmp_path)
    save(work, TABLES)
    state = load_state(tmp_path)
    assert state is not None
    state["progress"]["steps"] = 5
    with pytest.raises(CheckpointError, match=r"training\.pt: does not fit this configuration"):
        restore(work, state)
    checkpoint.save_tensors({"progress": {}}, tmp_path / "training.pt")
    manifest.write(tmp_path, ["checkpoints.json", "training.pt"])
    with pytest.raises(CheckpointError, match="not a training state"):
        load_state(tmp_path)


def test_older_weights_go_and_the_best_stay(tmp_path: Path) -> None:
    work = job(model(), tmp_path)
    for work.progress.step in (1, 2, 3, 4):
        work.progress.best_step = min(2, work.progress.step)
        save(work, TABLES)
    assert sorted(path.name for path in tmp_path.glob("step-*.pt")) == ["step-2.pt", "step-3.pt", "step-4.pt"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers_are_never_saved(value: float, tmp_path: Path) -> None:
    work = job(model(), tmp_path)
    save(work, TABLES)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "step-0.pt" in before
    with torch.no_grad():
        next(work.model.parameters())[0] = value
    work.progress.step = 1
    with pytest.raises(UserError, match="weights are not finite numbers at step 1"):
        save(work, TABLES)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_weights_whose_sum_is_too_large_are_numbers_still() -> None:
    work = job(model())
    with torch.no_grad():
        for parameter in work.model.parameters():
            parameter.fill_(3e38)
    check_finite(work)
