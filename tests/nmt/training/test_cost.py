"""What a training will cost: the amount of work is exact where the sample is the text; the seconds are those
of the clock."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nmt.data.batches import Batch, BatchStream, make_batch
from nmt.text.inspection import inspect_pairs
from nmt.training import build, config_file
from nmt.training.config import RunConfig
from nmt.training.cost import FEWEST_MERGES, Cost, fewer_merges, measure, planned_epochs, silent, time_updates
from nmt.training.job import BatchSize, TrainingJob, TrainingProgress

LINES = [f"{'a b c d e f g '[: 2 + 2 * (number % 7)]}end" for number in range(90)]


def write_texts(folder: Path) -> dict[str, str]:
    for name in ("train.en", "train.fr"):
        (folder / name).write_text("\n".join(LINES) + "\n")
    return {"train_source": str(folder / "train.en"), "train_target": str(folder / "train.fr")}


def small_config(folder: Path, **training: object) -> RunConfig:
    return config_file.from_mapping(
        {
            "run": str(folder / "run"),
            "matmul": "mkl",
            "data": write_texts(folder),
            "model": {"embedding": 4, "hidden": 4, "maxout": 4},
            "training": {"max_epochs": 4, "batch_size": 8, "tensorboard": False, **training},
        }
    )


@pytest.mark.ci
@pytest.mark.parametrize("training", [{}, {"accumulate": 2, "max_steps": 20}, {"batch_tokens": 64}])
def test_the_work_that_is_planned(training: dict[str, object], tmp_path: Path) -> None:
    config = small_config(tmp_path, **training)
    report = inspect_pairs(config.data.train_source, config.data.train_target)
    (tmp_path / "sample").mkdir()
    found = measure(config, report.sides, tmp_path / "sample", seconds=0.05)
    job = TrainingJob(config)
    build.translator(job)
    assert isinstance(job.stream, BatchStream)
    assert found.parameters == sum(one.numel() for one in job.model.parameters())
    updates = job.stream.count(0) / config.training.accumulate
    epochs = min(4, 20 / updates) if "max_steps" in training else 4
    assert found.planned_epochs == epochs and found.planned_updates == round(epochs * updates)
    units = sum(batch.target_tokens for batch in job.stream.batches(0))
    assert found.epoch_units == pytest.approx(units) and found.validation_seconds == 0
    assert found.updates >= 2 and found.seconds > 0 and found.units > found.updates
    assert config.data.train_source == str(tmp_path / "train.en"), "the configuration stays as it was"


@pytest.mark.ci
def test_a_sample_stands_for_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the pairs: about the same plan, and the vocabulary of all."""
    config = small_config(tmp_path)
    report = inspect_pairs(config.data.train_source, config.data.train_target)
    (tmp_path / "sample").mkdir()
    whole = measure(config, report.sides, tmp_path / "sample", seconds=0)
    monkeypatch.setattr("nmt.training.cost.SAMPLE", 30)
    (tmp_path / "third").mkdir()
    third = measure(config, report.sides, tmp_path / "third", seconds=0)
    assert third.epoch_units == pytest.approx(whole.epoch_units, rel=0.1)
    assert third.parameters == whole.parameters
    monkeypatch.setattr("nmt.training.cost.WHOLE_TEXT", 30)
    (tmp_path / "estimate").mkdir()
    estimate = measure(config, report.sides, tmp_path / "estimate", seconds=0)
    assert estimate.parameters == pytest.approx(whole.parameters, rel=0.1)


@pytest.mark.ci
def test_units_are_counted_as_training_counts_them(tmp_path: Path) -> None:
    """Of a small text there are fewer than merges; and a validation takes time."""
    config = small_config(tmp_path)
    config.data.bpe_merges, config.training.bleu_tokenizer = 5000, "13a"
    config.data.dev_source, config.data.dev_target = config.data.train_source, config.data.train_target
    report = inspect_pairs(config.data.train_source, config.data.train_target)
    (tmp_path / "sample").mkdir()
    cost = measure(config, report.sides, tmp_path / "sample", seconds=0)
    job = TrainingJob(config)
    build.translator(job)
    assert cost.parameters == sum(one.numel() for one in job.model.parameters())
    assert cost.validation_seconds > 0


def test_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the first update, which takes longest; then as long as it is asked for, and two at least."""
    now = [0.0]

    def update(job: TrainingJob, group: list[Batch]) -> tuple[float, float]:
        now[0] += 1 if job.progress.step else 100
        return 0.0, 0.0

    batch = make_batch([[3]] * 4, [[4]] * 4)
    stream = SimpleNamespace(batches=lambda epoch: [batch])
    monkeypatch.setattr("nmt.training.cost.update", update)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for seconds, updates in ((0, 2), (5.5, 6)):
        model = SimpleNamespace(train=lambda: None, device=torch.device("cpu"))
        job = SimpleNamespace(
            update_batches=1, model=model, stream=stream, progress=TrainingProgress(), largest=BatchSize()
        )
        now[0] = 0.0
        assert time_updates(job, seconds) == (updates, 8 * updates, updates)  # type: ignore[arg-type]


def test_seconds() -> None:
    """4 ms a unit: an epoch takes 6 s and a validation of 2 s."""
    cost = Cost(
        "cpu", 1, updates=3, units=500, seconds=2.0, validation_seconds=2.0, epoch_updates=9,
        epoch_units=1500, validate_every=0, epochs=2,
    )  # fmt: skip
    assert (cost.per_thousand, cost.planned_seconds) == (4.0, 2 * (6 + 2))
    assert (cost.planned_epochs, cost.planned_updates, cost.planned_validations) == (2, 18, 2)
    often = replace(cost, validate_every=3)
    assert (often.planned_validations, often.planned_seconds) == (6, 2 * (6 + 3 * 2))
    assert replace(cost, minutes=60).planned_epochs == 2
    timed = replace(cost, epochs=0, minutes=0.5)  # 28 s of epochs of 8 s, and the last validation
    assert timed.planned_epochs == 3.5 and timed.planned_validations == 4
    assert timed.planned_seconds <= 30
    assert replace(timed, minutes=0.01).planned_epochs == 0


def test_epochs_that_are_planned(tmp_path: Path) -> None:
    assert planned_epochs(small_config(tmp_path), 10) == 4
    assert planned_epochs(small_config(tmp_path, max_steps=20), 10) == 2
    assert planned_epochs(small_config(tmp_path, max_epochs=0), 10) == 0


def test_merges_of_a_sample(tmp_path: Path) -> None:
    """As many for each word of the sample as for each word of the text."""
    paths = write_texts(tmp_path)
    report = inspect_pairs(paths["train_source"], paths["train_target"])
    assert len(report.source.words) == 8
    assert fewer_merges(0, report.sides, [("a", "b")]) == 0
    assert fewer_merges(4000, report.sides, [("a b", "c"), ("a", "d")]) == 1000
    assert fewer_merges(400, report.sides, [("a", "b")]) == FEWEST_MERGES


def test_silence_ends() -> None:
    with pytest.raises(ValueError), silent():
        assert not logging.getLogger("nmt").isEnabledFor(logging.WARNING)
        raise ValueError
    assert logging.root.manager.disable < logging.WARNING
