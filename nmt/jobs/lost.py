"""Chunks that no worker survived: the rest of the job is computed, and its last line names theirs.

A consumer of `Executor.map` gets `Lost` in the place of such a chunk. It notes the lines in `LostLines`, and
when all is done `check` ends the command.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from nmt.errors import UserError

Result = TypeVar("Result")

SHOWN = 10  # ranges that the error names


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a task that could not be computed. `reason`: a clause about the workers, such
    as `three workers died while they computed them`."""

    reason: str


KILLED = Lost("three workers died while they computed them")  # on a cluster


def all_of(results: Iterable[Result | Lost]) -> Iterator[Result]:
    """For jobs that need every result: UserError for the first that was lost."""
    for number, result in enumerate(results, 1):
        if isinstance(result, Lost):
            raise UserError(f"chunk {number} of the job: {result.reason}; are they short of memory?")
        yield result


@dataclass
class LostLines:
    """The lines of a job's input whose chunks were lost."""

    ranges: list[tuple[int, int]] = field(default_factory=list)  # first and last line, from 1
    reason: str = ""

    def add(self, first: int, last: int, lost: Lost) -> None:
        """Note the lines of a chunk; chunks come in order."""
        self.reason = self.reason or lost.reason
        if self.ranges and self.ranges[-1][1] == first - 1:
            first = self.ranges.pop()[0]
        self.ranges.append((first, last))

    def check(self, name: str, remedy: str, before: int = 0) -> None:
        """UserError that names the lost lines of `name`, and says what to do; nothing where there are none.
        `before`: lines of it that come before those that were counted."""
        if not self.ranges:
            return
        shown = ", ".join(
            f"{before + first:,}-{before + last:,}" if last > first else f"{before + first:,}"
            for first, last in self.ranges[:SHOWN]
        )
        more = f" and {len(self.ranges) - SHOWN} more ranges" if len(self.ranges) > SHOWN else ""
        noun = "line" if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1] else "lines"
        raise UserError(f"{name}: {noun} {shown}{more}: {self.reason}; {remedy}")
