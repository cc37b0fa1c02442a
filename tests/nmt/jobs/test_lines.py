"""Lines converted by one process or several."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from nmt.errors import ConfigError
from nmt.jobs import lines


def begin() -> Callable[[Sequence[int]], list[int]]:
    return lambda chunk: [number * number for number in chunk]


def begin_nothing() -> Callable[[Sequence[int]], list[int]]:
    raise ConfigError("no such language")


@pytest.mark.parametrize("count", [0, 1, lines.CHUNK, 5 * lines.CHUNK + 3])
def test_any_number_of_workers_gives_the_same_results_in_order(count: int) -> None:
    found = [list(lines.convert(begin, range(count), workers)) for workers in (1, 2)]
    assert found == [[number * number for number in range(count)]] * 2


def test_lines_are_read_as_they_are_needed() -> None:
    read = []

    def numbers() -> Iterator[int]:
        for number in range(100 * lines.CHUNK):
            read.append(number)
            yield number

    next(lines.convert(begin, numbers(), 1))
    assert len(read) == lines.CHUNK


def test_what_cannot_begin_says_so() -> None:
    with pytest.raises(ConfigError, match="no such language"):
        list(lines.convert(begin_nothing, [1], 2))
