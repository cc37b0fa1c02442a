"""Lines of text, or tuples of lines, converted in chunks by one process or several."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from nmt.jobs import executors
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.lost import all_of

Line = TypeVar("Line")
Result = TypeVar("Result")

CHUNK = 500  # lines: a tenth of a second for a tokenizer


def convert(
    begin: Callable[[], Callable[[Sequence[Line]], Sequence[Result]]], lines: Iterable[Line], workers: int
) -> Iterator[Result]:
    """The result of each line, in order, whatever the number of workers. `begin`, which can be pickled, is
    called once in each process and returns what converts a chunk; its errors come at the first result."""
    with executors.make(begin(), begin, ExecutorConfig(workers=workers)) as executor:
        for results in all_of(executor.map(chunks(iter(lines)))):
            yield from results


def chunks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """The lines, many at a time."""
    while chunk := list(islice(lines, CHUNK)):
        yield chunk
