"""Measure variants in turns: CPU seconds of one thread, medians."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import statistics
import time
from collections.abc import Callable


def interleave(variants: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Median CPU seconds of each variant; one unmeasured round first."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name, call in variants.items():
            start = time.process_time()
            call()
            if turn:
                times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def report(title: str, seconds: dict[str, float], goal: str) -> None:
    """Each variant's time and its ratio to the first."""
    base = next(iter(seconds.values()))
    print(f"\n{title}   (goal: {goal})")
    for name, value in seconds.items():
        print(
            f"  {name:<52} {1000 * value:9.1f} ms   {base / value:5.2f}x the speed of the first, "
            f"{value / base:5.2f}x its time"
        )
