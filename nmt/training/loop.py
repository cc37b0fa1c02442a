"""The training loop, top to bottom: batch, cost, gradient, clip, update, log, validate, save, stop.

A run that is killed at any moment is resumed from its last save, cuts its logs back to it, and ends bit-equal
(on CPU, with the same number of threads and processes) to one that was never stopped; nmt/training/state.py
saves and restores."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from nmt.errors import UserError, ran_out_of_memory
from nmt.io import progress as bars
from nmt.training.config import TrainingConfig
from nmt.training.job import (
    BatchSize,
    TrainingJob,
    TrainingProgress,
    deciding_metric,
    last_update,
    limit_reached,
    seconds_left,
    time_used,
)
from nmt.training.optimizers import clip, current_rate, rate_factor, set_rate
from nmt.training.protocols import AnyBatch
from nmt.training.state import TrainingLogs, open_logs, save
from nmt.training.validation import DevScore

log = logging.getLogger(__name__)


Item = TypeVar("Item")
MOST_UNREAD = 1000  # updates whose costs a GPU keeps
ZEROS = 3  # a warning is logged after this many validations in a row with BLEU or chrF 0.00


def train(job: TrainingJob) -> str:
    """Train until a limit is reached, patience runs out, or the callback `job.stop` returns true; then
    validate and save, after `stop` only save. Returns the reason for the log, `signal` for the callback.

    UserError for a gradient or weights that are not finite, for a batch or a development set that does not
    fit into memory, and for files that cannot be written; ConfigError as from `Team.wrap`.
    """
    logs = open_logs(job)
    try:
        reason = run_updates(job, logs)
        if reason == "signal":
            save_only(job, logs)
        elif job.progress.validated != job.progress.step:
            validate_and_save(job, logs)
    finally:
        logs.close()
    return reason


def run_updates(job: TrainingJob, logs: TrainingLogs) -> str:
    """Run updates, with log lines, validations and saves between them, until there is a reason to stop;
    returns the reason."""
    config, progress = job.training, job.progress
    job.model.train()
    job.team.wrap(job.model)
    compute_first_batch(job)
    reason = limit_reached(config, progress)
    while not reason:
        batch_count = job.stream.count(progress.epoch)
        for size, batches in show_progress(job, logs, groups(job, batch_count), batch_count):
            with report_out_of_memory(job, batches):
                result = update(job, batches, job.team.idle(size))
            count_update(job, size, result)
            logs.clock.tick()
            progress.seconds = logs.clock.seconds()
            if progress.step % config.log_every == 0:
                read_results(job)
                write_log(job, logs, float(result.norm))
            if config.validate_every and progress.step % config.validate_every == 0:
                validate_and_save(job, logs)
            elif config.save_every and progress.step % config.save_every == 0:
                save_only(job, logs)
            reason = agree(job, "signal" if job.stop() else limit_reached(config, progress))
            if reason:
                break
        if progress.batch >= batch_count:
            progress.epoch += 1
            progress.batch = 0
            if not config.validate_every:
                validate_and_save(job, logs)
            reason = agree(job, reason or limit_reached(config, progress))
    return reason


def agree(job: TrainingJob, reason: str) -> str:
    """Let all processes follow the first one. Returns its reason to stop, in other words in the other
    processes, empty to go on. Also sets what the next learning rate depends on to the values of the first
    process."""
    progress = job.progress
    reason, values = job.team.agree(reason, progress.decayed, progress.seconds, progress.validation_seconds)
    progress.decayed, progress.seconds, progress.validation_seconds = values
    return reason


def groups(job: TrainingJob, batch_count: int) -> Iterator[tuple[int, list[AnyBatch]]]:
    """Yield, for each update until the end of the epoch, its number of batches and the batches that this
    process computes. The last update may have fewer. `batch_count`: number of batches of the epoch."""
    progress, size = job.progress, job.update_batches
    share = job.team.share(progress.batch, size)
    batches = iter(job.stream.batches(progress.epoch, progress.batch, share))
    for first in range(progress.batch, batch_count, size):
        numbers = range(first, min(first + size, batch_count))
        yield len(numbers), list(islice(batches, sum(map(share.has, numbers))))


class UpdateResult(NamedTuple):
    """Sizes and cost of an update, over all processes."""

    cost: float | Tensor  # sum of the costs of the batches, see Trainable.cost; on a GPU a tensor ()
    norm: float | Tensor  # of the gradient before clipping; on a GPU a tensor ()
    sentences: int
    words: int  # target units, end symbols included


def update(job: TrainingJob, batches: Sequence[AnyBatch], idle: bool = False) -> UpdateResult:
    """Update the weights once, with the gradients of these batches and those of the other processes. Also
    sets the learning rate, updates the moving average, and calls the callbacks; `count_update` adds the
    result to the progress. `idle`: other processes have one more batch than this one. UserError if the
    gradient is not finite."""
    config, team = job.training, job.team
    job.optimizer.zero_grad(set_to_none=job.graphs is None)
    sentences, words = team.totals(
        sum(batch.sentences for batch in batches), sum(batch.target_tokens for batch in batches)
    )
    divisor = {"sentence": sentences, "word": words, "sum": 1}[config.cost] or 1
    cost: float | Tensor = torch.zeros((), dtype=torch.float64, device=job.model.device)
    team.begin_update(job.progress.step)
    with job.use_precision():
        # a process without a batch joins the exchange of gradients with 0 times those of another batch
        weighted = [(batch, 1.0) for batch in batches]
        if idle and job.spare is not None:
            weighted.append((job.spare, 0.0))
        for number, (batch, weight) in enumerate(weighted, 1):
            if job.graphs is not None and (graphed := job.graphs.add_gradient(batch, divisor, job.carried)):
                cost, job.carried = cost + graphed[0], graphed[1]
                continue
            batch, total = batch.to(job.model.device), None
            if team.size > 1:
                with team.exchange(number == len(weighted)):
                    total = team.cost(batch, config.label_smoothing)
                    torch.autograd.backward(weight * team.size * total / divisor)
            else:
                total, job.carried = job.model.cost(batch, config.label_smoothing, job.carried)
                torch.autograd.backward(total / divisor)  # Tensor.backward would leave the bf16 mode
            cost = cost + weight * total.detach().double()
            del total  # a graph that is recorded next must not share its nodes
    norm = clip(job.model.parameters(), config.clip)
    step = job.progress.step + 1
    if team.size > 1 or job.model.device.type == "cpu":  # those of a single GPU are read later
        [cost], norm = team.totals(float(cost)), float(norm)
        check_norm(job, norm, step)
    used = time_used(config, job.progress)
    factor = rate_factor(config.schedule, config.warmup, step, last_update(job), used)
    set_rate(job.optimizer, config.learning_rate * job.progress.decayed * factor)
    job.optimizer.step()
    if job.average:
        job.average.update(step)
    for callback in job.callbacks:
        callback.on_update(step)
    return UpdateResult(cost, norm, int(sentences), int(words))


def check_norm(job: TrainingJob, norm: float, step: int) -> None:
    """UserError if the norm of the gradient of update `step` is not finite."""
    if not math.isfinite(norm):
        clipping = "training.clip" if job.training.clip else "set training.clip to 1"
        raise UserError(
            f"{job.directory}: the gradient is not finite at update {step}. {last_save(job)}. "
            f"Lower training.learning_rate or {clipping} and start a new run with it"
        )


def count_update(job: TrainingJob, batches: int, result: UpdateResult) -> None:
    """Add an update to the progress. `batches`: its number of batches, over all processes. A cost on a GPU is
    left to `read_results`."""
    progress = job.progress
    progress.step += 1
    progress.batch += batches
    progress.sentences += result.sentences
    progress.log_words += result.words
    if isinstance(result.cost, Tensor):
        job.unread.append((result.cost, torch.as_tensor(result.norm)))
        if len(job.unread) >= MOST_UNREAD:
            read_results(job)
    else:
        progress.log_cost += result.cost


def read_results(job: TrainingJob) -> None:
    """Wait for a GPU and add the costs of the updates since the last call to the progress; on the CPU there
    are none. UserError if a gradient was not finite."""
    if not job.unread:
        return
    costs, norms = (torch.stack(values).tolist() for values in zip(*job.unread, strict=True))
    job.unread.clear()
    for number, (cost, norm) in enumerate(zip(costs, norms, strict=True), job.progress.step - len(costs) + 1):
        check_norm(job, norm, number)
        job.progress.log_cost += cost


def write_log(job: TrainingJob, logs: TrainingLogs, norm: float) -> None:
    """Log the progress, write it to train.tsv, and add a point to each curve; then reset the sums of costs
    and words. Processes other than the first only reset. `norm`: of the last gradient, before clipping."""
    progress = job.progress
    if not job.team.first:
        progress.log_cost, progress.log_words = 0.0, 0
        return
    cost = progress.log_cost / progress.log_words
    speed, rate = logs.clock.rate(progress.log_words), current_rate(job.optimizer)
    left = time_left(job, logs)
    log.info(
        "epoch %d, update %s, cost %.2f, %s words/s%s",
        progress.epoch + 1, f"{progress.step:,}", cost, f"{speed:,.0f}", f", {left}" if left else "",
    )  # fmt: skip
    logs.tables[0].add({
        "step": f"{progress.step}", "epoch": f"{progress.epoch + 1}", "sentences": f"{progress.sentences}",
        "cost": f"{cost:.6f}", "norm": f"{norm:.6f}", "rate": f"{rate:g}",
        "seconds": f"{progress.seconds:.1f}", "words_per_second": f"{speed:.0f}",
    })  # fmt: skip
    curves = {"cost": cost, "norm": norm, "rate": rate, "words_per_second": speed}
    logs.board.add("train", progress.step, curves)
    progress.log_cost, progress.log_words = 0.0, 0


def time_left(job: TrainingJob, logs: TrainingLogs) -> str:
    """Format the time left in the whole training: `12 min 3 s left`; empty if no limit determines its end."""
    seconds = seconds_left(job, logs.clock.pace)
    return "" if seconds is None else f"{bars.duration(seconds)} left"


def save_only(job: TrainingJob, logs: TrainingLogs) -> None:
    """Save without a validation. UserError as from `read_results` and `save`."""
    read_results(job)
    with job.team.busy():
        save(job, logs.tables)


def validate_and_save(job: TrainingJob, logs: TrainingLogs) -> None:
    """Validate, adapt the learning rate, and save, in the first process. The others return at once, and wait
    for it in `agree`. UserError as from `score_and_save`."""
    read_results(job)
    job.progress.validated = job.progress.step
    if job.team.first:
        with job.team.busy():
            score_and_save(job, logs)


def score_and_save(job: TrainingJob, logs: TrainingLogs) -> None:
    """Validate the model (its averaged weights, if there are any), adapt the learning rate, log the scores,
    and save. Without a development set only save, the newest weights as the best. For the first process
    alone. UserError if the development set does not fit into memory, and as from `save`."""
    progress = job.progress
    began = time.monotonic()
    if job.validate is None:
        progress.best_step = progress.step
    else:
        with report_validation_out_of_memory(job), job.use_average():
            score = job.validate()
        progress.validation_seconds = time.monotonic() - began
        better = judge(progress, score.value(job.training.metric))
        decay(job.training, progress, better, score.perplexity)
        progress.seconds = logs.clock.seconds()
        log_validation(job, logs, score, better)
    save(job, logs.tables)
    logs.clock.leave_out(time.monotonic() - began)


def log_validation(job: TrainingJob, logs: TrainingLogs, score: DevScore, better: bool) -> None:
    """Log a validation, write it to dev.tsv, and add a point to each curve. `better`: whether its score is
    the best so far.

    Also counts in `job.progress.zeros` the validations in a row whose BLEU or chrF, the one that is the
    metric, is 0.00, and warns when there are ZEROS of them.
    """
    config, progress = job.training, job.progress
    by_cost = config.metric != "cost" and deciding_metric(config.metric, progress) == "cost"
    if score.signature != logs.signature:
        logs.signature = score.signature
        log.info("development scores, with a beam of %d: %s", config.dev_beam, score.signature)
    log.info(
        "development: update %s, cost %.2f, perplexity %.2f%s%s",
        f"{progress.step:,}", score.cost, score.perplexity, score.scores(),
        f", best so far{' (by cost)' if by_cost else ''}" if better else "",
    )  # fmt: skip
    logs.tables[1].add({
        "step": f"{progress.step}", "epoch": f"{progress.epoch + (progress.batch > 0)}",
        "cost": f"{score.cost:.6f}", "perplexity": f"{score.perplexity:.4f}",
        "bleu": f"{score.bleu:.4f}", "best": "*" if better else "", "seconds": f"{progress.seconds:.1f}",
        "chrf": f"{score.chrf:.4f}", "signature": score.signature,
    })  # fmt: skip
    curves = {"cost": score.cost, "bleu": score.bleu, "chrf": score.chrf}
    logs.board.add("dev", progress.step, curves)
    progress.zeros = progress.zeros + 1 if score.is_zero(config.metric) else 0
    if progress.zeros == ZEROS:
        log.warning(
            "development %s was 0.00 %d times in a row; while it is, the cost decides which weights are "
            "best, when the learning rate decays and when patience ends. Does training.bleu_tokenizer suit "
            "the text? This was %s",
            config.metric, ZEROS, score.signature,
        )  # fmt: skip


def judge(progress: TrainingProgress, value: float) -> bool:
    """Record a validation in the progress; returns whether it is better than all before. `value`: its score,
    see DevScore.value; nan is worse than any number."""
    value = -math.inf if math.isnan(value) else value
    better = progress.best is None or value > progress.best
    if better:
        progress.best, progress.best_step, progress.bad = value, progress.step, 0
    else:
        progress.bad += 1
    return better


def decay(config: TrainingConfig, progress: TrainingProgress, better: bool, perplexity: float) -> None:
    """Lower `progress.decayed`, a factor of the learning rate, after each `decay_patience` validations
    without improvement or, with `decay_below`, after a validation whose perplexity fell by less than this
    much. `better`: whether this validation is better than all before; `perplexity`: that of this validation,
    which is recorded."""
    if config.decay_below:
        due = progress.perplexity is not None and progress.perplexity - perplexity < config.decay_below
    else:
        due = not better and progress.bad % config.decay_patience == 0
    progress.perplexity = perplexity
    if due:
        progress.decayed *= config.decay


def show_progress(
    job: TrainingJob, logs: TrainingLogs, updates: Iterator[Item], batch_count: int
) -> Iterator[Item]:
    """Yield the updates of the epoch while showing progress and the time left in the whole training.
    `batch_count`: number of batches of the epoch."""
    if not job.team.first:
        yield from updates
        return
    title = f"epoch {job.progress.epoch + 1}"
    with bars.Progress(None, "batches", job.show_bar, title) as shown:
        shown.note = lambda: f"{left} of the training" if (left := time_left(job, logs)) else ""
        shown.reach(job.progress.batch, batch_count)
        for update in updates:
            yield update
            shown.reach(job.progress.batch, batch_count)


# ---- several processes -------------------------------------------------------------------------------------
# What processes agree on before their first update: the number of batches of an update, and the order in
# which gradients are summed.
#
# The number of batches per update stays what it was when the run began, however many processes share them.
# So a run that continues with fewer or more processes makes the same updates, with the same sentences and
# learning rates; only the rounding of sums and the random numbers of dropout differ.


def record_update_size(job: TrainingJob) -> None:
    """Record the number of processes and of batches per update in the training state, and log them if they
    have changed since the previous start. Logs a warning if there are fewer batches than processes, so that
    some processes are idle."""
    progress, size, batches = job.progress, job.team.size, job.update_batches
    previous, progress.update_batches = progress.update_batches, batches
    processes, progress.processes = progress.processes, size
    if not job.team.first:
        return
    if size > 1:
        log.info("processes: %d; %d batches per update", size, batches)
    if processes and processes != size:
        log.info("processes: %d, previously %d", size, processes)
    if previous and previous != batches:
        log.info("batches per update: %d, previously %d", batches, previous)
    if batches < size:
        log.warning(
            "training.update_batches is %d, so %d of the %d processes are idle; "
            "%d gives each process a batch, in larger updates",
            batches, size - batches, size, size,
        )  # fmt: skip


def compute_first_batch(job: TrainingJob) -> None:
    """If several processes train, compute a batch and discard its gradients.

    DistributedDataParallel sums gradients in the order in which they arrived in the first backward pass, but
    that pass itself uses another order. Without this batch, the sums of three or more processes would be
    rounded differently in the first update after a start, and a resumed run would differ in the last bits.
    The batch is the same in all processes and starts. It stays in `job.spare`, for updates in which a process
    has no batch of its own.
    """
    if job.team.size == 1:
        return
    job.spare = next(iter(job.stream.batches(0)))
    with report_out_of_memory(job, [job.spare]), job.use_precision():
        cost = job.team.cost(job.spare.to(job.model.device), job.training.label_smoothing)
        torch.autograd.backward(0 * cost)
    job.optimizer.zero_grad(set_to_none=True)


# ---- too little memory -------------------------------------------------------------------------------------
# The error for a lack of memory: which batch was too large, which one fit, and what to set.


@contextmanager
def report_out_of_memory(job: TrainingJob, batches: Sequence[AnyBatch]) -> Iterator[None]:
    """Context that computes these batches or, without any, `job.spare`: records the largest batch so far in
    `job.largest`. UserError, with settings that help, if the batches do not fit into memory."""
    if not batches and job.spare is not None:
        batches = [job.spare]
    size = max(map(BatchSize.of, batches), key=lambda batch: batch.tokens, default=BatchSize())
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        largest = f"the largest that fit had {job.largest}" if job.largest.tokens else "none has fit before"
        raise UserError(
            f"{job.directory}: out of memory at update {job.progress.step + 1}, in a batch of {size}; "
            f"{largest}. {last_save(job)}. {remedy(job, size)}"
        ) from error
    job.largest = max(job.largest, size, key=lambda batch: batch.tokens)


@contextmanager
def report_validation_out_of_memory(job: TrainingJob) -> Iterator[None]:
    """Context that raises UserError if the development set does not fit into memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        beam = job.training.dev_beam
        hint = f"training.dev_beam={beam // 2} (it is {beam}) or " if beam > 1 else ""
        raise UserError(
            f"{job.directory}: out of memory while the development set was scored, after update "
            f"{job.progress.step}. {last_save(job)}. Set {hint}data.max_length lower, or make the model "
            "smaller"
        ) from error


def last_save(job: TrainingJob) -> str:
    """Describe the update from which the training can be resumed."""
    steps = job.progress.saved
    return f"The save of update {max(steps)} is intact" if steps else "Nothing was saved before"


def remedy(job: TrainingJob, batch: BatchSize) -> str:
    """Suggest settings for a new run in which batches fit into memory, where possible with updates of the
    same size. `batch`: size of the batch that did not fit."""
    if batch.sentences == 1:
        return f"Set data.max_length below {batch.longest - 1}, or make the model smaller"
    if getattr(job.model, "carries", False):
        return f"Start a new run with training.batch_size={batch.sentences // 2}"
    tokens, fitted = batch.tokens // 2, job.largest.tokens
    if tokens < fitted < batch.tokens:
        tokens = fitted
    config, parts = job.training, -(-batch.tokens // tokens)
    key, batches = "accumulate", config.accumulate
    if config.update_batches:
        key, batches = "update_batches", config.update_batches
    return (
        f"Start a new run with training.batch_tokens={in_round_numbers(tokens)} "
        f"training.{key}={parts * batches}, whose updates are as large"
    )


def in_round_numbers(tokens: int) -> int:
    """Round down to two significant digits: 3,978 -> 3,900"""
    unit: int = 10 ** max(0, len(str(tokens)) - 2)
    return max(1, tokens // unit * unit)
