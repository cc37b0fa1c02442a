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
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from nmt.compute import device as devices
from nmt.compute.precision import check_precision
from nmt.errors import ConfigError
from nmt.io.locks import locked
from nmt.lm import language_model_class
from nmt.runs import directory as run_directory
from nmt.runs.language_model import LineScorer, line_scorer
from nmt.runs.torch_run import TorchRun
from nmt.training import build, config_file, loop, parallel, state, validation
from nmt.training.config import RunConfig, describe_languages
from nmt.training.job import TrainingJob, TrainingProgress, deciding_metric, limit_reached, never
from nmt.training.protocols import TrainingObserver
from nmt.training.state import open_tables

log = logging.getLogger(__name__)


Configuration = RunConfig | str | Path | Mapping[str, object]  # or the path of a YAML file, or its content


def train(
    config: Configuration,
    *,
    overwrite: bool = False,
    stop: Callable[[], bool] = never,
    callbacks: Sequence[TrainingObserver] = (),
    progress: bool | None = None,
) -> TorchRun:
    """Train a translator and load its best weights. A run that exists is resumed exactly where it was saved.

    `overwrite`: remove an existing run and start afresh. `stop` is called after each update; if it returns
    true, training ends with a save. `callbacks`: each is called as callback(kind, step, values) when costs
    are logged (kind `train`) and after each validation (`dev`), with the number of the update and values by
    name; an exception of theirs ends the training, which can be resumed. `progress`: show a bar on stderr,
    by default if that is a terminal. Costs are logged by the loggers of package `nmt`. ConfigError,
    DataError or CheckpointError says in one line what is wrong with the configuration, a text or the run;
    UserError also for a run directory that is in use, and as from `nmt.training.loop.train`.

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
    run_training(config, overwrite=overwrite, stop=stop, observers=callbacks, show_bar=progress)
    return TorchRun.of(config.run, device=config.device)


def train_language_model(
    config: Configuration,
    *,
    overwrite: bool = False,
    stop: Callable[[], bool] = never,
    callbacks: Sequence[TrainingObserver] = (),
    progress: bool | None = None,
) -> LineScorer:
    """Train the language model that section `lm` describes, and load its best weights; arguments and errors
    as in `train`.

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
        command = "train" if config.settings.translates else "nmt-train"
        raise ConfigError(f"{config.run}: {config.settings.noun}; train it by {command}")
    run_training(config, overwrite=overwrite, stop=stop, observers=callbacks, show_bar=progress)
    return line_scorer(config.run, device=config.device)


def read(config: Configuration) -> RunConfig:
    """Read and check a configuration. A RunConfig is completed in place, see `config_file.check_config`.
    Errors as from `config_file.load`."""
    if isinstance(config, RunConfig):
        config_file.check_types(config)
        config_file.check_config(config)
        return config
    if isinstance(config, Mapping):
        return config_file.from_mapping(config)
    return config_file.load(str(config))


# ---- training ----------------------------------------------------------------------------------------------


def run_training(
    config: RunConfig,
    *,
    config_path: str = "",
    overwrite: bool = False,
    stop: Callable[[], bool] = never,
    observers: Sequence[TrainingObserver] = (),
    show_bar: bool | None = False,
) -> str:
    """Check the configuration and the texts, then train in the run directory, which is locked meanwhile;
    returns why training ended. `config_path`: the file of the configuration, empty if there is none;
    `observers`: the callbacks of `train`; `show_bar`: its `progress`; other arguments and errors as in
    `train`."""
    directory = Path(config.run)
    if overwrite and parallel.may_restart():
        raise ConfigError(
            "--overwrite: with --max-restarts torchrun starts the processes again after a fault, and they "
            f"would remove {directory} again; remove it before, or use another run directory"
        )
    fresh = overwrite or not run_directory.exists(directory)
    if fresh:
        build.check_new_run(config, config_path)
    cpu_only = config.lm is not None and language_model_class(config.lm.type).cpu_only
    device = devices.resolve_device(config.device, cpu_only)
    check_precision(config.precision, device)
    if config.init_from and not config.settings.translates:
        raise ConfigError("init_from: for translators only; leave it out")
    if config.data.cache and os.path.realpath(config.data.cache) == os.path.realpath(directory):
        raise ConfigError(
            f"data.cache: {config.data.cache} is the run directory; name a folder of its own, or leave it "
            "empty"
        )
    team, device = parallel.join(device, config.seed)
    shown = sys.stderr.isatty() if show_bar is None else show_bar
    job = TrainingJob(config, device, team, stop, shown, observers)
    if not team.first:
        logging.getLogger("nmt").setLevel(logging.WARNING)
        with parallel.report_lost_process():
            return run_job(job, overwrite)
    with team.busy():
        build.trainable_kind(config.settings).check_data(config, fresh)
    run_directory.check_folder(directory, overwrite)
    # after torchrun has restarted the processes, the earlier first one may still be ending, on any host
    with locked(directory, "nmt-train", patience=parallel.grace_period()), parallel.report_lost_process():
        return run_job(job, overwrite)


def run_job(job: TrainingJob, overwrite: bool) -> str:
    """Create or reopen the run directory, set up the job, and train; returns why training ended. `overwrite`:
    remove an existing run first. Errors as from `reopen` and `loop.train`."""
    team = job.team
    with team.first_then_others(job.directory):
        if team.first and overwrite:
            run_directory.remove_run(job.directory)
        saved = reopen(job)
        over = saved_limit(job, saved) if saved else ""
        if not over:
            assemble(job, saved)
    if over:
        team.leave()
        return over
    report_sizes(job)
    for callback in job.callbacks:
        callback.on_start(job.epoch_updates)
    if saved:
        state.restore(job, saved)
        log.info("resuming from update %d", job.progress.step)
    loop.record_update_size(job)
    reason = loop.train(job)
    team.leave()
    report_end(job, job.progress, reason)
    return reason


def reopen(job: TrainingJob) -> state.TrainingState | None:
    """Load the saved training state of an existing run; None for a new run, and for one without a save. The
    first process removes what an earlier start left unfinished. ConfigError if the configuration differs,
    DataError if an input file has changed, CheckpointError for a damaged run."""
    directory = job.directory
    if job.team.first:
        run_directory.sweep(directory)
    if not run_directory.exists(directory):
        return None
    run_directory.check_version(directory)
    run_directory.verify(directory)
    if changed := config_file.differences(job.config, directory):
        raise ConfigError(
            f"{directory}: was started with other settings: {'; '.join(changed)}. Use another run directory, "
            "or --overwrite"
        )
    build.check_inputs(job.config.data, directory)
    # under torchrun the first process may be writing
    return run_directory.read_consistent(directory, partial(state.load_state, directory))


def saved_limit(job: TrainingJob, saved: state.TrainingState) -> str:
    """The limit that a saved job has already reached; empty if there is none. If there is one, neither texts
    nor model need to be loaded: the first process cleans up the run and its logs, and reports the end."""
    progress, sizes = state.saved_position(job.directory, saved)
    reason = limit_reached(job.training, progress)
    if not reason or progress.validated != progress.step:
        return ""
    if job.team.first:
        state.tidy(job.directory, progress)
        for table in open_tables(job.directory, sizes):
            table.close()
        report_end(job, progress, reason)
    return reason


def assemble(job: TrainingJob, saved: state.TrainingState | None) -> None:
    """Set up a job: device, threads, model, batches and development set. `saved`: state of a run to resume,
    None for a new run. Errors as from the `build` of the model's kind, and from `devices.set_up_device`."""
    config, job.fresh = job.config, saved is None
    resolve_tokenizer(config)
    devices.settle_threads()
    # a resumed run has the back end of matrix products that it was started with
    matmul = saved["extra"]["matmul"] if saved else config.matmul
    log.info("%s", devices.set_up_device(job.device, config.threads or None, matmul))
    if job.fresh:
        log.info("languages: %s", describe_languages(config))
    build.trainable_kind(config.settings).build(job)
    build.check_inputs(config.data, job.directory)  # they may have changed while they were read


def resolve_tokenizer(config: RunConfig) -> None:
    """Replace `bleu_tokenizer: auto` in the configuration by the tokenizer that the run has recorded or, for
    a new run, by one that suits the data."""
    directory, training = Path(config.run), config.training
    if config.monolingual:
        return
    if run_directory.exists(directory):
        training.bleu_tokenizer = config_file.read_run_config(directory).training.bleu_tokenizer
    else:
        training.bleu_tokenizer = validation.bleu_tokenizer(training.bleu_tokenizer, config.data)


def report_sizes(job: TrainingJob) -> None:
    """Log the size of the model, and the number of batches per epoch."""
    log.info("parameters: %s", f"{sum(p.numel() for p in job.model.parameters()):,}")
    if job.training.batch_tokens:
        log.info(
            "batches: %s in the first epoch, of at most %s units",
            f"{job.stream.count(0):,}", f"{job.training.batch_tokens:,}",
        )  # fmt: skip


def report_end(job: TrainingJob, progress: TrainingProgress, reason: str) -> None:
    """Log why training ended, the best validation, and how to go on."""
    best = ""
    if progress.best is not None:
        metric = deciding_metric(job.training.metric, progress)
        best = f", best {abs(progress.best):.4f} {metric} at update {progress.best_step}"
    log.info("stopped at update %d (%s)%s", progress.step, reason, best)
    log.info(
        "the same command resumes from here" if reason == "signal" else f"run directory: {job.directory}"
    )
