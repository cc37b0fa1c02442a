"""The folder of a long job, beside its output: its lock, its settings, and checksums of the files it
reads."""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest

# ---- recorded settings -------------------------------------------------------------------------------------
# JSON in the folder of a long job with the settings that it was started with; resuming needs the same ones.


def read_settings(path: Path) -> dict[str, object] | None:
    """Read recorded settings; None without a file. DataError for a file that is damaged or something else."""
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
    """Whether a folder has recorded settings in the file `name`, or is free for a new job: missing, or empty
    except for a lock and remains of settings whose writing was killed."""
    if not folder.is_dir():
        return not folder.exists()
    names = [path.name for path in folder.iterdir()]
    return name in names or all(entry == locks.FILE or entry.startswith(f"{name}.part") for entry in names)


def damaged_settings(path: Path) -> DataError:
    return DataError(f"{path}: damaged; remove {path.parent} to start over")


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Record the settings of a job that starts."""
    files.write_text(path, [json.dumps(settings)])


def changed_settings(recorded: Mapping[str, object], settings: Mapping[str, object]) -> list[str]:
    """Names of the settings that differ from the recorded ones (in which tuples have become lists)."""
    now = json.loads(json.dumps(settings))
    return [key for key in now if now[key] != recorded.get(key)]


# ---- folder beside an output -------------------------------------------------------------------------------


SETTINGS = "job.json"


def job_folder_path(output: str) -> Path:
    """Path of the job folder of an output."""
    return Path(f"{output}.job")


@contextmanager
def lock_job(output: str, command: str) -> Iterator[None]:
    """Lock the job folder of an output; to be entered before any work. UserError when another process works
    on this output.

    A job that ends before its first result leaves no folder."""
    folder = job_folder_path(output)
    with locks.locked(folder, command):
        try:
            yield
        finally:
            if (folder / SETTINGS).exists() and not has_results(folder):
                locks.clear(folder)


def has_results(folder: Path) -> bool:
    """Whether a job folder holds anything that takes time to compute again."""
    own = (SETTINGS, locks.FILE, files.UNFINISHED)
    return any(path.name not in own and path.stat().st_size for path in folder.iterdir())


def recorded_settings(output: str) -> dict[str, object]:
    """The settings of the unfinished job of an output; {} without one."""
    return read_settings(job_folder_path(output) / SETTINGS) or {}


def is_unfinished(folder: Path, settings: Mapping[str, object], resume: bool) -> bool:
    """Whether the folder has a job to be resumed. ConfigError if it has one without `resume`, or with other
    settings."""
    recorded = read_settings(folder / SETTINGS)
    if recorded is None:
        return False
    if not resume:
        raise ConfigError(
            f"{folder}: has an unfinished job; --resume continues it, or remove the folder to start over"
        )
    if changed := changed_settings(recorded, settings):
        raise ConfigError(
            f"{folder}: was started with other settings ({', '.join(changed)}); give the same ones, or "
            "remove the folder to start over"
        )
    return True


def start_job(output: str, settings: Mapping[str, object], results: str, resume: bool) -> Path:
    """Start or resume the job of an output; returns the path of its file of results, which does not exist yet
    in a new job. A job that was killed before its first result counts as new. ConfigError as raised by
    `is_unfinished`."""
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
# Models are not sent to workers: they read the same files, which checksums verify.


def file_digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """The checksum of each file, by its absolute path. DataError for one that cannot be read."""
    return {os.path.abspath(path): manifest.digest(path) for path in paths}


def check_digests(contents: Mapping[str, str]) -> None:
    """DataError for a file that is missing here or has another checksum. `contents`: checksums by path."""
    for path, expected in contents.items():
        try:
            digest = manifest.digest(path)
        except DataError as error:
            raise DataError(
                f"{error} on {platform.node()}; workers read models from the same path"
            ) from error
        if digest != expected:
            raise DataError(f"{path}: differs on {platform.node()} from the file where the job was started")
