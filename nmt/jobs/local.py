"""The executor `local`: chunks are computed in this process, one after the other."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Self, TypeVar

from nmt.jobs.config import ExecutorConfig

Task = TypeVar("Task")
Result = TypeVar("Result")


class Local(Generic[Task, Result]):
    """No other process; a task is drawn when its result is asked for."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        self.compute = compute

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results, in the order of the tasks."""
        return map(self.compute, tasks)
