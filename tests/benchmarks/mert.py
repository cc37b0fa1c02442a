"""MERT on the real pools of Moses' tuner, two threads, wall: NMT_DATA=... python tests/benchmarks/mert.py

Moses' own `mert` took 57 s for the pool of all eight rounds on its machine (2 threads).
"""

from timing import report  # first: it sets the thread policy

import os
import time
from pathlib import Path

import numpy as np

from smt_bridge.tuning import mert
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.mert import LineSearch


def load(folder: Path, runs: int) -> tuple[pools.Pool, np.ndarray]:
    """The pool of some rounds of Moses' own tuning, and where the next one begins."""
    features, scores = (
        [str(folder / f"run{n}.{kind}.dat.gz") for n in range(1, runs + 1)] for kind in ("features", "scores")
    )
    start = np.array((folder / f"run{runs}.init.opt").read_text().split("\n")[0].split(), float)
    return pools.read_moses(features, scores).pool(), start


def main() -> None:
    folder = Path(os.environ["NMT_DATA"]) / "moses-multi30k" / "mert"
    for runs in (1, 2, 8):
        pool, start = load(folder, runs)
        theirs = (folder / f"run{runs}.best-point.txt").read_text().split("=>")[1].strip()
        clock = time.monotonic()
        found = mert.Mert().tune(pool, start, 1, others=[np.ones(len(start))], threads=2)
        print(
            f"rounds 1 to {runs}: {len(pool.features):,} hypotheses, BLEU {found.bleu:.6f}, Moses {theirs}, "
            f"{time.monotonic() - clock:.1f} s wall"
        )
    pool, start = load(folder, 8)
    search = LineSearch(pool)
    values = search.values(start)
    search.best(values, start)  # compiled now, if it was not yet
    clock = time.process_time()
    for axis in range(len(start)):
        search.best(values, np.eye(len(start))[axis])
    exact = (time.process_time() - clock) / len(start)
    clock = time.process_time()
    for step in np.linspace(-1, 1, 50):
        pool.bleu(start + step * np.eye(len(start))[0])
    report(
        "one direction",
        {"50 steps of a grid, each scored": time.process_time() - clock, "exact line search": exact},
        "exact, and faster than a grid",
    )


if __name__ == "__main__":
    main()
