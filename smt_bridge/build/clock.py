"""Time the steps of a build, and estimate the time left from the recent pace."""

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from nmt.config import typed_json
from nmt.errors import DataError
from nmt.io import files
from smt_bridge.decoder.compiled import notice

FILE = "times.json"  # seconds of each step, summed over restarts
EVERY = 10.0  # seconds between saves of the time that the current step has taken
WINDOW = 180.0  # seconds over which the current step's progress is measured
LEAST = 0.005  # share of a step: less progress is too little to extrapolate
RECENT = 0.1  # share of the planned time from whose pace the rest is extrapolated
PRIOR = 10.0  # seconds added to planned and actual time: short steps are poor evidence


def read_times(folder: Path) -> dict[str, float]:
    """Seconds of each step that has begun. DataError for a damaged file."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        content = json.loads("\n".join(files.read_lines(path)))
        return cast("dict[str, float]", typed_json.typed(dict[str, float], content, "times"))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: damaged ({error}); remove it: it only says how long the steps have taken"
        ) from error


class BuildClock:
    """Actual against planned time of the steps.

    `once`: seconds so far of work that a machine does only once, such as compiling. They count against the
    budget but not for the pace.
    """

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float] = time.monotonic,
        once: Callable[[], float] = lambda: notice.seconds,
    ) -> None:
        self.folder, self.now, self.once = folder, now, once
        self.took = read_times(folder)
        self.finished: list[tuple[float, float]] = []  # planned and taken seconds, in this start
        self.name, self.planned, self.later, self.total = "", 0.0, 0.0, 0.0
        self.samples: deque[tuple[float, float]] = deque()

    def start(self, name: str, planned: Mapping[str, float]) -> None:
        """Start or resume a step. `planned`: seconds of all steps, in order."""
        names = list(planned)
        self.name, self.planned, self.total = name, planned[name], sum(planned.values())
        self.later = sum(planned[later] for later in names[names.index(name) + 1 :])
        self.begun = self.noted = self.now()
        self.once_before = self.once()
        self.earlier = self.took.get(name, 0.0)
        self.samples = deque()

    def tick(self, share: float) -> None:
        """Record the share of the step that is done, as far as it is known; saves the time every few
        seconds."""
        now = self.now()
        if not self.samples or share > self.samples[-1][1]:
            self.samples.append((now, share))
        while len(self.samples) > 2 and self.samples[1][0] < now - WINDOW:
            self.samples.popleft()
        if now - self.noted >= EVERY:
            self.note()

    def note(self) -> None:
        """Save how long the step has taken so far, over all restarts."""
        self.noted = self.now()
        self.took[self.name] = round(self.earlier + self.elapsed(), 1)
        files.write_text(self.folder / FILE, [json.dumps(self.took)])

    def stop(self) -> None:
        """End the step and save its time."""
        self.note()
        if not self.earlier:  # else a part of it was done at another pace
            self.finished.append((self.planned, self.worked()))
        self.name = ""

    def elapsed(self) -> float:
        """Seconds of the step since this process started it."""
        return self.now() - self.begun

    def worked(self) -> float:
        """Like `elapsed`, without work that is done only once."""
        return max(0.0, self.elapsed() - (self.once() - self.once_before))

    def spent(self) -> float:
        """Seconds of all steps so far, over all restarts."""
        return sum(self.took.values())

    def speed(self) -> float:
        """Share of the step completed per second, recently; 0 if unknown."""
        if len(self.samples) < 2:
            return 0.0
        (first, start), (_, share) = self.samples[0], self.samples[-1]
        return (share - start) / max(1.0, self.now() - first) if share - start >= LEAST else 0.0

    def pace(self) -> float:
        """Actual seconds per planned second, recently."""
        planned = took = 0.0
        recent = self.finished.copy()
        if self.name and (speed := self.speed()):
            seconds = min(WINDOW, self.elapsed())
            recent.append((seconds * speed * self.planned, seconds))
        elif self.name and self.worked() > self.planned:
            recent.append((self.planned, self.worked()))
        for step_planned, step_took in reversed(recent):
            planned, took = planned + step_planned, took + step_took
            if planned >= RECENT * self.total:
                break
        return (took + PRIOR) / (planned + PRIOR)

    def left(self) -> float:
        """Seconds until the build ends, at the recent pace."""
        if not self.name:
            return 0.0
        pace = self.pace()
        if speed := self.speed():
            current = (1 - self.samples[-1][1]) / speed
        else:  # an overdue step is expected to take another tenth of its time so far
            current = max(pace * self.planned - self.elapsed(), 0.1 * self.elapsed())
        return current + pace * self.later

    def done(self) -> float:
        """Planned seconds of the step that are completed."""
        share = self.samples[-1][1] if self.samples else 0.0
        guess = min(0.99, self.elapsed() / max(1.0, self.pace() * self.planned))
        return self.planned * min(1.0, share or guess)
