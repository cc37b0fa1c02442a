"""How many threads and processes are started. Without torch, which reads some of this when it is imported."""

import os

# Threads or processes that always start, if slowly, so that a run of a larger machine can be resumed as it
# is.
PER_PROCESSOR, ALWAYS = 4, 16
TOO_MANY = "{:,}: more than this machine can use; taking {}"


def bounded(count: int) -> int:
    """How many of the requested threads or processes are started. 100,000 of them end in a segmentation
    fault."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, max(ALWAYS, PER_PROCESSOR * processors))


def before_torch() -> None:
    """Waiting threads must sleep: spinning ones cost up to a factor of four on a busy machine. The user's own
    settings win."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
