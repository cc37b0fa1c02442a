"""The training loop, top to bottom: batch, cost, gradient, clip, update, log, validate, save, stop.

Resume is exact: what a run does after step N depends on nothing but the files that were saved at step N. A
run that is killed at any moment goes on from its last save, cuts its logs back to it, and ends bit-equal (on
CPU, with the same threads) to one that was never stopped.
"""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from nmt import checkpoint, fastmath, run_directory, settings
from nmt.data.batches import Batch, BatchStream
from nmt.data.running import Chunk, ChunkStream
from nmt.errors import CheckpointError, ConfigError, UserError
from nmt.lm.protocols import LanguageModel
from nmt.models.registry import AnyModel
from nmt.run_directory import DEV_LOG, INDEX, STATE, TRAIN_LOG, weights_path
from nmt.settings import choice, number
from nmt.training.optimizers import OPTIMIZERS, SCHEDULES, clip, rate_of, scheduled, set_rate
from nmt.training.parallel import Team
from nmt.training.records import DEV_COLUMNS, TRAIN_COLUMNS, Board, Clock, NoTable, Table
from nmt.training.validation import DevSet, DevText, validate

log = logging.getLogger(__name__)


@dataclass
class TrainingConfig:
    optimizer: str = choice(*OPTIMIZERS)  # adadelta is that of the papers
    learning_rate: float = number(1.0, least=0)  # 1 for adadelta; about 0.001 for adam
    warmup: int = number(0, least=0)  # updates over which the rate rises to learning_rate in a straight line
    # after the warm-up: inverse_sqrt: learning_rate √(warmup / updates); linear: down to 0 at max_steps.
    # See also decay
    schedule: str = choice(*SCHEDULES)
    rho: float = number(0.95, least=0, below=1)  # adadelta only
    eps: float = number(1e-6, above=0)  # adadelta only
    clip: float = number(1.0, least=0)  # largest total norm of a gradient; 0: none
    cost: str = choice(
        "sentence", "word", "sum"
    )  # what a gradient is of: mean over sentences (eq. 4.4), mean over words, sum (authors' code)
    label_smoothing: float = number(
        0.0, least=0, below=1
    )  # share of each word's weight that all words get; 0.1 helps small corpora. Dev costs are without it
    batch_size: int = number(64, least=1)  # sentences
    accumulate: int = number(
        1, least=1
    )  # batches whose gradients are added for one update: larger batches than fit in memory
    pool: int = number(20, least=1)  # batches that are sorted by length together
    max_steps: int = number(
        0, least=0
    )  # 0: no limit; one of the limits or `patience` has to end the training
    max_epochs: int = number(0, least=0)
    max_minutes: float = number(0.0, least=0)  # wall time over all starts of the run
    log_every: int = number(100, least=1)  # steps
    validate_every: int = number(1000, least=0)  # steps; 0: at the end of each epoch. Validation also saves
    save_every: int = number(
        0, least=0
    )  # steps; 0: only when validating. More saves lose less when a machine dies
    dev_beam: int = number(4, least=0, most=10_000)  # beam for BLEU on the development set; 0: no BLEU
    metric: str = choice("bleu", "cost")  # which development score decides
    patience: int = number(10, least=0)  # stop after this many validations without a better score; 0: never
    decay: float = number(
        1.0,
        above=0,
        most=1,
        # factor of the rate after `decay_patience` validations without a better score; 0.5 halves it on a
        # plateau
    )
    decay_patience: int = number(1, least=1)
    keep: int = number(1, least=1)  # newest checkpoints kept, besides the best
    # curves for TensorBoard, where it is installed; the last key, which tells a whole config.yaml from one
    # that is cut off
    tensorboard: bool = True

    def check(self) -> None:
        """ConfigError for a value out of range, and for values that do not go together."""
        settings.check(self, "training.")
        if self.schedule == "inverse_sqrt" and not self.warmup:
            raise ConfigError("training.schedule: inverse_sqrt needs warmup of 1 or more")
        if self.schedule == "linear" and self.max_steps <= self.warmup:
            raise ConfigError(
                "training.schedule: linear needs max_steps, the update at which the rate is 0, above warmup"
            )
        if self.metric == "bleu" and not self.dev_beam:
            raise ConfigError("training.metric: bleu needs dev_beam of 1 or more")


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint. Costs are sums since the last log line."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # batches done in this epoch
    sentences: int = 0
    seconds: float = 0.0
    log_cost: float = 0.0
    log_words: int = 0
    best: float | None = None
    best_step: int = 0
    bad: int = 0  # validations without a better score
    decayed: float = 1.0  # product of the decays so far
    validated: int = -1  # last validated step
    saved: list[int] = field(default_factory=list)  # steps whose weights are kept, oldest first


@dataclass
class Job:
    """Everything a training holds. `stop` is asked after each step; a true answer ends it with a save."""

    directory: Path
    config: TrainingConfig
    model: AnyModel | LanguageModel
    optimizer: Optimizer
    stream: BatchStream | ChunkStream
    dev: DevSet | DevText | None
    stop: Callable[[], bool]
    extra: dict[str, Any] = field(
        default_factory=dict
    )  # choices made once a run, such as the matrix back end
    progress: Progress = field(default_factory=Progress)
    carried: Any = None  # tensors: a language model's state after the last batch of running text
    log_sizes: tuple[int, int] | None = (
        None  # bytes of train.tsv and dev.tsv at the last save; None: a new run
    )
    precision: str = "fp32"  # of matrix products in training: fp32 | bf16
    show_bar: bool = False
    team: Team = field(default_factory=Team)  # the processes that train together


def train(job: Job) -> str:
    """Train until a limit, until patience ends or until `stop` says so; returns the reason."""
    config, progress = job.config, job.progress
    tables = open_tables(job)
    board = Board(job.directory / run_directory.CURVES, config.tensorboard and job.team.first, progress.step)
    job.model.train()
    job.team.wrap(job.model)
    clock = Clock(progress.seconds, progress.log_words)
    reason = limit_reached(config, progress)
    while not reason:
        for batches in groups(
            bar(job, job.stream.batches(progress.epoch, progress.batch)), config.accumulate * job.team.size
        ):
            cost, norm = update(job, batches)
            progress.step += 1
            progress.batch += len(batches)
            progress.sentences += sum(batch.sentences for batch in batches)
            progress.log_cost += cost
            progress.log_words += sum(batch.target_tokens for batch in batches)
            progress.seconds = clock.seconds()
            if progress.step % config.log_every == 0:
                write_log(job, tables[0], board, norm, clock)
            if config.validate_every and progress.step % config.validate_every == 0:
                validate_and_save(job, tables, board, clock)
            elif config.save_every and progress.step % config.save_every == 0:
                save(job, tables)
            reason, progress.decayed = job.team.agree(
                "signal" if job.stop() else limit_reached(config, progress), progress.decayed
            )
            if reason:
                break
        if progress.batch >= len(job.stream):
            progress.epoch += 1
            progress.batch = 0
            if not config.validate_every:
                validate_and_save(job, tables, board, clock)
            reason, progress.decayed = job.team.agree(
                reason or limit_reached(config, progress), progress.decayed
            )
    if reason == "signal":
        save(job, tables)
    elif progress.validated != progress.step:
        validate_and_save(job, tables, board, clock)
    board.close()
    return reason


def limit_reached(config: TrainingConfig, progress: Progress) -> str:
    """The first limit that holds, or an empty string."""
    if config.max_steps and progress.step >= config.max_steps:
        return f"max_steps {config.max_steps}"
    if config.max_epochs and progress.epoch >= config.max_epochs:
        return f"max_epochs {config.max_epochs}"
    if config.max_minutes and progress.seconds >= 60 * config.max_minutes:
        return f"max_minutes {config.max_minutes:g}"
    if config.patience and progress.bad >= config.patience:
        return f"patience: {progress.bad} validations without a better {config.metric}"
    return ""


def groups(batches: Iterator[Batch | Chunk], size: int) -> Iterator[list[Batch | Chunk]]:
    """The batches of each update; the last of an epoch may be fewer."""
    while group := list(islice(batches, size)):
        yield group


def update(job: Job, batches: Sequence[Batch | Chunk]) -> tuple[float, float]:
    """One step of the optimizer; returns the cost, Σ -log p of the batches (smoothed), and the gradient's
    norm before clipping."""
    config = job.config
    job.optimizer.zero_grad(set_to_none=True)
    units = {
        "sentence": lambda batch: batch.sentences,
        "word": lambda batch: batch.target_tokens,
        "sum": lambda batch: 0,
    }[config.cost]
    divisor = sum(map(units, batches)) or 1
    cost = 0.0
    job.team.begin_update(job.progress.step)
    with fastmath.Mixed() if job.precision == "bf16" else nullcontext():
        mine = job.team.share(batches)
        for number, (batch, weight) in enumerate(mine, 1):
            batch, total = batch.to(job.model.device), None
            if job.team.size > 1:
                with job.team.exchange(number == len(mine)):
                    total = job.team.cost(batch, config.label_smoothing)
                    torch.autograd.backward(weight * job.team.size * total / divisor)
            else:
                total, job.carried = job.model.cost(batch, config.label_smoothing, job.carried)  # type: ignore[arg-type]
                torch.autograd.backward(total / divisor)  # Tensor.backward would leave the mode
            cost += weight * float(total.detach())
    cost = job.team.total(cost)
    norm = clip(job.model.parameters(), config.clip)
    if not math.isfinite(norm):
        raise UserError(
            f"{job.directory}: the gradient is not a number at step {job.progress.step + 1}; the last "
            "checkpoint is whole. "
            "Lower training.learning_rate or training.clip and start a new run with it"
        )
    set_rate(
        job.optimizer,
        config.learning_rate
        * job.progress.decayed
        * scheduled(config.schedule, config.warmup, job.progress.step + 1, config.max_steps),
    )
    job.optimizer.step()
    return cost, norm


def write_log(job: Job, table: Table, board: Board, norm: float, clock: Clock) -> None:
    progress = job.progress
    if not job.team.first:
        progress.log_cost, progress.log_words = 0.0, 0
        return
    cost = progress.log_cost / progress.log_words
    speed, rate = clock.rate(progress.log_words), rate_of(job.optimizer)
    log.info(
        "Ep. %d : Up. %d : Sen. %s : Cost %.4f : Time %.0f s : %s words/s : gNorm %.3f : L.r. %g",
        progress.epoch + 1, progress.step, f"{progress.sentences:,}", cost, progress.seconds, f"{speed:,.0f}",
        norm, rate,
    )  # fmt: skip
    values = [
        f"{progress.step}",
        f"{progress.epoch + 1}",
        f"{progress.sentences}",
        f"{cost:.6f}",
        f"{norm:.6f}",
        f"{rate:g}",
    ]
    table.add([*values, f"{progress.seconds:.1f}", f"{speed:.0f}"])
    board.add("train", progress.step, {"cost": cost, "norm": norm, "rate": rate, "words_per_second": speed})
    progress.log_cost, progress.log_words = 0.0, 0


def validate_and_save(job: Job, tables: tuple[Table, Table], board: Board, clock: Clock) -> None:
    """Score the development set, note whether it got better, adapt the learning rate, save."""
    progress, config = job.progress, job.config
    if not job.team.first:
        progress.validated = progress.step
        return
    began = time.monotonic()
    progress.validated = progress.step
    if job.dev is None:
        progress.best_step = progress.step
    else:
        score = validate(job.model, job.dev, config.dev_beam)
        value = score.bleu if config.metric == "bleu" else -score.cost
        better = progress.best is None or value > progress.best
        if better:
            progress.best, progress.best_step, progress.bad = value, progress.step, 0
        else:
            progress.bad += 1
            if progress.bad % config.decay_patience == 0:
                progress.decayed *= config.decay
        progress.seconds = clock.seconds()
        bleu = f" : BLEU {score.bleu:.2f}" if config.dev_beam else ""
        star = " : best so far" if better else ""
        log.info(
            "Development : Up. %d : Cost %.4f : Perplexity %.2f%s%s",
            progress.step,
            score.cost,
            score.perplexity,
            bleu,
            star,
        )
        epoch = progress.epoch + (progress.batch > 0)
        values = [
            f"{progress.step}",
            f"{epoch}",
            f"{score.cost:.6f}",
            f"{score.perplexity:.4f}",
            f"{score.bleu:.4f}",
        ]
        tables[1].add([*values, "*" if better else "", f"{progress.seconds:.1f}"])
        board.add("dev", progress.step, {"cost": score.cost, "bleu": score.bleu})
    save(job, tables)
    clock.mark += time.monotonic() - began  # words/s are of training alone


def save(job: Job, tables: tuple[Table, Table]) -> None:
    """Weights, then training.pt that names them, then the index; only then are older weights removed."""
    progress = job.progress
    if not job.team.first:
        return
    check_finite(job)
    recent = (
        [step for step in progress.saved if step != progress.step][-(job.config.keep - 1) :]
        if job.config.keep > 1
        else []
    )
    kept = sorted({*recent, progress.step, *([progress.best_step] if progress.best_step else [])})
    old = tuple(weights_path(job.directory, step).name for step in progress.saved if step not in kept)
    state = {
        "progress": {**asdict(progress), "saved": kept},
        "optimizer": job.optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if job.model.device.type == "cuda" else [],
        "sizes": [table.size() for table in tables],
        "extra": job.extra,
        "carried": job.carried,
    }
    with run_directory.writing(job.directory, drop=old) as new:
        checkpoint.save_tensors(job.model.state_dict(), weights_path(new, progress.step))
        checkpoint.save_tensors(state, new / STATE)
        run_directory.write_index(new, progress.best_step or progress.step, progress.step)
    progress.saved = kept


def check_finite(job: Job) -> None:
    """UserError for weights that are no numbers: they are never saved. A learning rate that is too large
    makes them in one update."""
    for name, parameter in job.model.named_parameters():
        if not math.isfinite(float(parameter.detach().sum())) and not bool(parameter.isfinite().all()):
            raise UserError(
                f"{job.directory}: weights are not finite numbers at step {job.progress.step} ({name}); they "
                "are not saved. "
                "Lower training.learning_rate and start a new run with it"
            )


def load_state(directory: Path) -> dict[str, Any] | None:
    """The last saved training state, or None when nothing was saved yet."""
    if not (directory / STATE).exists():
        return None
    run_directory.verify(directory, INDEX)
    state = checkpoint.load_tensors(directory / STATE)
    if not isinstance(state, dict) or not {"progress", "optimizer", "random", "sizes", "extra"} <= set(state):
        raise CheckpointError(f"{directory / STATE}: not a training state of this toolkit")
    return state


def restore(job: Job, state: dict[str, Any]) -> None:
    """Bring model, optimizer and random numbers to where they were saved."""
    try:
        job.progress = Progress(**state["progress"])
        job.log_sizes = tuple(map(int, state["sizes"]))  # type: ignore[assignment]
        job.optimizer.load_state_dict(state["optimizer"])
        job.carried = on_device(state.get("carried"), job.model.device)
        if "decayed" not in state["progress"]:  # before version 0.3 the rate stood in the optimizer alone
            job.progress.decayed = rate_of(job.optimizer) / job.config.learning_rate
        random, random_cuda = state["random"], state["random_cuda"]
        torch.set_rng_state(random)
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"{job.directory / STATE}: does not fit this configuration ({error})"
        ) from error
    checkpoint.load_weights(job.model, weights_path(job.directory, job.progress.step))
    torch.set_rng_state(random)
    if random_cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(random_cuda)
    if job.team.first:
        tidy(job)


def tidy(job: Job) -> None:
    """After a kill: the index of training.pt, and no weights that it does not name."""
    progress = job.progress
    stale = tuple(
        weights_path(job.directory, step).name
        for step in run_directory.steps(job.directory)
        if step not in progress.saved
    )
    run_directory.adopt(job.directory)
    with run_directory.writing(job.directory, drop=stale) as new:
        run_directory.write_index(new, progress.best_step or progress.step, progress.step)


def on_device(carried: Any, device: torch.device) -> Any:
    """A tensor, or a tuple of them, or nothing."""
    if isinstance(carried, tuple):
        return tuple(part.to(device) for part in carried)
    return None if carried is None else carried.to(device)


def open_tables(job: Job) -> tuple[Table, Table]:
    """train.tsv and dev.tsv, cut back to where the last save left them."""
    sizes = job.log_sizes or (None, None)
    if not job.team.first:
        return NoTable(), NoTable()
    return Table(job.directory / TRAIN_LOG, TRAIN_COLUMNS, sizes[0]), Table(
        job.directory / DEV_LOG, DEV_COLUMNS, sizes[1]
    )


def bar(job: Job, batches: Iterator[Batch | Chunk]) -> Iterator[Batch | Chunk]:
    """A progress bar of the epoch on stderr, when that is a terminal."""
    if not job.show_bar or not job.team.first:
        return batches
    from tqdm import tqdm

    title = f"epoch {job.progress.epoch + 1}"
    return iter(
        tqdm(
            batches,
            title,
            len(job.stream),
            initial=job.progress.batch,
            leave=False,
            file=sys.stderr,
            unit="batch",
        )
    )
