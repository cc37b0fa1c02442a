"""Threads, processors and memory of this process; without torch, which reads some of these settings when it
is imported."""

import ctypes
import os
import resource
import sys

# ---- threads -----------------------------------------------------------------------------------------------
# Limits on the number of threads and processes.

# Any machine can start this many threads or processes, if slowly, so that a run from a larger machine can be
# resumed with the same number.
THREADS_PER_PROCESSOR, ALWAYS_STARTED = 4, 16
# Torch was imported before this package, and no setting says how its threads wait: they spin.
SPINNING = "torch" in sys.modules and not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
TOO_MANY_THREADS = "{:,}: more than this machine can use; using {}"


def bounded_threads(count: int) -> int:
    """Limit a number of threads or processes to what this machine can start: four per processor, at least 16.
    100,000 of them would end in a segmentation fault."""
    return min(count, max(ALWAYS_STARTED, THREADS_PER_PROCESSOR * processors()))


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_chosen(count: int) -> bool:
    """Whether the user has set this number of threads. Torch's default is the number of processors, or with
    two threads per core the number of cores."""
    return "OMP_NUM_THREADS" in os.environ or count not in (processors(), processors() // 2)


def before_torch() -> None:
    """Make waiting threads sleep, since spinning costs up to a factor of four on a busy machine; the user's
    own settings win. Called by `import nmt`, because torch reads this when it is imported."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")


# ---- memory ------------------------------------------------------------------------------------------------
# The peak memory of this process, and how the C library treats freed memory.

TRIM_VARIABLE, TRIM_OF_DASK = "MALLOC_TRIM_THRESHOLD_", "65536"  # what `dask worker` sets for its processes
M_TRIM, M_MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
GLIBC_TRIM, GLIBC_MMAP = 64 << 20, 32 << 20  # bytes: the values that glibc adapts to if neither is set


def peak_memory() -> float:
    """Peak memory of this process, in MB of 2^20 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)  # macOS counts bytes, Linux KiB


def keep_freed_memory() -> None:
    """Undo a setting of Dask's workers that makes the allocator request new pages for each tensor of 128 KiB
    or more, which slows a model of 1,000 units by a quarter. Does nothing if the setting is not Dask's, or
    the C library is not glibc."""
    if os.environ.get(TRIM_VARIABLE) != TRIM_OF_DASK:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP, GLIBC_MMAP)
        mallopt(M_TRIM, GLIBC_TRIM)
