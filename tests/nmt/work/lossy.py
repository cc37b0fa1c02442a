"""An executor that loses some of its tasks, as a cluster does those that kill its workers."""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeVar

from nmt.work.executors import KILLED, Executor, ExecutorConfig, Local, Lost

Task = TypeVar("Task")
Result = TypeVar("Result")


class Lossy(Local[Task, Result]):
    """Computes in this process; see `Losing`."""

    numbers: Container[int] = ()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result | Lost]:  # type: ignore[override]
        for number, task in enumerate(tasks):
            yield KILLED if number in self.numbers else self.compute(task)


class Losing:
    """What makes an executor that loses the tasks of these numbers, from 0."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def __call__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> Executor[Task, Result]:
        made = Lossy(compute, begin, config)
        made.numbers = self.numbers
        return made
