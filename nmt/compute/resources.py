"""Threads, processors and memory of this process. Without torch, which reads some of this when it is
imported."""

import ctypes
import os
import resource
import sys

# ---- threads -----------------------------------------------------------------------------------------------
# How many threads and processes are started. Without torch, which reads some of this when it is imported.

# Threads or processes that always start, if slowly, so that a run of a larger machine can be resumed as it
# is.
THREADS_PER_PROCESSOR, ALWAYS_STARTED = 4, 16
# Torch was there before this package, and nobody has said what its waiting threads do: they spin.
SPINNING = "torch" in sys.modules and not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
TOO_MANY_THREADS = "{:,}: more than this machine can use; taking {}"


def bounded_threads(count: int) -> int:
    """How many of the requested threads or processes are started. 100,000 of them end in a segmentation
    fault."""
    return min(count, max(ALWAYS_STARTED, THREADS_PER_PROCESSOR * processors()))


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_chosen(count: int) -> bool:
    """Is a number of threads one that the user has set? Torch's own is that of the processors, or with two
    threads to a core that of the cores."""
    return "OMP_NUM_THREADS" in os.environ or count not in (processors(), processors() // 2)


def before_torch() -> None:
    """Waiting threads must sleep: spinning ones cost up to a factor of four on a busy machine. The user's own
    settings win. `import nmt` calls it; torch reads this once, when it is imported."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")


# ---- memory ------------------------------------------------------------------------------------------------
# The memory of this process: how much it has had at most, and what the C library does with what is freed.

TRIM_VARIABLE, TRIM_OF_DASK = "MALLOC_TRIM_THRESHOLD_", "65536"  # what `dask worker` sets for its processes
M_TRIM, M_MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
GLIBC_TRIM, GLIBC_MMAP = 64 << 20, 32 << 20  # bytes: what glibc comes to by itself where neither is set


def peak_memory() -> float:
    """The most memory that this process has had, in MB of 2^20 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)  # macOS counts bytes, Linux KiB


def keep_freed_memory() -> None:
    """Undo a setting of Dask's workers, by which each tensor of 128 KiB and more is new pages of the system:
    a model of 1,000 units computes a quarter more slowly. Nothing where the setting is not Dask's, or the C
    library is not glibc."""
    if os.environ.get(TRIM_VARIABLE) != TRIM_OF_DASK:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP, GLIBC_MMAP)
        mallopt(M_TRIM, GLIBC_TRIM)
