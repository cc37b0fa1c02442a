"""A training job: its model, data and optimizer, its progress, and the limits that end it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self, cast

from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.compute.precision import bf16_products
from nmt.io.numbers import counted
from nmt.lm.base import Carried
from nmt.training.config import RunConfig, TrainingConfig
from nmt.training.cuda_graphs import CostGraphs
from nmt.training.optimizers import WeightAverage, make_optimizer
from nmt.training.parallel import Team
from nmt.training.protocols import AnyBatch, Callback, Stream, Trainable, TrainingObserver
from nmt.training.validation import DevScore


@dataclass
class TrainingProgress:
    """Progress of a run; saved with checkpoints. `log_cost` and `log_words`: sums since the last log line."""

    step: int = 0  # updates
    epoch: int = 0
    batch: int = 0  # batches done in this epoch
    sentences: int = 0
    seconds: float = 0.0
    log_cost: float = 0.0
    log_words: int = 0
    best: float | None = None  # best development score, see DevScore.value
    best_step: int = 0
    bad: int = 0  # validations without a better score
    zeros: int = 0  # validations in a row whose BLEU or chrF, if it is the metric, was 0.00
    decayed: float = 1.0  # product of the decays so far
    perplexity: float | None = None  # of the last validation
    validated: int = -1  # last validated step
    validation_seconds: float = 0.0  # of the last validation
    saved: list[int] = field(default_factory=list)  # steps whose weights are kept, oldest first
    processes: int = 0  # number of processes since the last start; 0 before the first update
    update_batches: int = 0  # batches per update, summed over processes; 0 = not recorded, assume unchanged


@dataclass(frozen=True)
class BatchSize:
    """Size of a batch: sentences, units of the side that has more, units of the longest sentence."""

    sentences: int = 0
    tokens: int = 0
    longest: int = 0

    @classmethod
    def of(cls, batch: AnyBatch) -> Self:
        return cls(batch.sentences, batch.tokens, batch.longest)

    def __str__(self) -> str:
        sentences = counted(self.sentences, "sentence")
        return f"{sentences}, {counted(self.tokens, 'unit')}, the longest of {self.longest:,}"


def never() -> bool:
    """The default `stop` callback: never ends the training."""
    return False


@dataclass(eq=False, repr=False)
class TrainingJob:
    """The training of a run, in one of the processes that share it. `run_training` fills it step by step:
    first the configuration; then model and batches, which nmt/training/build.py makes; then the saved state.

    `stop` is called after each update; if it returns true, training ends with a save.
    """

    config: RunConfig
    device: str = "cpu"  # of this process
    team: Team = field(default_factory=Team)  # the processes that train together
    stop: Callable[[], bool] = never
    show_bar: bool = False
    observers: Sequence[TrainingObserver] = ()
    fresh: bool = True  # the run has no saved weights yet

    # filled in by `set_up`
    model: Trainable = field(init=False)
    stream: Stream = field(init=False)
    validate: Callable[[], DevScore] | None = None  # None: no development set
    optimizer: Optimizer = field(init=False)
    average: WeightAverage | None = None  # moving average for training.ema; only in the first process

    progress: TrainingProgress = field(default_factory=TrainingProgress)
    carried: Carried = None  # state of a language model after the last batch, where the next one continues
    log_sizes: tuple[int, int] | None = None  # bytes of train.tsv and dev.tsv at the last save; None: new run
    spare: AnyBatch | None = None  # computed and discarded by a process that has no batch of its own
    largest: BatchSize = BatchSize()  # of the batches that fit into memory since this start
    unread: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # cost, norm of updates on a GPU
    graphs: CostGraphs | None = None  # on a GPU: see nmt/training/cuda_graphs.py

    def set_up(
        self, model: Trainable, stream: Stream, validate: Callable[[], DevScore] | None = None
    ) -> None:
        """Set the model with its initial weights and the training batches; creates the optimizer and, with
        training.ema, the average of the weights. `validate`: computes the development scores, if any."""
        config = self.training
        self.model, self.stream, self.validate = model, stream, validate
        self.optimizer = make_optimizer(
            config.optimizer,
            model.parameters(),
            config.learning_rate,
            config.rho,
            config.eps,
            (config.beta1, config.beta2),
        )
        if config.ema > 0 and self.team.first:
            self.average = WeightAverage(model.parameters(), config.ema)
        self.graphs = self.make_graphs()

    def make_graphs(self) -> CostGraphs | None:
        """Graphs for the model and the precision of this job, none recorded yet; None where there can be
        none: on the CPU, with several processes, and for models that do not take padding."""
        model = self.model
        if model.device.type == "cpu" or self.team.size > 1 or not getattr(model, "takes_padding", False):
            return None
        return CostGraphs(model, self.training.label_smoothing, self.use_precision)

    @property
    def directory(self) -> Path:
        return Path(self.config.run)

    @property
    def training(self) -> TrainingConfig:
        return self.config.training

    @cached_property
    def callbacks(self) -> list[Callback]:
        """The parts of the model that are notified during training."""
        return [part for part in cast(nn.Module, self.model).modules() if isinstance(part, Callback)]

    @property
    def update_batches(self) -> int:
        """Batches per update, summed over processes: the configured number, the recorded one, or `accumulate`
        times the number of processes."""
        config, size = self.training, self.team.size
        return config.update_batches or self.progress.update_batches or config.accumulate * size

    @cached_property
    def epoch_updates(self) -> int:
        """Number of updates in the first epoch; later epochs have about as many."""
        return -(-self.stream.count(0) // self.update_batches)

    def use_precision(self) -> AbstractContextManager[object]:
        """Context in which matrix products have the configured precision."""
        if self.config.precision != "bf16":
            return nullcontext()
        return bf16_products(self.model.device, getattr(self.model, "autocast", False))

    def use_average(self) -> AbstractContextManager[None]:
        """Context in which the model has the weights to validate and save: their moving average, if any."""
        return self.average.in_place() if self.average else nullcontext()


# ---- limits ------------------------------------------------------------------------------------------------
# When training ends: its limits, the share of them that is used up, and the time that is left.


def limit_reached(config: TrainingConfig, progress: TrainingProgress) -> str:
    """Name the first limit that has been reached, for the log; empty if training may go on."""
    if config.max_steps and progress.step >= config.max_steps:
        return f"max_steps {config.max_steps}"
    if config.max_epochs and progress.epoch >= config.max_epochs:
        return f"max_epochs {config.max_epochs}"
    if config.max_minutes and progress.seconds >= seconds_allowed(config, progress):
        return f"max_minutes {config.max_minutes:g}"
    if config.patience and progress.bad >= config.patience:
        metric = deciding_metric(config.metric, progress)
        return f"patience: {progress.bad} validations without a better {metric}"
    return ""


def deciding_metric(metric: str, progress: TrainingProgress) -> str:
    """The measure that chose the best validation: the metric, or the cost while the metric is 0.00."""
    return "cost" if progress.best is not None and progress.best <= 0 else metric


def seconds_allowed(config: TrainingConfig, progress: TrainingProgress) -> float:
    """Seconds after which the last update must end so that the final validation stays within `max_minutes`;
    it is assumed to take as long as the previous one."""
    return 60 * config.max_minutes - progress.validation_seconds


def time_used(config: TrainingConfig, progress: TrainingProgress) -> float:
    """Share of `max_minutes` used so far, 0 to 1; 0 without this limit. Computed from the saved state alone,
    so that a resumed run has the same learning rates as one that was never stopped."""
    if not config.max_minutes:
        return 0.0
    allowed = seconds_allowed(config, progress)
    return min(1.0, progress.seconds / allowed) if allowed > 0 else 1.0


def last_update(job: TrainingJob) -> int:
    """The last update allowed by max_steps or max_epochs, whichever comes first, assuming that all epochs are
    as long as the first; 0 if neither is set."""
    config = job.training
    by_epochs = config.max_epochs * job.epoch_updates if config.max_epochs else 0
    return min(filter(None, (config.max_steps, by_epochs)), default=0)


def seconds_left(job: TrainingJob, pace: float) -> float | None:
    """Seconds until a limit ends training, including validations; patience may end it sooner. None if no
    limit is set. `pace`: seconds per update."""
    config, progress = job.training, job.progress
    times = []
    if last := last_update(job):
        updates = max(0, last - progress.step)
        validations = updates / (config.validate_every or job.epoch_updates)
        times.append(updates * pace + validations * progress.validation_seconds)
    if config.max_minutes:
        times.append(max(0.0, 60 * config.max_minutes - progress.seconds))
    return min(times, default=None)
