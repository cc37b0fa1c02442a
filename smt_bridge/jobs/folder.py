"""Where a long job lies: the folder beside its output, its lock, and what it was started with."""

from contextlib import AbstractContextManager
from pathlib import Path

from nmt import locks
from smt_bridge.jobs import begun

SETTINGS = "job.json"


def folder_of(output: str) -> Path:
    """Where the job of an output lies."""
    return Path(f"{output}.job")


def held(output: str, command: str) -> AbstractContextManager[None]:
    """The lock of the folder, taken before any work. UserError when another process works on this output."""
    return locks.locked(folder_of(output), command)


def settings_of(output: str) -> dict[str, object]:
    """What an unfinished job was started with; {} without one."""
    return begun.read(folder_of(output) / SETTINGS) or {}
