"""What smt-train says a training will take, and what it refuses."""

import logging
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from smt_bridge import train_cost
from smt_bridge.config import TrainConfig
from smt_bridge.decoder.config import CompileConfig
from smt_bridge.extraction.config import PruneConfig
from smt_bridge.train_cost import TextSize
from smt_bridge.train_system import train

Usage = namedtuple("Usage", "free")


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    for name in ("source", "target"):
        (tmp_path / name).write_text("a b\nc\n" * 500)
    return TrainConfig(str(tmp_path / "source"), str(tmp_path / "target"))


# Sentence pairs, words of both sides and of the target, phrase pairs, bytes of the model, CPU seconds of
# alignment, tables and language model: measured on the generated corpus of recipes/wmt14 (docs/scale.md).
RUNS = [(50_000, 2_196_000, 1_083_000, 2_803_544, 119e6, 12.5, 54.9, 6.5)]


@pytest.mark.parametrize("run", RUNS)
def test_the_model_fits_the_runs(run: tuple[float, ...], config: TrainConfig) -> None:
    pairs, words, lm_words, *measured = run
    size = TextSize(int(pairs), int(words), int(lm_words))
    cost = train_cost.estimate(size, config, processors=1, workers=1)
    estimated = [cost.phrase_pairs, cost.model, cost.alignment, cost.extraction, cost.language_model]
    assert estimated == pytest.approx(measured, rel=0.1)


def test_operations_cost_time_and_disk(config: TrainConfig) -> None:
    """29,000 pairs of Multi30k: 9.6 CPU seconds and 21.9 MB more, measured."""
    size = TextSize(29_000, 787_424, 409_889)
    without, costs = (train_cost.estimate(size, replace(config, osm=order), 1, 1) for order in (0, 5))
    assert costs.language_model - without.language_model == pytest.approx(9.6, rel=0.1)
    assert costs.model - without.model == pytest.approx(21.9e6, rel=0.1)


# Sentence pairs, words of both sides, most bytes of the alignment's process: the same corpus.
PEAKS = [(50_000, 2_196_000, 266e6), (200_000, 8_780_000, 479e6)]


@pytest.mark.parametrize("run", PEAKS)
def test_the_model_fits_the_memory_of_alignment(run: tuple[float, ...], config: TrainConfig) -> None:
    pairs, words, peak = run
    cost = train_cost.estimate(TextSize(int(pairs), int(words), 0), config, processors=1, workers=1)
    assert cost.memory == pytest.approx(peak, rel=0.05)


def test_words_are_counted(config: TrainConfig, tmp_path: Path) -> None:
    assert train_cost.measure_texts(config) == TextSize(1000, 3000, 1500)
    (tmp_path / "lm").write_text("a b c d\n")
    config.lm_text = str(tmp_path / "lm")
    assert train_cost.measure_texts(config) == TextSize(1000, 3000, 4)


def test_pruning_takes_time_and_by_entropy_memory(config: TrainConfig) -> None:
    """Multi30k: 38 CPU seconds by entropy in a training; smt-filter-table has a peak of 294 MB."""
    size, costs = TextSize(29_000, 816_000, 417_715), []
    prunings = PruneConfig(), PruneConfig(prune_count=2), PruneConfig(prune_entropy=3e-6)
    for config.prune in prunings:
        costs.append(train_cost.estimate(size, config, processors=1, workers=1))
    whole, count, entropy = costs
    assert entropy.extraction - whole.extraction == pytest.approx(38, rel=0.2)
    assert whole.extraction < count.extraction < entropy.extraction
    assert whole.memory == count.memory <= entropy.memory == pytest.approx(294e6, rel=0.2)


def test_compiling_takes_time_and_disk(config: TrainConfig) -> None:
    """More disk for exact scores than for 8 bits. docs/scale.md: 84.7 million phrase pairs."""
    size, costs = TextSize(1_980_796, 87_503_918, 43_000_000), []
    for config.compiled in (None, CompileConfig(), CompileConfig(quantize=8)):
        costs.append(train_cost.estimate(size, config, processors=1, workers=1))
    text, exact, quantized = costs
    assert text.compilation == 0 < exact.compilation == quantized.compilation
    assert text.model < quantized.model < exact.model
    assert "to compile them" in train_cost.describe(size, exact)
    assert "to compile them" not in train_cost.describe(size, text)


def test_processors_and_workers_share_the_work(config: TrainConfig) -> None:
    size = TextSize(10**6, 44 * 10**6, 22 * 10**6)
    alone, together = (train_cost.estimate(size, config, *counts) for counts in ((1, 1), (4, 2)))
    assert together.alignment == alone.alignment / 4 and together.extraction == alone.extraction / 2
    assert together.work == alone.work and together.language_model == alone.language_model


def test_counts_on_disk_need_room(config: TrainConfig) -> None:
    """Of a language model's text that is much larger than the parallel one, unless memory suffices."""
    size = TextSize(1000, 44_000, 10**9)
    extraction = train_cost.WORK_BYTES * train_cost.estimate(size, config, 1, 1).phrase_pairs
    assert train_cost.estimate(size, config, 1, 1).work == train_cost.COUNT_BYTES * 10**9 > extraction
    assert train_cost.estimate(size, config, 1, workers=1000).work == extraction
    config.extract.memory = 1000
    assert train_cost.estimate(size, config, 1, 1).work == extraction


def test_a_disk_that_is_too_small_is_refused(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written. What an interrupted training has written counts as room."""
    size = train_cost.measure_texts(config)
    cost = train_cost.estimate(size, config, 1, 1)
    needed = int(cost.work + cost.model) + 1
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(needed // 2))
    with pytest.raises(ConfigError, match=r"about \d\.\d MB of disk there, .* name a folder on a larger"):
        train(tmp_path / "new" / "model", config)
    assert not (tmp_path / "new").exists()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "alignment.gz").write_bytes(b"x" * (needed // 2 + 1))
    train_cost.check_disk(tmp_path / "model", size, cost)


def test_the_estimate_is_logged(
    config: TrainConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0))
    with caplog.at_level(logging.INFO), pytest.raises(ConfigError):
        train(tmp_path / "model", config)
    assert "1,000 sentence pairs, 3,000 words: about " in caplog.text
