"""How many threads and processes are started. Without torch, which reads some of this when it is imported."""

import os
import sys

# Threads or processes that always start, if slowly, so that a run of a larger machine can be resumed as it
# is.
PER_PROCESSOR, ALWAYS = 4, 16
# Torch was there before this package, and nobody has said what its waiting threads do: they spin.
SPINNING = "torch" in sys.modules and not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
TOO_MANY = "{:,}: more than this machine can use; taking {}"


def bounded(count: int) -> int:
    """How many of the requested threads or processes are started. 100,000 of them end in a segmentation
    fault."""
    return min(count, max(ALWAYS, PER_PROCESSOR * processors()))


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen(count: int) -> bool:
    """Is a number of threads one that the user has set? Torch's own is that of the processors, or with two
    threads to a core that of the cores."""
    return "OMP_NUM_THREADS" in os.environ or count not in (processors(), processors() // 2)


def before_torch() -> None:
    """Waiting threads must sleep: spinning ones cost up to a factor of four on a busy machine. The user's own
    settings win. `import nmt` calls it; torch reads this once, when it is imported."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
