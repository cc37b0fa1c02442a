"""Agreement of the processes of a training before their first update, on the number of batches of an update
and the order in which gradients are summed.

The batches of an update stay as many as they were when the run began, whoever shares them. So a run that goes
on with fewer processes, or more, has the same updates of the same sentences at the same rates; only the sums
are rounded otherwise, and units are dropped by other random numbers."""

import logging
from contextlib import nullcontext

import torch

from nmt.compute.precision import Mixed
from nmt.training import memory
from nmt.training.job import TrainingJob, TrainingProgress

log = logging.getLogger(__name__)


def record_shares(job: TrainingJob) -> None:
    """Note how many processes share how many batches of an update, and log where that is not as it was."""
    progress, size, batches = job.progress, job.team.size, job.update_batches
    if job.team.first:
        report(progress, size, batches)
    progress.processes, progress.update_batches = size, batches


def report(progress: TrainingProgress, size: int, batches: int) -> None:
    """Log how many processes there are, and what they share."""
    update_batches = progress.update_batches
    if size > 1:
        log.info("processes: %d; an update is of %d batches", size, batches)
    if progress.processes and progress.processes != size:
        log.info("processes: %d, of an earlier start %d", size, progress.processes)
    if update_batches and update_batches != batches:
        log.info("an update is of %d batches, before of %d", batches, update_batches)
    if batches < size:
        log.warning(
            "training.update_batches: an update is of %d, so %d of the %d processes have nothing to do; "
            "%d would be one for each, in larger updates",
            batches, size - batches, size, size,
        )  # fmt: skip


def compute_first_batch(job: TrainingJob) -> None:
    """Compute a batch whose gradients are dropped, where several processes train.

    DistributedDataParallel sums gradients in the order in which those of the first backward pass came. That
    pass itself has another order, so without this one the sums of three processes or more would be rounded
    otherwise in the first update after a start, and a resumed run would differ in the last bits. The batch,
    the same in all processes and starts, also stands in where there are fewer batches than processes.
    """
    if job.team.size == 1:
        return
    job.spare = next(iter(job.stream.batches(0)))
    with memory.report_out_of_memory(job, [job.spare]), Mixed() if job.precision == "bf16" else nullcontext():
        cost = job.team.cost(job.spare.to(job.model.device), job.config.label_smoothing)
        torch.autograd.backward(0 * cost)
    job.optimizer.zero_grad(set_to_none=True)
