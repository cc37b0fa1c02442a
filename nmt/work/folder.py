"""Where a long job lies: the folder beside its output, its lock, and what it was started with."""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest

# ---- settings that work began with -------------------------------------------------------------------------
# The settings that a long piece of work was started with, as JSON in its folder: whoever resumes it has to
# give the same ones.


def read_settings(path: Path) -> dict[str, object] | None:
    """The settings; None where nothing was started. DataError for a damaged file, and for one that is not
    ours."""
    try:
        settings = json.loads(files.read_small(path).decode("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise damaged_settings(path) from error
    if not isinstance(settings, dict):
        raise damaged_settings(path)
    return settings


def is_ours(folder: Path, name: str) -> bool:
    """Was work begun in a folder, whose settings are in the file `name`, or can it begin there: is nothing in
    it but a lock, and what is left of settings whose writing was killed?"""
    if not folder.is_dir():
        return not folder.exists()
    names = [path.name for path in folder.iterdir()]
    return name in names or all(one == locks.FILE or one.startswith(f"{name}.part") for one in names)


def damaged_settings(path: Path) -> DataError:
    """The error for settings that cannot be read."""
    return DataError(f"{path}: damaged; remove {path.parent} to start over")


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Write the settings, as the work starts."""
    files.write_text(path, [json.dumps(settings)])


def changed_settings(recorded: Mapping[str, object], settings: Mapping[str, object]) -> list[str]:
    """The names of settings that are not what they were. Tuples become lists when they are written and
    read."""
    now = json.loads(json.dumps(settings))
    return [key for key in now if now[key] != recorded.get(key)]


# ---- folder beside an output -------------------------------------------------------------------------------


SETTINGS = "job.json"


def job_folder_path(output: str) -> Path:
    """Where the job of an output lies."""
    return Path(f"{output}.job")


@contextmanager
def lock_job(output: str, command: str) -> Iterator[None]:
    """The lock of the folder, taken before any work. UserError when another process works on this output.

    A job that ends before its first result leaves nothing."""
    folder = job_folder_path(output)
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


def recorded_settings(output: str) -> dict[str, object]:
    """What an unfinished job was started with; {} without one."""
    return read_settings(job_folder_path(output) / SETTINGS) or {}


def is_unfinished(folder: Path, settings: Mapping[str, object], resume: bool) -> bool:
    """Is there a job to be resumed? ConfigError for one that `resume` does not ask for, or of other
    settings."""
    recorded = read_settings(folder / SETTINGS)
    if recorded is None:
        return False
    if not resume:
        raise ConfigError(
            f"{folder}: an unfinished job; --resume continues it, or remove the folder to start over"
        )
    if changed := changed_settings(recorded, settings):
        raise ConfigError(
            f"{folder}: was started with other settings ({', '.join(changed)}); give the same ones, or "
            "remove the folder to start over"
        )
    return True


def start_job(output: str, settings: Mapping[str, object], results: str, resume: bool) -> Path:
    """The file of that name in the job folder, which takes the results of finished chunks: that of an
    unfinished job, or none yet. A job that was killed before its first result is no unfinished one.
    ConfigError as `unfinished` raises it."""
    folder = job_folder_path(output)
    if not (folder.is_dir() and has_results(folder)) or not is_unfinished(folder, settings, resume):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / results).unlink(missing_ok=True)
        except OSError as error:
            raise files.cannot_write(folder, error) from error
        write_settings(folder / SETTINGS, settings)
    return folder / results


# ---- files that workers read -------------------------------------------------------------------------------
# The files that a job reads wherever it is computed, such as models: they are not sent, but have to be the
# same there.


def file_digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """The checksum of each file, by its absolute path. DataError for one that cannot be read."""
    return {os.path.abspath(path): manifest.digest(path) for path in paths}


def check_digests(contents: Mapping[str, str]) -> None:
    """DataError unless the files are the same here."""
    for path, expected in contents.items():
        try:
            digest = manifest.digest(path)
        except DataError as error:
            raise DataError(
                f"{error} on {platform.node()}; workers read models from the same path"
            ) from error
        if digest != expected:
            raise DataError(f"{path}: is another file on {platform.node()} than where the job was started")
