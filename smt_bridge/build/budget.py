"""The time of a build: its steps are timed, the time left is estimated from the recent pace, and later steps
are shortened where the build is behind its plan."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product, takewhile
from pathlib import Path
from typing import cast

from nmt.compute.compiled import notice
from nmt.config import typed_json
from nmt.errors import DataError
from nmt.io import files
from nmt.io.progress import duration
from smt_bridge.build.plan import (
    EVALUATED,
    EXTENDED_ITERATIONS,
    EXTENDED_SYSTEM,
    ITERATIONS,
    LINES,
    NetworkPlan,
    Plan,
    estimate_seconds,
    make_plan,
    plan_candidates,
    seconds_with_workers,
)

# ---- clock -------------------------------------------------------------------------------------------------


FILE = "times.json"  # seconds of each step, summed over restarts
EVERY = 10.0  # seconds between saves of the time that the current step has taken
WINDOW = 180.0  # seconds over which the current step's progress is measured
LEAST = 0.005  # share of a step: with less progress than this, the time left is not extrapolated
RECENT = 0.1  # share of the planned time over which the recent pace is measured
PRIOR = 10.0  # seconds added to planned and actual time: short steps are poor evidence


def read_times(folder: Path) -> dict[str, float]:
    """Read the seconds that each step has taken, summed over restarts: step -> seconds, empty if no step has
    begun. `folder`: work folder of the build. DataError for a damaged file."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        content = json.loads("\n".join(files.read_lines(path)))
        return cast("dict[str, float]", typed_json.convert(dict[str, float], content, "times"))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: damaged ({error}); remove it, it only records how long the steps took"
        ) from error


class BuildClock:
    """Times the steps of a build, compares their times with the planned ones, and saves them to the work
    folder. `start` begins a step, `tick` follows it and `stop` ends it."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float] = time.monotonic,
        once: Callable[[], float] = lambda: notice.seconds,
    ) -> None:
        """`now`: a clock, in seconds. `once`: returns the seconds spent so far on work that a machine does
        only once, such as compiling; they count against the budget but not for the pace. DataError for a
        damaged file of times."""
        self.folder, self.now, self.once = folder, now, once
        self.seconds = read_times(folder)
        self.finished: list[tuple[float, float]] = []  # planned and taken seconds, in this start
        self.name, self.planned, self.later, self.total = "", 0.0, 0.0, 0.0
        self.samples: deque[tuple[float, float]] = deque()

    def start(self, name: str, planned: Mapping[str, float]) -> None:
        """Start or resume a step. `planned`: seconds of all steps, in order: step -> seconds."""
        names = list(planned)
        self.name, self.planned, self.total = name, planned[name], sum(planned.values())
        self.later = sum(planned[later] for later in names[names.index(name) + 1 :])
        self.started = self.saved_at = self.now()
        self.once_before = self.once()
        self.earlier = self.seconds.get(name, 0.0)
        self.samples = deque()

    def tick(self, share: float) -> None:
        """Record the completed share of the step, 0 to 1 (0: unknown); save the time every EVERY seconds."""
        now = self.now()
        if not self.samples or share > self.samples[-1][1]:
            self.samples.append((now, share))
        while len(self.samples) > 2 and self.samples[1][0] < now - WINDOW:
            self.samples.popleft()
        if now - self.saved_at >= EVERY:
            self.save()

    def save(self) -> None:
        """Save how long the step has taken so far, over all restarts."""
        self.saved_at = self.now()
        self.seconds[self.name] = round(self.earlier + self.elapsed(), 1)
        files.write_text(self.folder / FILE, [json.dumps(self.seconds)])

    def stop(self) -> None:
        """End the step and save its time."""
        self.save()
        if not self.earlier:  # else part of it ran before a restart, maybe at another pace
            self.finished.append((self.planned, self.worked()))
        self.name = ""

    def elapsed(self) -> float:
        """Seconds of the step since this process started it."""
        return self.now() - self.started

    def worked(self) -> float:
        """Seconds of the step since this process started it, without work that a machine does only once."""
        return max(0.0, self.elapsed() - (self.once() - self.once_before))

    def spent(self) -> float:
        """Seconds of all steps so far, over all restarts."""
        return sum(self.seconds.values())

    def speed(self) -> float:
        """Share of the step completed per second, recently; 0 if unknown."""
        if len(self.samples) < 2:
            return 0.0
        (first, start), (_, share) = self.samples[0], self.samples[-1]
        return (share - start) / max(1.0, self.now() - first) if share - start >= LEAST else 0.0

    def pace(self) -> float:
        """Actual seconds per planned second, recently; above 1 if the build is slower than planned."""
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
        """Estimated seconds until the build ends, at the recent pace; 0 between steps."""
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


# ---- a build that is late ----------------------------------------------------------------------------------
# A build that is behind its plan shortens its later steps so that it ends within its budget. The decision is
# made before a step begins and written into the plan: another build by that plan gives the same system.


SHORTENED_STEPS = ("tune-extended", "networks", "tune-hybrid", "evaluate")  # decided before each of these
LATE_FACTOR, LATE_SECONDS = 1.05, 15.0  # of the time left, and added to it: less than that is on time


def is_late(plan: Plan, step: str, left: float, pace: float, workers: int) -> bool:
    """Whether `step` and those after it clearly need more than the time left. `left`: seconds, maybe
    negative; `pace`: actual seconds per planned second; `workers`: networks trained at a time."""
    return pace * remaining_seconds(plan, step, workers) > LATE_FACTOR * max(0.0, left) + LATE_SECONDS


def remaining_seconds(plan: Plan, step: str, workers: int) -> float:
    """Planned seconds of a step and all later ones."""
    earlier = earlier_steps(plan, step)
    seconds = seconds_with_workers(plan, workers)
    return sum(value for name, value in seconds.items() if name not in earlier)


def shorten(plan: Plan, step: str, left: float, pace: float, workers: int) -> Plan:
    """Return the first plan of `shorter_plans` whose remaining work from `step` on fits into the time left;
    if none fits, the last, which is the shortest; `plan` itself if nothing can be shortened. Arguments as for
    `is_late`."""
    shortest = plan
    for shortest in shorter_plans(plan, step):
        # The shorter plan may lack the step itself; the next one that it has then counts.
        following = next(name for name in shortest.seconds if name not in earlier_steps(plan, step))
        if pace * remaining_seconds(shortest, following, workers) <= left:
            break
    return shortest


def earlier_steps(plan: Plan, step: str) -> list[str]:
    """Names of the steps before this one; all steps if the plan lacks it."""
    return list(takewhile(lambda name: name != step, plan.seconds))


def shorter_plans(plan: Plan, step: str) -> Iterator[Plan]:
    """Yield plans that need no more time from this step on than `plan`, in order of preference; the last is
    the shortest."""
    names = tuple(network.name for network in plan.networks)
    most = plan.tuning.hybrid_iterations
    if step == "tune-extended":
        yield from shorter_extended(plan, step)
    elif step == "networks":
        for trial in plan_candidates(plan.sizes):
            if trial.names == names[len(names) - len(trial.names) :] and trial.iterations[1] <= most:
                shorter_plan = make_plan(plan.sizes, trial, plan.speed, plan.matmul)
                if shorter_plan and is_within(shorter_plan.networks, plan.networks):
                    yield change_plan(plan, step, shorter_plan.networks, trial.iterations[1], trial.lines)
    elif step == "tune-hybrid":
        for (_, iterations), lines in product(ITERATIONS, LINES):
            if iterations <= most:
                yield change_plan(plan, step, plan.networks, iterations, lines)
    else:
        for lines in LINES:
            if lines < plan.evaluated:
                yield estimate_again(replace(plan, compared=lines), step)


def shorter_extended(plan: Plan, step: str) -> Iterator[Plan]:
    """Yield plans with a shorter tuning of the extended phrase-based system, and one without this tuning
    unless phrase_features is `all`."""
    extended = plan.extended
    assert extended  # else there is no such step
    fewest = 1 if plan.phrase_features == "all" else 0
    for iterations in (*EXTENDED_ITERATIONS, 0):
        if fewest <= iterations < extended.iterations:
            yield estimate_again(replace(plan, extended=replace(extended, iterations=iterations)), step)


def is_within(networks: list[NetworkPlan], limit: list[NetworkPlan]) -> bool:
    """Whether no network gets more updates than in `limit`. KeyError for one that `limit` lacks."""
    updates = {network.name: network.updates for network in limit}
    return all(network.updates <= updates[network.name] for network in networks)


def change_plan(plan: Plan, step: str, networks: list[NetworkPlan], iterations: int, lines: int) -> Plan:
    """Replace the networks of a plan, and shorten the tuning of the system with networks to `iterations`
    iterations on at most `lines` lines. Estimates the seconds from `step` on anew."""
    lines = min(lines, plan.tuning.lines_of_hybrid)
    compared = min(plan.evaluated, EVALUATED * lines)
    tuning = replace(plan.tuning, hybrid_iterations=iterations, hybrid_lines=lines)
    monolingual = plan.monolingual_network and bool(networks)
    changed = replace(
        plan, networks=networks, tuning=tuning, compared=compared, monolingual_network=monolingual
    )
    return estimate_again(changed, step)


def estimate_again(plan: Plan, step: str) -> Plan:
    """Estimate a changed plan anew from this step on; earlier steps keep their seconds."""
    earlier = {name: plan.seconds[name] for name in earlier_steps(plan, step)}
    return replace(plan, seconds=estimate_seconds(plan) | earlier)


def difference(longer: Plan, shorter_plan: Plan) -> str:
    """Describe the work of the plan `longer` that `shorter_plan` drops; empty if there is none."""
    parts = []
    updates = {network.name: network.updates for network in shorter_plan.networks}
    for network in longer.networks:
        if network.name not in updates:
            parts.append(f"no {network.name}")
        elif updates[network.name] < network.updates:
            parts.append(f"{network.name}: {updates[network.name]:,} updates instead of {network.updates:,}")
    old, new = longer.tuning, shorter_plan.tuning
    if longer.extended and shorter_plan.extended != longer.extended:
        iterations = shorter_plan.extended.iterations if shorter_plan.extended else 0
        parts.append(
            f"{EXTENDED_SYSTEM}: {iterations} iterations instead of {longer.extended.iterations}"
            if iterations
            else f"no {EXTENDED_SYSTEM}"
        )
    if shorter_plan.networks and new.hybrid_iterations < old.hybrid_iterations:
        parts.append(
            f"tuning with networks: {new.hybrid_iterations} iterations instead of {old.hybrid_iterations}"
        )
    if shorter_plan.networks and new.lines_of_hybrid < old.lines_of_hybrid:
        parts.append(
            f"tuning with networks on {new.lines_of_hybrid:,} lines instead of {old.lines_of_hybrid:,}"
        )
    if shorter_plan.evaluated < longer.evaluated:
        parts.append(f"compared on {shorter_plan.evaluated:,} lines instead of {longer.evaluated:,}")
    return ", ".join(parts)


def shorten_late(
    plan: Plan, step: str, spent: float, budget: float, pace: float, workers: int
) -> tuple[Plan, str]:
    """Before a step begins, shorten the plan if the build is late. Returns the plan, with the decision
    recorded, and an explanation, which is empty if the build is on time or nothing is left to shorten.
    `spent`: seconds so far; `budget`: seconds of the whole build; `pace`: actual seconds per planned second;
    `workers`: networks trained at a time."""
    new, why = plan, ""
    if is_late(plan, step, budget - spent, pace, workers):
        shorter_plan = shorten(plan, step, budget - spent, pace, workers)
        if what := difference(plan, shorter_plan):
            new = shorter_plan
            late = spent + pace * remaining_seconds(plan, step, workers)
            why = (
                f"behind schedule before {step}: {duration(late)} in total at this pace instead of "
                f"{duration(budget)}; shortened: {what}"
            )
    return replace(new, decisions=plan.decisions | {step: why}), why
