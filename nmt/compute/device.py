"""The device, its threads, and its back end of matrix products."""

import logging
from functools import cache
from pathlib import Path

import torch

from nmt.compute import matmul as back_ends
from nmt.compute import threads as policy
from nmt.compute.threads import TOO_MANY, bounded
from nmt.errors import ConfigError

log = logging.getLogger(__name__)

EXPECTED = "cpu, cuda, cuda:N or auto"


def resolve(device: str, cpu_only: bool = False) -> str:
    """What `auto` means on this machine: the first GPU, or the CPU where torch finds none or the model
    computes on the CPU only. Other names stay as they are."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() and not cpu_only else "cpu"


def set_up(device: str, threads: int | None, matmul: str, memory: Path | None = None) -> str:
    """Check the device, choose threads and matrix back end; returns a line for the log. ConfigError for a
    device that is unknown or missing.

    `threads`: None: torch decides. `memory`: the file where a run remembers its back end on each processor.
    """
    device = resolve(device)
    if threads:
        if (most := bounded(threads)) < threads:
            log.warning("threads: %s", TOO_MANY.format(threads, most))
        torch.set_num_threads(most)
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise ConfigError(f"device: {device!r} is unknown, expected {EXPECTED}") from error
    if kind not in ("cpu", "cuda"):
        raise ConfigError(f"device: {device!r} is not supported, expected {EXPECTED}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device: {device!r} was asked for, but this torch finds no GPU; use --device cpu")
    if kind == "cuda":
        return f"device {device}"
    back_ends.choose(matmul, memory).report()
    threads = torch.get_num_threads()
    return f"device cpu, {threads} thread{'s' * (threads > 1)}"


@cache
def settle_threads() -> None:
    """For Python programs, once: where torch was imported before nmt, its waiting threads spin, and that can
    no longer be changed. Then one thread computes, unless the user has set another number."""
    if policy.SPINNING and not policy.chosen(torch.get_num_threads()) and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
        log.warning(
            "torch was imported before nmt, so that waiting threads would take the processor from working "
            "ones: one thread computes. Import nmt first to use all, or call torch.set_num_threads"
        )
