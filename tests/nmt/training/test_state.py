"""A saved training is restored exactly; weights that are not numbers are never saved; logs, clock."""

import errno
import logging
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt.errors import CheckpointError, UserError
from nmt.io import manifest
from nmt.runs import checkpoint
from nmt.training.job import TrainingJob
from nmt.training.loop import validate_and_save
from nmt.training.optimizers import ema_decay
from nmt.training.state import (
    RECENT,
    Board,
    Clock,
    LogTable,
    TrainingLogs,
    check_finite,
    load_state,
    restore,
    save,
)
from nmt.training.validation import DevScore
from tests.nmt.training.jobs import NO_LOGS, equal, make_job, tiny_model, train_updates, weights


def adam(run: Path = Path(), seed: int = 0, tied: str = "none", **training: Any) -> TrainingJob:
    """A job with dropout, whose optimizer has moments."""
    model = tiny_model(seed, maxout=4, dropout=0.5, attention=3, encoder="birnn", tied=tied)
    return make_job(run, model, optimizer="adam", learning_rate=0.1, metric="cost", **training)


def test_a_full_disk_is_reported_once(tmp_path: Path) -> None:
    """The line that could not be written is still in the buffer of the file when it is closed."""
    table = LogTable(tmp_path / "a.tsv", ["step"], None)
    table.file.close()
    table.file = open("/dev/full", "w", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.tsv: cannot write"):
        table.add({"step": "1"})
    table.close()
    assert table.file.closed


def test_a_full_disk_is_reported_with_the_file_that_did_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a log is forced to the disk for a save, and as TensorBoard writes, which closes the logs all the
    same."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    table, board = LogTable(tmp_path / "a.tsv", ["step"], None), Board(tmp_path / "curves", True, 0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"a\.tsv: cannot write: No space left"):
        table.size()
    monkeypatch.setattr(board, "writer", SimpleNamespace(add_scalar=full, close=full))
    with pytest.raises(UserError, match="curves: cannot write: No space left"):
        board.add("train", 1, {"cost": 1.0})
    with pytest.raises(UserError, match="curves: cannot write: No space left"):
        TrainingLogs((table,), board, Clock(0)).close()
    assert table.file.closed


@pytest.mark.parametrize("ema", [0, 0.9])
def test_a_restored_training_continues_bit_by_bit(ema: float, tmp_path: Path) -> None:
    """Weights and their average, moments of the optimizer, random numbers of the dropout: after 3 + 3 updates
    with another job between as after 6."""
    whole = adam(tmp_path, ema=ema)
    train_updates(whole, 3)
    save(whole, NO_LOGS)
    train_updates(whole, 3)
    parts = adam(tmp_path, seed=9, ema=ema)
    state = load_state(tmp_path)
    assert state is not None and ("raw" in state) == bool(ema)
    restore(parts, state)
    assert parts.progress.step == 3 and parts.log_sizes == (0, 0)
    train_updates(parts, 3)
    assert equal(weights(whole), weights(parts))
    if ema:
        assert whole.average and parts.average and equal(whole.average.mean, parts.average.mean)


def test_saved_and_validated_is_the_average_and_training_does_not_notice(tmp_path: Path) -> None:
    """The weights after each update are those of a training without an average, also after a validation."""
    plain, averaged = adam(tied="all"), adam(tmp_path, tied="all", ema=0.6)
    seen: list[list[torch.Tensor]] = []

    def validate() -> DevScore:
        seen.append(weights(averaged))
        return DevScore(1.0)

    averaged.validate = validate
    torch.manual_seed(1)  # of dropout
    raw = train_updates(plain, 4)
    torch.manual_seed(1)
    found = train_updates(averaged, 3)
    validate_and_save(averaged, TrainingLogs(NO_LOGS, Board(tmp_path, False, 0), Clock(0)))
    found += train_updates(averaged, 1)
    assert all(equal(ours, theirs) for ours, theirs in zip(found, raw, strict=True))
    mean = raw[0]
    for step, now in enumerate(raw[1:3], 2):
        mean = [torch.lerp(old, new, 1 - ema_decay(step, 0.6)) for old, new in zip(mean, now, strict=True)]
    assert len(seen) == 1 and equal(seen[0], mean)
    averaged.model.load_state_dict(torch.load(tmp_path / "step-3.pt", weights_only=True))
    assert equal(weights(averaged), mean)


def test_nothing_is_restored_before_the_first_save_nor_from_foreign_files(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    job = make_job(tmp_path)
    save(job, NO_LOGS)
    state = load_state(tmp_path)
    assert state is not None
    state["progress"]["steps"] = 5
    with pytest.raises(CheckpointError, match=r"training\.pt: does not fit this configuration"):
        restore(job, state)
    checkpoint.save_tensors({"progress": {}}, tmp_path / "training.pt")
    manifest.write(tmp_path, ["checkpoints.json", "training.pt"])
    with pytest.raises(CheckpointError, match="not a training state"):
        load_state(tmp_path)


def test_a_training_goes_on_with_fewer_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state holds the random numbers of all GPUs of its machine."""
    job = make_job(tmp_path)
    save(job, NO_LOGS)
    state = load_state(tmp_path)
    assert state is not None
    state["random_cuda"] = [torch.tensor([gpu], dtype=torch.uint8) for gpu in range(3)]
    numbers: dict[int, int] = {}
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.set_rng_state", lambda new, gpu: numbers.update({gpu: int(new)}))
    restore(job, state)
    assert numbers == {0: 0, 1: 1}


def test_older_weights_go_and_the_best_stay(tmp_path: Path) -> None:
    job = make_job(tmp_path, keep=2)
    for job.progress.step in (1, 2, 3, 4):
        job.progress.best_step = min(2, job.progress.step)
        save(job, NO_LOGS)
    assert sorted(path.name for path in tmp_path.glob("step-*.pt")) == ["step-2.pt", "step-3.pt", "step-4.pt"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers_are_never_saved(value: float, tmp_path: Path) -> None:
    job = make_job(tmp_path)
    save(job, NO_LOGS)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "step-0.pt" in before
    with torch.no_grad():
        next(job.model.parameters())[0] = value
    job.progress.step = 1
    with pytest.raises(UserError, match="weights are not finite numbers at step 1"):
        save(job, NO_LOGS)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_weights_whose_sum_is_too_large_are_numbers_still() -> None:
    job = make_job()
    with torch.no_grad():
        for parameter in job.model.parameters():
            parameter.fill_(3e38)
    check_finite(job)


# ---- logs --------------------------------------------------------------------------------------------------


def test_the_rate_after_a_resume_leaves_out_earlier_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """900 of 1,000 words since the last line were read by an earlier start: 100 in 10 seconds; then 500 in
    5."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock = Clock(earlier_seconds=40.0, words=900)
    now[0] = 110.0
    assert clock.rate(1000) == 10 and clock.seconds() == 50
    now[0] = 115.0
    assert clock.rate(500) == 100


def test_the_pace_is_that_of_the_last_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validations are left out; a slow start is forgotten."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock = Clock(earlier_seconds=40.0)
    for seconds in (3.0, 1.0):
        now[0] += seconds
        clock.tick()
    assert clock.pace == 2.0
    now[0] += 50
    clock.leave_out(50)
    now[0] += 2
    clock.tick()
    assert clock.pace == 2.0
    for _ in range(10 * RECENT):
        now[0] += 1
        clock.tick()
    assert clock.pace == pytest.approx(1.0, abs=0.01)


def test_a_log_that_is_shorter_than_it_was_is_not_filled_with_zeros(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("nmt").propagate = True
    (tmp_path / "train.tsv").write_text("step\n1\n2\n")
    LogTable(tmp_path / "train.tsv", ["step"], 7).file.close()
    assert (tmp_path / "train.tsv").read_text() == "step\n1\n" and not caplog.records
    LogTable(tmp_path / "train.tsv", ["step"], 99).file.close()
    assert (
        tmp_path / "train.tsv"
    ).read_text() == "step\n1\n" and "7 bytes, but 99 when it was saved" in caplog.text
    (tmp_path / "train.tsv").unlink()
    LogTable(tmp_path / "train.tsv", ["step"], 99).file.close()
    assert (tmp_path / "train.tsv").read_text() == "step\n"
