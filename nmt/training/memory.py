"""Out of memory in training: one line that says which batch was too large, which fit, and what to set."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nmt.errors import UserError, ran_out_of_memory
from nmt.training.job import AnyBatch, Fitted, TrainingJob


@contextmanager
def report_out_of_memory(job: TrainingJob, batches: Sequence[AnyBatch]) -> Iterator[None]:
    """Notes in `job.fitted` the largest of the batches that the body computes with. UserError where they do
    not fit into memory."""
    largest = of_largest(batches) if batches else Fitted()
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        raise UserError(
            f"{job.directory}: out of memory at update {job.progress.step + 1}, in a batch of "
            f"{shown(largest)}; {so_far(job.fitted)}. {saved(job)}. {remedy(job, largest)}"
        ) from error
    job.fitted = max(job.fitted, largest, key=lambda batch: batch.tokens)


@contextmanager
def validating(job: TrainingJob) -> Iterator[None]:
    """UserError where the development set does not fit into memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        beam = job.config.dev_beam
        hint = f"training.dev_beam={beam // 2} (it is {beam}) or " if beam > 1 else ""
        raise UserError(
            f"{job.directory}: out of memory while the development set was scored, after update "
            f"{job.progress.step}. {saved(job)}. Set {hint}data.max_length lower, or make the model smaller"
        ) from error


def of_largest(batches: Sequence[AnyBatch]) -> Fitted:
    """The sizes of the batch that has most units."""
    batch = max(batches, key=lambda candidate: candidate.tokens)
    return Fitted(sentences=batch.sentences, tokens=batch.tokens, longest=batch.longest)


def shown(batch: Fitted) -> str:
    """Describe a batch for people."""
    sentences = "1 sentence" if batch.sentences == 1 else f"{batch.sentences:,} sentences"
    return f"{sentences}, {batch.tokens:,} units, the longest of {batch.longest:,}"


def so_far(fitted: Fitted) -> str:
    """Describe the largest batches that fit since the process began."""
    return f"the largest that fit had {shown(fitted)}" if fitted.tokens else "none has fit before"


def saved(job: TrainingJob) -> str:
    """Say from which update the training can be resumed."""
    steps = job.progress.saved
    return f"The save of update {max(steps)} is whole" if steps else "Nothing was saved before"


def remedy(job: TrainingJob, batch: Fitted) -> str:
    """Settings of a new run that have the updates of this one, in batches that fit."""
    if batch.sentences == 1:
        return f"Set data.max_length below {batch.longest - 1}, or make the model smaller"
    if getattr(job.model, "carries", False):
        return f"Start a new run with training.batch_size={batch.sentences // 2}"
    tokens, fitted = batch.tokens // 2, job.fitted.tokens
    if tokens < fitted < batch.tokens:
        tokens = fitted
    config, parts = job.config, -(-batch.tokens // tokens)
    key, batches = "accumulate", config.accumulate
    if config.update_batches:
        key, batches = "update_batches", config.update_batches
    return (
        f"Start a new run with training.batch_tokens={in_round_numbers(tokens)} "
        f"training.{key}={parts * batches}, whose updates are as large"
    )


def in_round_numbers(tokens: int) -> int:
    """Two digits and zeros, not more than the number: 3,978 -> 3,900"""
    unit: int = 10 ** max(0, len(str(tokens)) - 2)
    return max(1, tokens // unit * unit)
