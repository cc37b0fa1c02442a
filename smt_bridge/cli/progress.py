"""How far a long job has come: a bar on a terminal, a line a minute in a log."""

import logging
import sys
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm

log = logging.getLogger(__name__)

EVERY = 60.0  # seconds between lines


class Progress:
    """`with Progress(total, "pairs") as progress: progress.add(n)`; a job that may
    have been resumed calls `reach` instead."""

    def __init__(self, total: int | None, unit: str, quiet: bool = False, opening: str = "") -> None:
        """`total` 0: unknown; None: the first call of `reach` says. `opening`: a line for the log when the
        work begins, after all that may be refused."""
        self.opening = opening
        self.unit, self.visible = unit, sys.stderr.isatty() and not quiet
        self.done = self.given = 0
        self.begun = False
        self.bar: tqdm[NoReturn] | None = None
        if total is not None:
            self.begin(0, total)

    def begin(self, done: int, total: int) -> None:
        """Start the clock, and the bar."""
        self.begun, self.total = True, total
        if self.opening:
            log.info("%s", self.opening)
        self.start = self.logged = time.monotonic()
        self.done = self.given = done
        if self.visible:
            from tqdm import tqdm

            self.bar = tqdm(
                total=total or None,
                initial=done,
                unit=f" {self.unit}",
                file=sys.stderr,
                leave=False,
                smoothing=0.1,
            )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def reach(self, done: int, total: int) -> None:
        """So much is done. The first call says what an earlier start has done: no part of the rate."""
        if not self.begun:
            self.begin(done, total)
        if total != self.total:  # known only now
            self.total = total
            if self.bar is not None:
                self.bar.total = total
        self.add(done - self.done)

    def add(self, count: int) -> None:
        """More is done."""
        self.done += count
        if self.bar is not None:
            self.bar.update(count)
        elif time.monotonic() - self.logged >= EVERY:
            self.logged = time.monotonic()
            log.info("%s", self.line())

    @property
    def rate(self) -> float:
        """Units a second since this start."""
        return (self.done - self.given) / max(1e-9, time.monotonic() - self.start)

    def line(self) -> str:
        """As the log has it."""
        if not self.total:
            return f"{self.done:,} {self.unit}, {self.rate:,.0f} a second"
        left = (self.total - self.done) / max(1e-9, self.rate)
        return (
            f"{self.done:,} of {self.total:,} {self.unit}, {self.rate:,.0f} a second, {duration(left)} left"
        )


def duration(seconds: float) -> str:
    """75 -> 1 min 15 s"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
