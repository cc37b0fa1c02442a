"""Progress of a long job: a bar on a terminal, a line per minute in the log."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm


log = logging.getLogger(__name__)

Item = TypeVar("Item")
Total = int | Callable[[], int]  # 0: unknown. A function is called only once the total is to be shown

EVERY = 60.0  # seconds between lines
DRAW = 0.1  # seconds between two states of the bar
WITHOUT_ETA = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"  # format of a bar with `left`
MOST = 256  # maximum number of units between two readings of the clock


class Progress:
    """`with Progress(total, "pairs") as progress: progress.add(n)`; a job that may have been resumed calls
    `reach` instead."""

    def __init__(
        self,
        total: Total | None,
        unit: str,
        visible: bool = False,
        title: str = "",
        opening: str = "",
        left: Callable[[], float] | None = None,
    ) -> None:
        """`total`: None if the first call of `reach` gives it. `visible`: show a bar on stderr, which must be
        a terminal. `title`: what the job does. `opening`: a line for the log when work begins, after all
        checks. `left`: seconds to the end, if the caller can estimate them better than from the rate so
        far."""
        self.unit, self.visible, self.title, self.opening = unit, visible, title, opening
        self.left = left
        self.total: Total = 0
        self.done = 0
        self.skipped = 0  # units finished before this start, which do not count for the rate
        self.begun = False
        self.note: Callable[[], str] | None = None  # text for the end of the bar and of the log line
        self.bar: tqdm[NoReturn] | None = None
        if total is not None:
            self.start_clock(0, total)

    def start_clock(self, done: int, total: Total) -> None:
        """Start the clock, log the opening line, show the bar. `done`: units that were finished earlier."""
        self.begun, self.total = True, total
        if self.opening:
            log.info("%s", self.opening)
        self.start = time.monotonic()
        self.logged = self.start  # when the last log line was written
        self.pace_time, self.pace_done = self.start, done  # from which the pace is measured
        self.step, self.due = 1, done + 1  # units between readings of the clock, `done` at the next one
        self.first: tuple[float, int] | None = None  # when the first units were finished, and `done` then
        self.done = self.skipped = done
        if self.visible:
            from tqdm import tqdm

            self.bar = tqdm(
                desc=self.title or None,
                total=self.known_total() or None,
                initial=done,
                unit=f" {self.unit}",
                file=sys.stderr,
                leave=False,
                smoothing=0.1,
                mininterval=0,
                miniters=0,
                bar_format=WITHOUT_ETA if self.left else None,
            )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def reach(self, done: int, total: int) -> None:
        """Advance to `done` of `total` units. If `Progress` was not given a total, the clock starts with the
        first call, whose units were done earlier and do not count for the rate."""
        if not self.begun:
            self.start_clock(done, total)
        if total != self.total:  # known only now
            self.total = total
            if self.bar is not None:
                self.bar.total = total
        self.add(done - self.done)

    def add(self, count: int) -> None:
        self.done += count
        if self.done >= self.due:
            self.refresh()

    def skip(self, count: int) -> None:
        """Count units that were finished before this start; they do not affect the rate."""
        self.skipped += count
        self.add(count)

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items, counting each as a unit when the next is requested."""
        for item in items:
            yield item
            self.add(1)

    def refresh(self) -> None:
        """Read the clock; update the bar and write a log line when they are due."""
        now = time.monotonic()
        self.first = self.first or (now, self.done)
        passed = now - self.pace_time
        if self.bar is not None and (passed >= DRAW or self.done == self.total):
            if self.note:
                self.bar.set_postfix_str(self.note(), refresh=False)
            elif self.left:
                self.bar.set_postfix_str(f"about {duration(self.left())} left", refresh=False)
            self.bar.update(self.done - self.bar.n)
        if now - self.logged >= EVERY:
            self.logged = now
            if log.isEnabledFor(logging.INFO):
                log.info("%s", self.line(), extra={"on_bar": self.bar is not None})
        # Read the clock about twice between two updates of the bar.
        step = (self.done - self.pace_done) * DRAW / 2 / passed if passed > 0 else MOST
        self.step = max(1, min(int(step), 2 * self.step, MOST))
        self.due = self.done + self.step
        if passed >= DRAW:
            self.pace_time, self.pace_done = now, self.done

    def known_total(self) -> int:
        """The total as a number; 0 if unknown."""
        if not isinstance(self.total, int):
            self.total = self.total()
        return self.total

    @property
    def rate(self) -> float:
        """Units per second since this start, without those finished earlier."""
        return (self.done - self.skipped) / max(1e-9, time.monotonic() - self.start)

    def line(self) -> str:
        """Format the line for the log: with `left` the share and the time left, else the count, the rate and,
        if the total is known, the time left."""
        title = f"{self.title}: " if self.title else ""
        total, rate = self.known_total(), self.rate
        if self.left:
            return f"{title}{100 * self.done / max(1, total):.0f}%, about {duration(self.left())} left"
        if not total:
            return f"{title}{self.done:,} {self.unit}, {format_rate(rate)}"
        pace = rate
        if self.first and self.done > self.first[1]:  # the first units waited for what is loaded or compiled
            pace = (self.done - self.first[1]) / max(1e-9, time.monotonic() - self.first[0])
        elif self.done - self.skipped == 1:  # most of its time may have been that wait
            pace = 0.0
        left = f", {format_rate(rate)}" if rate > 0 else ""
        left += f", {duration(max(0, total - self.done) / pace)} left" if pace > 0 else ""
        note = self.note() if self.note else ""
        return f"{title}{self.done:,} of {total:,} {self.unit}{left}{note and f'; {note}'}"


def format_rate(rate: float) -> str:
    """Format a rate: 1,234 a second, 3.5 a second; slow ones per minute or hour."""
    factor, name = next(
        ((factor, name) for factor, name in ((1, "a second"), (60, "a minute")) if rate * factor >= 1),
        (3600, "an hour"),
    )
    value = rate * factor
    return f"{value:,.0f} {name}" if value >= 9.95 else f"{value:.1f} {name}"


def duration(seconds: float) -> str:
    """Format seconds: 75 -> 1 min 15 s"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
