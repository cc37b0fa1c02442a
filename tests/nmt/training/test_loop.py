"""The training loop: updates, what a validation changes, when it ends; what several processes share, and too
little memory."""

import logging
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.batches import Batch, make_batch
from nmt.data.running import TrackChunk
from nmt.errors import UserError
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.training import loop
from nmt.training.config import TrainingConfig
from nmt.training.job import (
    BatchSize,
    TrainingJob,
    TrainingProgress,
    last_update,
    limit_reached,
    seconds_left,
    time_used,
)
from nmt.training.loop import (
    UpdateResult,
    check_norm,
    count_update,
    decay,
    in_round_numbers,
    judge,
    log_validation,
    read_results,
    record_update_size,
    remedy,
    report_out_of_memory,
    report_validation_out_of_memory,
    update,
    write_log,
)
from nmt.training.optimizers import current_rate
from nmt.training.parallel import Team
from nmt.training.state import DEV_COLUMNS, Board, Clock, LogTable, TrainingLogs
from nmt.training.validation import DevScore
from tests.nmt.training.jobs import NO_LOGS, PAIRS, NullLogTable, make_job, tiny_model


def test_costs_of_a_gpu_are_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the CPU count at once. A norm that is not finite is reported with the number of its update."""
    job = make_job()
    count_update(job, 1, UpdateResult(2.0, 1.0, 3, 4))
    for cost, norm in ((1.5, 1.0), (2.5, math.inf)):
        count_update(job, 2, UpdateResult(torch.tensor(cost), torch.tensor(norm), 5, 6))
        if norm == 1.0:
            assert job.progress.log_cost == 2.0
            read_results(job)
            assert job.progress.log_cost == 3.5
            read_results(job)
    assert (job.progress.step, job.progress.batch, job.progress.sentences) == (3, 5, 13)
    assert (job.progress.log_words, job.progress.log_cost) == (16, 3.5)
    with pytest.raises(UserError, match="the gradient is not finite at update 3"):
        read_results(job)
    monkeypatch.setattr("nmt.training.loop.MOST_UNREAD", 2)
    for _ in range(3):
        count_update(job, 1, UpdateResult(torch.tensor(1.0), torch.tensor(1.0), 1, 1))
    assert (len(job.unread), job.progress.log_cost) == (1, 5.5)


@pytest.mark.parametrize(
    ("clip", "advice"), [(1.0, "or training.clip and"), (0.0, "or set training.clip to 1")]
)
def test_an_infinite_gradient_can_be_clipped(clip: float, advice: str) -> None:
    """Without clipping there is no threshold to lower."""
    with pytest.raises(UserError, match=advice):
        check_norm(make_job(clip=clip), math.inf, 1)


@pytest.mark.parametrize("cost", ["sentence", "word", "sum"])
def test_accumulated_batches_are_one_batch(cost: str) -> None:
    """Two batches of unlike size in one update move the weights as their union does."""
    pairs = [([3, 4], [3]), ([5], [4, 5, 6, 3]), ([6, 3], [3, 4])]
    results = []
    for cuts in ([pairs], [pairs[:1], pairs[1:]]):
        model = tiny_model(init_scale=0.5).double()
        words = model.decoder.output.words
        total = model.loss(make_batch(*zip(*pairs, strict=True)))
        mean = total / {"sentence": 3, "word": 2 + 5 + 3, "sum": 1}[cost]
        expected = words.detach() - torch.autograd.grad(mean, words)[0]
        job = make_job(model=model, cost=cost, clip=0)
        done = update(job, [make_batch(*zip(*cut, strict=True)) for cut in cuts])
        assert torch.allclose(words, expected, atol=1e-12)
        assert done.cost == pytest.approx(float(total.detach()))
        results.append((done.cost, done.norm, words.detach().clone()))
    assert results[0][:2] == pytest.approx(results[1][:2], abs=1e-10)
    assert torch.allclose(results[0][2], results[1][2], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "positions", "rates"),
    [
        # half of 1/4, 2/4, 1 and √(4/16)
        (
            {"warmup": 4, "schedule": "inverse_sqrt"},
            [(0, 0), (1, 0), (3, 0), (15, 0)],
            [0.125, 0.25, 0.5, 0.25],
        ),
        # of two limits the one that is nearer decides
        (
            {"schedule": "linear", "max_steps": 9, "max_minutes": 2},
            [(0, 0), (3, 30), (3, 90), (6, 90)],
            [9 / 20, 6 / 20, 1 / 8, 1 / 8],
        ),
    ],
)
def test_the_rate_of_an_update_follows_schedule_time_and_decay(
    options: dict[str, Any], positions: list[tuple[int, float]], rates: list[float]
) -> None:
    job, seen = make_job(learning_rate=1.0, **options), []
    job.progress.decayed = 0.5
    for job.progress.step, job.progress.seconds in positions:
        update(job, [PAIRS])
        seen.append(current_rate(job.optimizer))
    assert seen == rates


def test_the_best_validation_is_noted_and_a_plateau_lowers_the_rate() -> None:
    config, progress = TrainingConfig(decay=0.5, decay_patience=2), TrainingProgress()
    found = []
    for progress.step, value in enumerate([1.0, 2.0, 2.0, 1.5, 1.9, 2.5], 1):
        better = judge(progress, value)
        decay(config, progress, better, math.nan)
        found.append((better, progress.best_step, progress.bad, progress.decayed))
    assert found == [
        (True, 1, 0, 1.0), (True, 2, 0, 1.0), (False, 2, 1, 1.0), (False, 2, 2, 0.5), (False, 2, 3, 0.5),
        (True, 6, 0, 0.5),
    ]  # fmt: skip


def test_a_cost_that_is_no_number_is_worse_than_any_other() -> None:
    progress = TrainingProgress()
    assert [judge(progress, value) for value in (math.nan, math.nan, -9.0, math.nan, -8.0)] == [
        True, False, True, False, True,
    ]  # fmt: skip
    assert progress.best == -8.0


def test_the_rate_is_halved_when_perplexity_falls_by_less_than_one() -> None:
    """The rule of the sub-word thesis, on perplexities as they may come."""
    config, progress = (
        TrainingConfig(optimizer="sgd", metric="cost", decay=0.5, decay_below=1.0),
        TrainingProgress(),
    )
    found = []
    for progress.step, perplexity in enumerate([300.0, 200.0, 150.0, 149.5, 148.4, 149.0, 148.0, 147.2], 1):
        decay(config, progress, judge(progress, -math.log(perplexity)), perplexity)
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
    job = make_job(tmp_path, patience=2)
    progress, table = job.progress, LogTable(tmp_path / "dev.tsv", DEV_COLUMNS, None)
    records = TrainingLogs((NullLogTable(), table), Board(tmp_path, False, 0), Clock(0))
    found = []
    for progress.step, (cost, bleu) in enumerate(
        [(5.0, 0.0), (4.0, 0.0), (4.5, 0.0), (9.0, 0.3), (3.0, 0.0), (8.0, 0.2)], 1
    ):
        score = DevScore(cost, bleu, signature="BLEU|tok:13a")
        progress.epoch, progress.batch = divmod(progress.step, 3)
        log_validation(job, records, score, judge(progress, score.value("bleu")))
        found.append((progress.best_step, progress.bad))
        assert limit_reached(job.training, progress) == (
            "patience: 2 validations without a better bleu" if progress.step == 6 else ""
        )
    assert found == [(1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2)]
    table.close()
    rows = [line.split("\t") for line in (tmp_path / "dev.tsv").read_text().split("\n")[1:-1]]
    assert [row[DEV_COLUMNS.index("best")] for row in rows] == ["*", "*", "", "*", "", ""]
    epochs = [row[DEV_COLUMNS.index("epoch")] for row in rows]
    assert epochs == ["1", "1", "1", "2", "2", "2"], (
        "of a validation after the last batch, the epoch that ended"
    )
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
    job = make_job(max_steps=1000)
    job.progress = TrainingProgress(step=700, epoch=2, log_cost=231.0, log_words=100)
    records = TrainingLogs(NO_LOGS, Board(tmp_path, False, 0), Clock(0))
    records.clock.pace = 0.5
    write_log(job, records, 1.0)
    assert re.fullmatch(
        r"epoch 3, update 700, cost 2\.31, [\d,]+ words/s, 2 min 30 s left", caplog.records[-1].getMessage()
    )


# ---- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("update_batches", "before", "processes", "expected"),
    [(0, 0, 1, (2, 4)), (0, 0, 3, (6, 2)), (0, 4, 3, (4, 2)), (5, 4, 3, (5, 2)), (1, 0, 2, (1, 7))],
)
def test_batches_of_an_update(
    update_batches: int, before: int, processes: int, expected: tuple[int, int]
) -> None:
    """As configured; else as before; else `accumulate` of each process."""
    job = epochs_of_seven(
        TrainingProgress(update_batches=before), processes, accumulate=2, update_batches=update_batches
    )
    assert (job.update_batches, job.epoch_updates) == expected


def epochs_of_seven(
    progress: TrainingProgress | None = None, processes: int = 1, **options: Any
) -> TrainingJob:
    """A job whose epochs have seven batches."""
    job = make_job(batches=[PAIRS] * 7, team=Team(0, processes), **{"validate_every": 0, **options})
    job.progress = progress or TrainingProgress()
    return job


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
    assert last_update(epochs_of_seven(max_epochs=3, accumulate=2)) == 3 * 4
    assert last_update(epochs_of_seven(max_epochs=3, accumulate=2, processes=2)) == 3 * 2
    assert last_update(epochs_of_seven(max_epochs=3, max_steps=5)) == 5
    assert last_update(epochs_of_seven(max_epochs=3, max_steps=50)) == 21
    assert last_update(epochs_of_seven(max_steps=50)) == 50
    assert last_update(epochs_of_seven(max_minutes=1)) == 0


def test_the_time_left_holds_updates_and_validations() -> None:
    """Half a second an update, ten a validation; each epoch of seven updates has one."""
    progress = TrainingProgress(step=7, validation_seconds=10.0, seconds=30.0)
    assert seconds_left(epochs_of_seven(progress=progress, max_epochs=3), 0.5) == 14 * 0.5 + 2 * 10
    assert (
        seconds_left(epochs_of_seven(progress=progress, max_epochs=3, validate_every=14), 0.5)
        == 14 * 0.5 + 10
    )
    assert seconds_left(epochs_of_seven(progress=progress, max_steps=7), 0.5) == 0
    assert seconds_left(epochs_of_seven(progress=progress, max_epochs=9, max_minutes=1), 0.5) == 30
    assert seconds_left(epochs_of_seven(progress=progress, max_epochs=3, max_minutes=9), 0.5) == 27
    assert seconds_left(epochs_of_seven(progress=progress), 0.5) is None


# ---- several processes -------------------------------------------------------------------------------------


def settled(progress: TrainingProgress, size: int, rank: int = 0, **settings: Any) -> TrainingProgress:
    """Of a job that stands there, with so many processes."""
    job = make_job(team=Team(rank, size), **settings)
    job.progress = progress
    record_update_size(job)
    return job.progress


def test_updates_stay_as_they_were(caplog: pytest.LogCaptureFixture) -> None:
    """Of four processes two are left, then three, then one."""
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    progress = settled(TrainingProgress(), 4, accumulate=2)
    for size in (2, 3, 1):
        progress = settled(progress, size, accumulate=2)
        assert (progress.processes, progress.update_batches) == (size, 8)
    assert [record.getMessage() for record in caplog.records] == [
        "processes: 4; 8 batches per update",
        "processes: 2; 8 batches per update",
        "processes: 2, previously 4",
        "processes: 3; 8 batches per update",
        "processes: 3, previously 2",
        "processes: 1, previously 3",
    ]


def test_updates_of_a_given_size(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.INFO, "nmt")
    progress = settled(TrainingProgress(), 1, update_batches=6, accumulate=2)
    assert progress.update_batches == 6, "instead of accumulate"
    assert settled(progress, 1, update_batches=8).update_batches == 8
    assert settled(progress, 1).update_batches == 8, "the last one that was given"
    assert [record.getMessage() for record in caplog.records] == ["batches per update: 8, previously 6"]


def test_idle_processes_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """A run of one process that four resume. The first tells; a run of an early version said nothing."""
    logging.getLogger("nmt").propagate = True
    caplog.set_level(logging.WARNING, "nmt")
    settled(TrainingProgress(processes=1, update_batches=1), 4, rank=1)
    assert not caplog.records
    settled(TrainingProgress(processes=1, update_batches=1), 4)
    [warning] = [record.getMessage() for record in caplog.records]
    assert "update_batches is 1, so 3 of the 4 processes are idle" in warning
    assert settled(TrainingProgress(step=9), 2, accumulate=3).update_batches == 6


# ---- too little memory -------------------------------------------------------------------------------------


CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
    "allocate 40000000000 bytes. Error code 12 (Cannot allocate memory)"
)
CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
LIBRARY = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


SIZES = RNNConfig(embedding=4, hidden=5, maxout=3)


class Small(RNNTranslator):
    """A model that fits batches of up to 30 units only."""

    error: Exception = CPU

    def cost(self, batch: Batch, smoothing: float, carried: torch.Tensor | None) -> tuple[torch.Tensor, None]:
        if batch.tokens > 30:
            raise self.error
        return super().cost(batch, smoothing, carried)


def of(count: int, length: int) -> Batch:
    """`count` pairs whose targets have `length` units and an end symbol, the sources fewer."""
    return make_batch([[3]] * count, [[4] * length] * count)


@pytest.mark.parametrize("error", [CPU, CUDA, LIBRARY, MemoryError()])
def test_the_largest_batch_that_fits_is_named(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(Small, "error", error)
    batches = [of(2, 4), of(4, 6), of(3, 5), of(5, 9)]
    job = make_job(tmp_path / "run", Small(SIZES, 7, 7), batches, max_epochs=1, save_every=2)
    with pytest.raises(UserError) as raised:
        loop.train(job)
    assert str(raised.value) == (
        f"{tmp_path}/run: out of memory at update 4, in a batch of 5 sentences, 50 units, the longest of 10; "
        "the largest that fit had 4 sentences, 28 units, the longest of 7. The save of update 2 is intact. "
        "Start a new run with training.batch_tokens=28 training.accumulate=2, whose updates are as large"
    )
    assert (tmp_path / "run" / "step-2.pt").exists(), "what was saved is still there"


def test_a_process_without_a_batch_of_its_own_names_the_spare_one() -> None:
    job = make_job()
    job.spare = of(2, 4)
    with pytest.raises(UserError, match="in a batch of 2 sentences, 10 units"), report_out_of_memory(job, []):
        raise CPU


def test_other_errors_stay_what_they_are() -> None:
    job = make_job()
    with pytest.raises(RuntimeError, match="a mistake of ours"), report_out_of_memory(job, [of(1, 1)]):
        raise RuntimeError("a mistake of ours")
    with pytest.raises(RuntimeError, match="a mistake of ours"), report_validation_out_of_memory(job):
        raise RuntimeError("a mistake of ours")
    assert job.largest == BatchSize()


def test_what_helps() -> None:
    job = make_job(accumulate=3)
    batch = BatchSize(sentences=80, tokens=5000, longest=60)
    assert "training.batch_tokens=2500 training.accumulate=6," in remedy(job, batch)
    job.largest = BatchSize(sentences=60, tokens=3978, longest=70)
    assert "training.batch_tokens=3900 training.accumulate=6," in remedy(job, batch)
    shared = make_job(accumulate=3, update_batches=8)
    assert "training.batch_tokens=2500 training.update_batches=16," in remedy(shared, batch)
    job.largest = BatchSize(sentences=60, tokens=9000, longest=70)  # the memory was cut up since
    assert "training.batch_tokens=2500 " in remedy(job, batch)
    assert remedy(job, BatchSize(1, 900, 900)).startswith("Set data.max_length below 899")
    job.model.carries = True  # type: ignore[attr-defined]
    assert remedy(job, batch) == "Start a new run with training.batch_size=40"
    assert [in_round_numbers(number) for number in (1, 42, 123, 3978)] == [1, 42, 120, 3900]


def test_nothing_fits() -> None:
    with pytest.raises(UserError, match=r"; none has fit before\. Nothing was saved before\. "):
        loop.run_updates(make_job(model=Small(SIZES, 7, 7), batches=[of(4, 20)], max_epochs=1), None)  # type: ignore[arg-type]


def test_a_development_set_that_does_not_fit() -> None:
    def validate() -> DevScore:
        raise CUDA

    job = make_job(dev_beam=12)
    job.validate, job.progress.step, job.progress.saved = validate, 9, [4, 6]
    with pytest.raises(UserError, match=r"after update 9\. The save of update 6 .*dev_beam=6 \(it is 12"):
        loop.validate_and_save(job, None)  # type: ignore[arg-type]


def test_sizes_of_batches() -> None:
    batch = make_batch([[3, 3, 3], [3]], [[4], [4, 4]])
    assert (batch.tokens, batch.longest, batch.target_tokens) == (6, 4, 5)
    chunk = TrackChunk(torch.zeros(12), torch.zeros(12), tracks=3, fresh=True)
    assert (chunk.tokens, chunk.longest, chunk.sentences) == (12, 4, 3)
