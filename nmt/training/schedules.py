"""Schedules of the learning rate after the warm-up, as factors of `learning_rate`. A new one is a function
and a line in `SCHEDULES`."""

import math
from collections.abc import Callable

Schedule = Callable[[int, int, int], float]  # warmup, update from 1, last update -> factor of the rate


def constant(warmup: int, step: int, last: int) -> float:
    """Factor of a constant learning rate: always 1."""
    return 1.0


def inverse_sqrt(warmup: int, step: int, last: int) -> float:
    """√(warmup / step) (Vaswani et al. 2017)."""
    return math.sqrt(warmup / step)


def linear(warmup: int, step: int, last: int) -> float:
    """Linear decay from 1 at the end of the warm-up to 0 after update `last`, whose own rate is still above
    0. Always 1 if `last` is 0."""
    if not last:
        return 1.0
    return max(0.0, (last + 1 - step) / max(1, last + 1 - warmup))


LINEAR = "linear"
SCHEDULES: dict[str, Schedule] = {"constant": constant, "inverse_sqrt": inverse_sqrt, LINEAR: linear}


def scheduled(schedule: str, warmup: int, step: int, last: int = 0, used: float = 0.0) -> float:
    """Factor of the learning rate at update `step`, counted from 1: step / warmup during the warm-up, then
    that of the schedule. `last`: number of the last update, 0 if only a time limit applies; `used`: share of
    the time limit used so far. Schedules that end at 0 reach it at whichever comes first."""
    factor = step / warmup if step < warmup else SCHEDULES[schedule](warmup, step, last)
    return min(factor, 1 - used) if schedule == LINEAR else factor
