"""Configurations for texts of every kind: each is one that nmt-train accepts. Which preset a text gets.
The cost of training: the amount of work is exact if the sample is the text."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml

from nmt.data.batches import Batch, BatchStream, make_batch
from nmt.errors import ConfigError
from nmt.text.inspection import PairReport, inspect_pairs
from nmt.training import build, config_file
from nmt.training.config import RunConfig
from nmt.training.cost import FEWEST_MERGES, Cost, fewer_merges, measure, planned_epochs, silent, time_updates
from nmt.training.job import BatchSize, TrainingJob, TrainingProgress
from nmt.training.proposal import (
    ParallelTexts,
    by_size,
    choose_preset,
    preset_file,
    propose,
    yaml_string,
)

EN = ["The man sleeps in the house.", "A dog is in the car, and the man is not."] * 9
FR = ["L'homme dort dans la maison.", "Un chien est dans la voiture, et l'homme non."] * 9


def inspected(folder: Path, source: list[str], target: list[str]) -> PairReport:
    for name, lines in (("train.en", source), ("train.fr", target)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return inspect_pairs(str(folder / "train.en"), str(folder / "train.fr"))


def config_of(
    folder: Path, report: PairReport, languages: tuple[str, str] = ("en", "fr"), preset: str = ""
) -> RunConfig:
    """The proposal, as nmt-train reads it."""
    texts = ParallelTexts(("a b/train.en", "c.txt"), ("dev.en", "dev.txt"), languages)
    lines = list(propose(report, texts, str(folder / "run"), preset).lines())
    (folder / "config.yaml").write_text("\n".join(lines) + "\n")
    return config_file.load(str(folder / "config.yaml"))


def test_raw_text(tmp_path: Path) -> None:
    """What the preset has, and what was seen."""
    report = inspected(tmp_path, EN, FR)
    config = config_of(tmp_path, report)
    preset = config_file.from_mapping({"run": "x", "device": "auto"}, "small")
    assert config.training == preset.training and config.model == preset.model
    assert (config.data.source.language, config.data.target.language) == ("en", "fr")
    assert config.data.source.case == "truecase" and config.data.source.min_count == 1
    assert config.data.bpe_merges == 2000 and config.data.max_length == 60 and config.device == "auto"
    assert (config.data.train_source, config.data.dev_target) == ("a b/train.en", "dev.txt")
    text = (tmp_path / "config.yaml").read_text()
    assert "max_length: 60  # units; 99% of the lines have at most 11 words\n" in text
    assert "  train_source: 'a b/train.en'\n" in text


def test_tokenized_escaped_lower_cased_text(tmp_path: Path) -> None:
    source = [line.lower().replace(",", " ,").replace(".", " .") for line in EN]
    report = inspected(tmp_path, [line.replace("is", "&apos;s") for line in source], FR)
    side = config_of(tmp_path, report).data.source
    assert not side.tokenize and not side.normalize and side.escaped and side.case == "keep"
    assert config_of(tmp_path, report).data.target.tokenize


def test_words_are_cut(tmp_path: Path) -> None:
    words = "abcdefghijklmnopqrstuvwxyz"
    source = [f"the {one}{two}{two}x of {two}{one}y" for one in words for two in words[:9]]
    report = inspected(tmp_path, source, source)
    assert config_of(tmp_path, report).data.bpe_merges == 2000
    assert "  # 50.0% of the running words occur once;" in (tmp_path / "config.yaml").read_text()


def test_a_time_limit(tmp_path: Path) -> None:
    """The rate falls to 0 at its end, whatever the preset's schedule; a warm-up is a part of it."""
    report = inspected(tmp_path, EN, FR)
    texts = ParallelTexts(("train.en", "train.fr"), ("dev.en", "dev.fr"), ("en", "fr"))
    for preset, warmup in (("small", 0), ("transformer-small", 20), ("large", 20)):
        proposal = propose(report, texts, str(tmp_path / "run"), preset, 7.5)
        assert proposal.fit_warmup(2000 if warmup else 0, 100) == bool(warmup)
        (tmp_path / "config.yaml").write_text("\n".join(proposal.lines()) + "\n")
        training = config_file.load(str(tmp_path / "config.yaml")).training
        assert (training.schedule, training.max_minutes, training.warmup) == ("linear", 7.5, warmup)
    assert not propose(report, texts, "run", "small", 7.5).fit_warmup(20, 100)
    assert propose(report, texts, "run", "small", 7.5).fit_warmup(21, 100)


def test_text_that_is_cut_already(tmp_path: Path) -> None:
    report = inspected(tmp_path, [line.replace("ee", "e@@ e") for line in EN], FR)
    side = config_of(tmp_path, report).data.source
    assert side.subword == "none" and not side.tokenize and side.case == "keep"


def test_other_scripts_and_languages_that_nobody_knows(tmp_path: Path) -> None:
    report = inspected(tmp_path, ["猫が魚を食べる。", "犬が猫を見る。"] * 9, ["xylo quux", "zorp mug"] * 9)
    config = config_of(tmp_path, report, ("ja", ""))
    assert config.data.source.subword == "auto" and config.data.source.case == "keep"
    assert config.data.target.subword == "unigram" and not config.data.target.language
    russian = inspected(tmp_path, EN, ["Это дом и не кот."] * 18)
    config = config_of(tmp_path, russian, ("en", "ru"), "large")
    assert config.data.bpe_merges == 2000 and not config.data.bpe_joint
    assert config.training.max_epochs == 20 and config.training.patience == 10
    config = config_of(tmp_path, russian, ("en", "ru"), "transformer-small")
    assert config.data.shared_vocabulary and config.model is not None and config.model.type == "transformer"


def test_the_preset_for_pairs() -> None:
    assert [choose_preset(pairs) for pairs in (30, 199_999, 200_000)] == ["small", "small", "large"]
    assert preset_file("small").exists() and preset_file("large").exists()
    with pytest.raises(ConfigError, match="--preset tiny: unknown, expected one of large, small"):
        preset_file("tiny")


def test_sizes_and_strings() -> None:
    assert [by_size({0: 1, 10: 2, 20: 3}, pairs) for pairs in (0, 9, 10, 19, 99)] == [1, 1, 2, 2, 3]
    assert [yaml_string(text) for text in ("a/b.en", "a b", "it's", "-x", "#x")] == [
        "a/b.en", "'a b'", "'it''s'", "'-x'", "'#x'",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["no", "on", "2024.10", "010", "1_000", "null", "runs/no", "."])
def test_a_string_stays_what_it_is(text: str) -> None:
    """Norwegian is not false, and a run of October no number."""
    assert yaml.safe_load(yaml_string(text)) == text


# ---- cost of training --------------------------------------------------------------------------------------

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
    build.set_up_translator(job)
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
    build.set_up_translator(job)
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
    monkeypatch.setattr("nmt.training.loop.update", update)
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
