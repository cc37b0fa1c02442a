"""Executors compute the chunks of a long job: in this process, in several, on a cluster, or wherever a plugin
takes them.

An executor is made with two functions. `compute` turns a task into its result in this process. `begin`, which
can be pickled, is called once wherever else tasks are computed, and returns such a function there (it loads
the models). The result of a job never depends on the executor.

On a cluster, a task that killed three workers does not end the job: its result is `Lost`. The other executors
never lose one: a worker process that dies on this machine ends the job.
"""

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self, TypeVar

from nmt.errors import ConfigError
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.dask import Dask
from nmt.jobs.local import Local
from nmt.jobs.lost import Lost
from nmt.jobs.processes import Processes

Task = TypeVar("Task")
Result = TypeVar("Result")
Task_contra = TypeVar("Task_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Executor(Protocol[Task_contra, Result_co]):
    """A context manager: whatever it starts ends with the block, at once where the block ends in an error."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    def map(self, tasks: Iterable[Task_contra]) -> Iterator[Result_co | Lost]:
        """The results, in the order of the tasks, and `Lost` for those that no worker survived. Tasks are
        drawn only as they are needed, since a job may have more of them than memory holds."""
        ...


class ExecutorType(Protocol):
    """How an executor is made; see above."""

    def __call__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> Executor[Task, Result]: ...


EXECUTORS: dict[str, ExecutorType] = {"local": Local, "processes": Processes, "dask": Dask}


def make(
    compute: Callable[[Task], Result],
    begin: Callable[[], Callable[[Task], Result]],
    config: ExecutorConfig,
) -> Executor[Task, Result]:
    """The executor that the configuration names; without a name the cluster where there is one, this process
    for one worker, several processes for more. ConfigError for a name that is not in EXECUTORS, and for a
    cluster that another executor does not use."""
    if config.name not in EXECUTORS:
        raise ConfigError(f"executor {config.name!r} is unknown, expected one of {', '.join(EXECUTORS)}")
    if config.cluster and config.name in ("local", "processes"):
        raise ConfigError(f"--executor {config.name} does not use the --cluster {config.cluster}")
    return EXECUTORS[config.name](compute, begin, config)
