"""A job in stages, such as map and reduce, whose tasks leave their results in a folder that all workers
share.

    FOLDER/job.json         what the job was started with; who resumes it has to give the same
    FOLDER/STAGE/00000      what task 0 of a stage made (nmt/jobs/parts.py)

A task whose file is there and whole is not computed again, so that a job may be killed at any moment, and a
task may be computed twice.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt import locks
from nmt.errors import ConfigError, DataError, UserError
from nmt.jobs import begun, parts
from nmt.jobs.executors import Executor
from nmt.jobs.folder import SETTINGS, unfinished
from nmt.jobs.lost import SHOWN, Lost
from nmt.jobs.parts import Part

Task = tuple[str, int]  # a stage, and the number of a task in it


@dataclass(frozen=True)
class Place:
    """Where a job leaves its files."""

    folder: Path  # whole path: workers were started elsewhere
    command: str  # that holds it
    resume: bool = False


def place(folder: Path, stage: str, number: int) -> Path:
    """The file of a task."""
    return folder / stage / f"{number:05d}"


class Worker(ABC):
    """What computes tasks, in the command or in a process of its own; it keeps what all of them need."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the job."""
        self.folder = folder

    @abstractmethod
    def make(self, stage: str, number: int) -> Iterable[Part]:
        """What the file of a task holds."""

    def __call__(self, task: Task) -> None:
        """Make the file of a task, unless it is there."""
        finish(place(self.folder, *task), partial(self.make, *task))


def begin(worker: Worker) -> Worker:
    """In a process that computes tasks. ConfigError where the folder of the job is not to be seen."""
    check_shared(worker.folder)
    return worker


def finish(path: Path, make: Callable[[], Iterable[Part]]) -> None:
    """Write a file unless it is there and whole."""
    if not parts.is_whole(path):
        parts.write(path, make())


@contextmanager
def held(where: Place, settings: Mapping[str, object]) -> Iterator[None]:
    """The folder of a job, locked, and removed once the job is done. It stays after an error, except for one
    in the data: DataError.

    ConfigError for an unfinished job that `resume` does not ask for, one of other settings, and a folder with
    other files."""
    folder = where.folder
    if not begun.is_ours(folder, SETTINGS):
        raise ConfigError(f"{folder}: is not empty, and not the folder of a job; name another one")
    with locks.locked(folder, where.command):
        if not unfinished(folder, settings, where.resume):
            begun.write(folder / SETTINGS, settings)
        try:
            yield
        except DataError:
            locks.clear(folder)
            raise
        locks.clear(folder)


def check_shared(folder: Path) -> None:
    """ConfigError, on a worker, for a folder that it does not see."""
    if not (folder / SETTINGS).is_file():
        raise ConfigError(f"{folder}: is not the folder of the job here; all hosts have to share it (--work)")


def run(executor: Executor[Task, object], stage: str, names: Sequence[str]) -> Iterator[int]:
    """Compute the tasks of a stage, and yield their numbers, in order, as they are done. `names`: what each
    task is about. UserError that names the tasks that no worker survived, when all others are done."""
    lost: list[tuple[str, str]] = []
    results = executor.map((stage, number) for number in range(len(names)))
    for number, result in enumerate(results):
        if isinstance(result, Lost):
            lost.append((names[number], result.reason))
        else:
            yield number
    if lost:
        more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        raise UserError(
            f"{', '.join(name for name, _ in lost[:SHOWN])}{more}: {lost[0][1]}; the rest is kept, --resume "
            "computes what is missing"
        )
