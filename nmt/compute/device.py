"""The device, its threads, and its back end of matrix products."""

import logging
from pathlib import Path

import torch

from nmt.compute import matmul as back_ends
from nmt.compute.threads import TOO_MANY, bounded
from nmt.errors import ConfigError

log = logging.getLogger(__name__)


def set_up(device: str, threads: int | None, matmul: str, memory: Path | None = None) -> str:
    """Check the device, choose threads and matrix back end; returns a line for the log. ConfigError for a
    device that is unknown or missing.

    `threads`: None: torch decides. `memory`: the file where a run remembers its back end on each processor.
    """
    if threads:
        if (most := bounded(threads)) < threads:
            log.warning("threads: %s", TOO_MANY.format(threads, most))
        torch.set_num_threads(most)
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise ConfigError(f"device: {device!r} is unknown, expected cpu, cuda or cuda:N") from error
    if kind not in ("cpu", "cuda"):
        raise ConfigError(f"device: {device!r} is not supported, expected cpu, cuda or cuda:N")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device: {device!r} was asked for, but this torch finds no GPU; use --device cpu")
    if kind == "cuda":
        return f"device {device}"
    return f"device cpu, {torch.get_num_threads()} threads, {back_ends.choose(matmul, memory)}"
