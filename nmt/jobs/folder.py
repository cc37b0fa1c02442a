"""Where a long job lies: the folder beside its output, its lock, and what it was started with."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nmt import files, locks
from nmt.errors import ConfigError
from nmt.jobs import begun

SETTINGS = "job.json"


def folder_of(output: str) -> Path:
    """Where the job of an output lies."""
    return Path(f"{output}.job")


@contextmanager
def held(output: str, command: str) -> Iterator[None]:
    """The lock of the folder, taken before any work. UserError when another process works on this output.

    A job that ends before its first result leaves nothing."""
    folder = folder_of(output)
    with locks.locked(folder, command):
        try:
            yield
        finally:
            if (folder / SETTINGS).exists() and not has_results(folder):
                locks.clear(folder)


def has_results(folder: Path) -> bool:
    """Is there anything in the folder of a job that it would not make again at once?"""
    own = (SETTINGS, locks.FILE, files.UNFINISHED)
    return any(path.name not in own and path.stat().st_size for path in folder.iterdir())


def settings_of(output: str) -> dict[str, object]:
    """What an unfinished job was started with; {} without one."""
    return begun.read(folder_of(output) / SETTINGS) or {}


def unfinished(folder: Path, settings: Mapping[str, object], resume: bool) -> bool:
    """Is there a job to be resumed? ConfigError for one that `resume` does not ask for, or of other
    settings."""
    before = begun.read(folder / SETTINGS)
    if before is None:
        return False
    if not resume:
        raise ConfigError(
            f"{folder}: an unfinished job; --resume continues it, or remove the folder to start over"
        )
    if changed := begun.changed(before, settings):
        raise ConfigError(
            f"{folder}: was started with other settings ({', '.join(changed)}); give the same ones, or "
            "remove the folder to start over"
        )
    return True


def begin(output: str, settings: Mapping[str, object], results: str, resume: bool) -> Path:
    """The file of that name in the job folder, which takes the results of finished chunks: that of an
    unfinished job, or none yet. A job that was killed before its first result is no unfinished one.
    ConfigError as `unfinished` raises it."""
    folder = folder_of(output)
    if not (folder.is_dir() and has_results(folder)) or not unfinished(folder, settings, resume):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / results).unlink(missing_ok=True)
        except OSError as error:
            raise files.cannot_write(folder, error) from error
        begun.write(folder / SETTINGS, settings)
    return folder / results
