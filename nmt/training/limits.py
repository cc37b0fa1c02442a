"""When a training ends: its limits, the share of them that is used up, and the time that is left."""

from nmt.training.config import TrainingConfig
from nmt.training.job import Job, Progress


def limit_reached(config: TrainingConfig, progress: Progress) -> str:
    """The first limit that holds, or an empty string."""
    if config.max_steps and progress.step >= config.max_steps:
        return f"max_steps {config.max_steps}"
    if config.max_epochs and progress.epoch >= config.max_epochs:
        return f"max_epochs {config.max_epochs}"
    if config.max_minutes and progress.seconds >= seconds_allowed(config, progress):
        return f"max_minutes {config.max_minutes:g}"
    if config.patience and progress.bad >= config.patience:
        metric = deciding(config.metric, progress)
        return f"patience: {progress.bad} validations without a better {metric}"
    return ""


def deciding(metric: str, progress: Progress) -> str:
    """The measure that chose the best validation: the metric, or the cost while the metric is 0.00."""
    return "cost" if progress.best is not None and progress.best <= 0 else metric


def seconds_allowed(config: TrainingConfig, progress: Progress) -> float:
    """The seconds after which the last update ends, so that `max_minutes` holds the last validation, too: it
    takes about as long as the one before."""
    return 60 * config.max_minutes - progress.validation_seconds


def time_used(config: TrainingConfig, progress: Progress) -> float:
    """The share of `max_minutes` that has passed, 0 to 1; 0 without such a limit. It follows from the saved
    state alone, so that a resumed run has the rates of one that never stopped."""
    if not config.max_minutes:
        return 0.0
    allowed = seconds_allowed(config, progress)
    return min(1.0, progress.seconds / allowed) if allowed > 0 else 1.0


def last_update(job: Job) -> int:
    """The update that max_steps or max_epochs, whichever comes first, makes the last one; all epochs are
    taken to be as long as the first. 0: neither is set."""
    config = job.config
    by_epochs = config.max_epochs * job.epoch_updates if config.max_epochs else 0
    return min(filter(None, (config.max_steps, by_epochs)), default=0)


def seconds_left(job: Job, pace: float) -> float | None:
    """Seconds until a limit ends the training, validations included; patience may end it sooner. None: no
    limit is set. `pace`: seconds of an update."""
    config, progress = job.config, job.progress
    times = []
    if last := last_update(job):
        updates = max(0, last - progress.step)
        validations = updates / (config.validate_every or job.epoch_updates)
        times.append(updates * pace + validations * progress.validation_seconds)
    if config.max_minutes:
        times.append(max(0.0, 60 * config.max_minutes - progress.seconds))
    return min(times, default=None)
