"""Torch as the commands set it up, for Python programs that load a run."""

from pathlib import Path

from nmt.compute import device as devices
from nmt.runs.directory import back_ends_file, exists, resolve


def as_commands_do(directory: str | Path, device: str) -> None:
    """The matrix back end that a run remembers for this processor. ConfigError for a device that is unknown
    or missing."""
    run = resolve(directory)
    if exists(run):
        devices.set_up(device, None, "auto", back_ends_file(run))
