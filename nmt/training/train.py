"""Training from Python: nmt.train and nmt.train_language_model; nmt-train calls `run_training`.

>>> import nmt
>>> run = nmt.train({
...     "run": "runs/new",
...     "data": {"train_source": "train.en", "train_target": "train.fr"},
...     "model": {"type": "rnn", "embedding": 8, "hidden": 8, "maxout": 8},
...     "training": {"max_steps": 2, "batch_size": 8},
... })
>>> run.name
'new@2'
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from torch import nn

from nmt.compute import device as devices
from nmt.compute.precision import check_precision
from nmt.errors import ConfigError
from nmt.io.locks import locked
from nmt.lm.registry import language_model_class
from nmt.runs import directory as run_directory
from nmt.runs.language_model import LineScorer, line_scorer
from nmt.runs.run import Run
from nmt.training import (
    build,
    config_file,
    inputs,
    loop,
    parallel,
    sharing,
    state,
    validation,
)
from nmt.training.build import Parts
from nmt.training.callbacks import Callback
from nmt.training.config import RunConfig, describe_languages
from nmt.training.job import TrainingJob, TrainingProgress, deciding, limit_reached, optimizer_of
from nmt.training.optimizers import WeightAverage
from nmt.training.parallel import Team
from nmt.training.records import open_tables

log = logging.getLogger(__name__)

Configuration = RunConfig | str | Path | Mapping[str, object]  # or the path of a YAML file, or its content


def never() -> bool:
    """A `stop` that does not."""
    return False


def train(config: Configuration, *, overwrite: bool = False, stop: Callable[[], bool] = never) -> Run:
    """Train a translator and load its best weights. A run that exists is resumed exactly where it was saved.

    `overwrite`: remove an existing run and start afresh. `stop` is asked after each update; true ends the
    training with a save. Progress is logged by the loggers of package `nmt`. ConfigError, DataError or
    CheckpointError says in one line what is wrong with the configuration, a text or the run.

    >>> run = train({
    ...     "run": "runs/small",
    ...     "data": {"train_source": "train.en", "train_target": "train.fr"},
    ...     "model": {"embedding": 8, "hidden": 8, "maxout": 8},
    ...     "training": {"max_steps": 2, "batch_size": 8},
    ... })
    >>> len(run.translate(["A boy sleeps.", "A girl runs."]))
    2
    """
    config = read(config)
    if config.lm is not None:
        raise ConfigError(f"{config.run}: a language model; train it by train_language_model")
    if not config.settings.translates:
        noun = config.settings.noun
        raise ConfigError(f"{config.run}: {noun}, which does not translate; train it by nmt-train")
    run_training(config, overwrite=overwrite, stop=stop)
    return Run.of(config.run, device=config.device)


def train_language_model(
    config: Configuration, *, overwrite: bool = False, stop: Callable[[], bool] = never
) -> LineScorer:
    """Train the language model that section `lm` describes; arguments as in `train`.

    >>> lm = train_language_model({
    ...     "run": "runs/cslm",
    ...     "data": {"train_text": "train.fr"},
    ...     "lm": {"type": "cslm", "embedding": 8, "layers": [8], "order": 3},
    ...     "training": {"max_steps": 2, "batch_size": 8},
    ... })
    >>> len(lm.score(["Un garçon dort."]))
    1
    """
    config = read(config)
    if config.lm is None:
        raise ConfigError(f"{config.run}: a translator; train it by train")
    run_training(config, overwrite=overwrite, stop=stop)
    return line_scorer(config.run, device=config.device)


def read(config: Configuration) -> RunConfig:
    """Read and check a configuration."""
    if isinstance(config, RunConfig):
        config_file.check_config(config)
        return config
    if isinstance(config, Mapping):
        return config_file.from_mapping(config)
    return config_file.load(str(config))


# ---- a training --------------------------------------------------------------------------------------------


def run_training(
    config: RunConfig,
    *,
    config_path: str = "",
    overwrite: bool = False,
    stop: Callable[[], bool] = never,
    show_bar: bool = False,
) -> str:
    """Check what can be checked, then train in a run directory that no other training works in; returns why
    the training ended. `config_path`: the file of the configuration."""
    directory = Path(config.run)
    if overwrite and parallel.may_restart():
        raise ConfigError(
            "--overwrite: with --max-restarts torchrun starts the processes again after a fault, and they "
            f"would remove {directory} again; remove it before, or use another run directory"
        )
    fresh = overwrite or not run_directory.exists(directory)
    if fresh:
        inputs.check_new_run(config, config_path)
    cpu_only = config.lm is not None and language_model_class(config.lm.type).cpu_only
    device = devices.resolve_device(config.device, cpu_only)
    check_precision(config.precision, device)
    if config.init_from and not config.settings.translates:
        raise ConfigError("init_from: for translators only")
    if config.data.cache and os.path.realpath(config.data.cache) == os.path.realpath(directory):
        raise ConfigError(
            f"data.cache: {config.data.cache} is the run directory; name a folder of its own, or leave it "
            "empty"
        )
    team, device = parallel.join(device, config.seed)
    work = Training(config=config, directory=directory, team=team, device=device)
    if not team.first:
        logging.getLogger("nmt").setLevel(logging.WARNING)
        with parallel.reached():
            return work.run(overwrite, stop, show_bar)
    with team.busy():
        build.trainable_kind(config.settings).check_data(config, fresh)
    run_directory.check_folder(directory, overwrite)
    # the process that was first before torchrun started them again may still be ending, on whatever host
    with locked(directory, "nmt-train", patience=parallel.patience()), parallel.reached():
        return work.run(overwrite, stop, show_bar)


@dataclass
class Training:
    """One training of a run directory, by one of the processes of a team."""

    config: RunConfig
    directory: Path
    team: Team
    device: str  # of this process

    def run(self, overwrite: bool, stop: Callable[[], bool], show_bar: bool) -> str:
        """Make or reopen the run directory, put the job together, train; returns why it ended."""
        team = self.team
        with team.first_then_others(self.directory):
            if team.first and overwrite:
                run_directory.remove_run(self.directory)
            saved = self.reopen()
            over = self.over(saved) if saved else ""
            parts = None if over else self.parts(saved, show_bar)
        if parts is None:
            team.leave()
            return over
        job = self.job(parts, stop, show_bar)
        if saved:
            self.resume(job, saved)
        sharing.record_shares(job)
        reason = loop.train(job)
        team.leave()
        self.report(job.progress, reason)
        return reason

    def parts(self, saved: state.TrainingState | None, show_bar: bool) -> Parts:
        """Model, batches and development set of a new run, or of one that was saved."""
        self.resolve()
        self.set_up_torch(saved)
        fresh = saved is None
        if fresh:
            log.info("languages: %s", describe_languages(self.config))
        # of a corpus that the first process has checked the others read only their own batches
        setup = build.RunSetup(self.config, self.directory, self.device, fresh, show_bar, self.team.first)
        parts = build.trainable_kind(self.config.settings).build(setup)
        inputs.check_inputs(self.config.data, self.directory)  # they may have changed while they were read
        return parts

    def over(self, saved: state.TrainingState) -> str:
        """The limit that a saved training has reached, where nothing of it is left to do; else empty. Then
        neither texts nor model are loaded."""
        progress, sizes = state.saved_position(self.directory, saved)
        reason = limit_reached(self.config.training, progress)
        if not reason or progress.validated != progress.step:
            return ""
        if self.team.first:
            state.tidy(self.directory, progress)
            for table in open_tables(self.directory, sizes):
                table.close()
            self.report(progress, reason)
        return reason

    def resolve(self) -> None:
        """Settings that are `auto`: what the run has, or for a new one what suits the data."""
        training, data = self.config.training, self.config.data
        if self.config.monolingual:
            return
        if run_directory.exists(self.directory):
            training.bleu_tokenizer = config_file.read_run_config(self.directory).training.bleu_tokenizer
        else:
            training.bleu_tokenizer = validation.bleu_tokenizer(training.bleu_tokenizer, data)

    def set_up_torch(self, saved: state.TrainingState | None) -> None:
        """Device, threads and matrix back end; a resumed run has the back end that it was started with."""
        devices.settle_threads()
        wish = saved["extra"]["matmul"] if saved else self.config.matmul
        log.info("%s", devices.set_up_device(self.device, self.config.threads or None, wish))

    def job(self, parts: Parts, stop: Callable[[], bool], show_bar: bool) -> TrainingJob:
        """Everything the training loop needs."""
        training = self.config.training
        model = parts.model
        keeps_average = training.ema > 0 and self.team.first
        log.info("parameters: %s", f"{sum(p.numel() for p in model.parameters()):,}")
        if training.batch_tokens:
            log.info(
                "batches: %s in the first epoch, of at most %s units",
                f"{parts.stream.count(0):,}", f"{training.batch_tokens:,}",
            )  # fmt: skip
        job = TrainingJob(
            directory=self.directory,
            config=training,
            model=model,
            optimizer=optimizer_of(training, model.parameters()),
            stream=parts.stream,
            validate=parts.validate,
            stop=stop,
            extra={"matmul": devices.back_end_in_use()},
            precision=self.config.precision,
            show_bar=show_bar,
            callbacks=[part for part in cast(nn.Module, model).modules() if isinstance(part, Callback)],
            team=self.team,
            average=WeightAverage(model.parameters(), training.ema) if keeps_average else None,
        )
        for callback in job.callbacks:
            callback.on_start(job.epoch_updates)
        return job

    def report(self, progress: TrainingProgress, reason: str) -> None:
        """Log how a training ended."""
        best = ""
        if progress.best is not None:
            metric = deciding(self.config.training.metric, progress)
            best = f", best {abs(progress.best):.4f} {metric}"
        log.info(
            "stopped at update %d (%s)%s at update %d",
            progress.step, reason, best, progress.best_step or progress.step,
        )  # fmt: skip
        log.info(
            "the same command resumes from here" if reason == "signal" else f"run directory: {self.directory}"
        )

    # ---- resume --------------------------------------------------------------------------------------------

    def reopen(self) -> state.TrainingState | None:
        """The saved training state of an existing run; None for a new one. Configuration and input files have
        to be the same."""
        if self.team.first:
            run_directory.sweep(self.directory)
        if not run_directory.exists(self.directory):
            return None
        run_directory.check_version(self.directory)
        run_directory.verify(self.directory)
        if changed := config_file.differences(self.config, self.directory):
            raise ConfigError(
                f"{self.directory}: was started with other settings: {'; '.join(changed)}. Use another run "
                "directory, or --overwrite"
            )
        inputs.check_inputs(self.config.data, self.directory)
        # under torchrun the first process may be writing
        return run_directory.read_consistent(self.directory, partial(state.load_state, self.directory))

    def resume(self, job: TrainingJob, saved: state.TrainingState) -> None:
        """Bring a job to where it was saved."""
        state.restore(job, saved)
        log.info("resuming from update %d", job.progress.step)
