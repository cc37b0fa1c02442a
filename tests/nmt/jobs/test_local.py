"""The executor of this process: a task is drawn when its result is asked for."""

from collections.abc import Callable, Iterator

import pytest

from nmt.errors import DataError
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.local import Local


def never() -> Callable[[int], int]:
    raise AssertionError("there is no other process to begin in")


def test_one_after_the_other() -> None:
    drawn: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(5):
            drawn.append(number)
            yield number

    with Local(lambda number: number * number, never, ExecutorConfig()) as running:
        results = running.map(tasks())
        for number in range(5):
            assert drawn == list(range(number))
            assert next(results) == number * number


def test_an_error_is_that_of_the_task() -> None:
    def compute(number: int) -> int:
        if number == 2:
            raise DataError("two")
        return number

    found: list[int] = []
    with pytest.raises(DataError, match=r"^two$"), Local(compute, never, ExecutorConfig()) as running:
        found.extend(running.map(range(5)))
    assert found == [0, 1]
