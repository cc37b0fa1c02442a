"""One update of the training loop, its limits, and what a validation changes."""

import logging
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.data.batches import WHOLE, Share, make_batch
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.training.callbacks import Callback
from nmt.training.config import TrainingConfig
from nmt.training.job import AnyBatch, TrainingJob, TrainingProgress, limit_reached
from nmt.training.loop import TrainingLogs, decay, judge, log_validation, update, write_log
from nmt.training.optimizers import current_rate, make_optimizer
from nmt.training.records import DEV_COLUMNS, Board, Clock, LogTable, NullLogTable
from nmt.training.validation import DevScore


class NoBatches:
    """A stream for tests that bring their own batches."""

    def count(self, epoch: int) -> int:
        return 0

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[AnyBatch]:
        yield from ()


def job(model: RNNTranslator, directory: Path = Path(), **options: object) -> TrainingJob:
    config = TrainingConfig(optimizer="sgd", learning_rate=1.0, clip=0, **options)  # type: ignore[arg-type]
    return TrainingJob(
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
        model = RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5), 7, 7).double()
        words = model.decoder.output.words
        mean = (
            model.loss(make_batch(*zip(*pairs, strict=True)))
            / {"sentence": 3, "word": 2 + 5 + 3, "sum": 1}[cost]
        )
        expected = words.detach() - torch.autograd.grad(mean, words)[0]
        done = update(job(model, cost=cost), [make_batch(*zip(*cut, strict=True)) for cut in cuts])
        assert torch.allclose(words, expected, atol=1e-12)
        results.append((done.cost, done.norm, words.detach().clone()))
    assert results[0][:2] == pytest.approx(results[1][:2], abs=1e-10)
    assert torch.allclose(results[0][2], results[1][2], atol=1e-12)


def test_callbacks_are_told_of_each_update() -> None:
    class Listener(Callback):
        def __init__(self) -> None:
            self.steps = list[int]()

        def on_update(self, step: int) -> None:
            self.steps.append(step)

    training = job(RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7))
    listener = Listener()
    training.callbacks = [listener]
    for _ in range(2):
        update(training, [make_batch([[3, 4]], [[3]])])
        training.progress.step += 1
    assert listener.steps == [1, 2]


def test_the_rate_of_an_update_follows_schedule_and_decay() -> None:
    torch.manual_seed(0)
    model = RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7)
    work = job(model, warmup=4, schedule="inverse_sqrt")
    work.progress.decayed = 0.5
    batch, rates = make_batch([[3]], [[4]]), []
    for work.progress.step in (0, 1, 3, 15):
        update(work, [batch])
        rates.append(current_rate(work.optimizer))
    assert rates == [0.125, 0.25, 0.5, 0.25]  # half of 1/4, 2/4, 1 and √(4/16)


def test_the_rate_falls_with_the_time_too() -> None:
    """Of two limits the one that is nearer decides."""
    torch.manual_seed(0)
    model = RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7)
    work = job(model, schedule="linear", max_steps=9, max_minutes=2)
    batch, rates = make_batch([[3]], [[4]]), []
    for work.progress.step, work.progress.seconds in ((0, 0), (3, 30), (3, 90), (6, 90)):
        update(work, [batch])
        rates.append(current_rate(work.optimizer))
    assert rates == [9 / 10, 6 / 10, 1 / 4, 1 / 4]


def test_the_best_validation_is_noted_and_a_plateau_lowers_the_rate() -> None:
    config, progress = TrainingConfig(decay=0.5, decay_patience=2), TrainingProgress()
    found = []
    for progress.step, value in enumerate([1.0, 2.0, 2.0, 1.5, 1.9, 2.5], 1):
        better = judge(config, progress, value)
        decay(config, progress, better, math.nan)
        found.append((better, progress.best_step, progress.bad, progress.decayed))
    assert found == [
        (True, 1, 0, 1.0), (True, 2, 0, 1.0), (False, 2, 1, 1.0), (False, 2, 2, 0.5), (False, 2, 3, 0.5),
        (True, 6, 0, 0.5),
    ]  # fmt: skip


def test_the_rate_is_halved_when_perplexity_falls_by_less_than_one() -> None:
    """The rule of the sub-word thesis, on perplexities as they may come."""
    config, progress = (
        TrainingConfig(optimizer="sgd", metric="cost", decay=0.5, decay_below=1.0),
        TrainingProgress(),
    )
    found = []
    for progress.step, perplexity in enumerate([300.0, 200.0, 150.0, 149.5, 148.4, 149.0, 148.0, 147.2], 1):
        decay(config, progress, judge(config, progress, -math.log(perplexity)), perplexity)
        found.append(progress.decayed)
    # A fall of 1.1 from 149.5 to 148.4 is enough; the one of exactly 1 from 149 to 148 is, too.
    assert found == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125]
    assert progress.best_step == 8 and progress.bad == 0


def test_bleu_that_stays_zero_leaves_the_choice_to_the_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No other 0 is better than the first."""
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    work = job(RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7), tmp_path, patience=2)
    progress, table = work.progress, LogTable(tmp_path / "dev.tsv", DEV_COLUMNS, None)
    records = TrainingLogs((NullLogTable(), table), Board(tmp_path, False, 0), Clock(0))
    found = []
    for progress.step, (cost, bleu) in enumerate(
        [(5.0, 0.0), (4.0, 0.0), (4.5, 0.0), (9.0, 0.3), (3.0, 0.0), (8.0, 0.2)], 1
    ):
        score = DevScore(cost, bleu, signature="BLEU|tok:13a")
        log_validation(work, records, score, judge(work.config, progress, score.value("bleu")))
        found.append((progress.best_step, progress.bad))
        assert limit_reached(work.config, progress) == (
            "patience: 2 validations without a better bleu" if progress.step == 6 else ""
        )
    assert found == [(1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2)]
    table.close()
    rows = [line.split("\t") for line in (tmp_path / "dev.tsv").read_text().split("\n")[1:-1]]
    assert [row[DEV_COLUMNS.index("best")] for row in rows] == ["*", "*", "", "*", "", ""]
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("development bleu was 0.00 3 times in a row") and "BLEU|tok:13a" in warning
    first, *lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert "beam of 5" in first and first.endswith("BLEU|tok:13a")
    assert not any("BLEU|tok:13a" in line for line in lines), "the signature stands there once"
    assert lines[1].endswith(", BLEU 0.00, best so far (by cost)")
    assert lines[3] == (
        f"development: update 4, cost 9.00, perplexity {math.exp(9):.2f}, BLEU 0.30, best so far"
    )


def test_a_line_of_the_log_is_in_words(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    model = RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3), 7, 7)
    work = job(model, max_steps=1000)
    work.progress = TrainingProgress(step=700, epoch=2, log_cost=231.0, log_words=100)
    records = TrainingLogs((NullLogTable(), NullLogTable()), Board(tmp_path, False, 0), Clock(0))
    records.clock.pace = 0.5
    write_log(work, records, 1.0)
    assert re.fullmatch(
        r"epoch 3, update 700, cost 2\.31, [\d,]+ words/s, 2 min 30 s left", caplog.records[-1].getMessage()
    )
