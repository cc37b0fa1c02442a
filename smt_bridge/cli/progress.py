"""How far a long job is: a bar on a terminal, a line a minute in a log."""

import logging
import sys
import time

log = logging.getLogger("nmt.progress")

EVERY = 60.0  # seconds between lines


class Progress:
    """`with Progress(total, "pairs") as progress: progress.add(n)`. `total` 0: unknown."""

    def __init__(self, total: int, unit: str, quiet: bool = False) -> None:
        self.total, self.unit = total, unit
        self.done = self.given = 0
        self.start = self.told = time.monotonic()
        self.bar = None
        if sys.stderr.isatty() and not quiet:
            from tqdm import tqdm

            self.bar = tqdm(total=total or None, unit=f" {unit}", file=sys.stderr, leave=False, smoothing=0.1)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def skip(self, count: int) -> None:
        """Done by an earlier start: no part of the rate."""
        self.given += count
        self.add(count)

    def add(self, count: int) -> None:
        self.done += count
        if self.bar is not None:
            self.bar.update(count)
        elif time.monotonic() - self.told >= EVERY:
            self.told = time.monotonic()
            log.info("%s", self.line())

    def reach(self, done: int, total: int) -> None:
        """The job has done this many units, of a total that is known only now."""
        self.total = total
        if self.bar is not None:
            self.bar.total = total
        self.add(done - self.done)

    @property
    def rate(self) -> float:
        """Units a second of this start."""
        return (self.done - self.given) / max(1e-9, time.monotonic() - self.start)

    def line(self) -> str:
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
