"""The memory of this process: how much it has had at most, and what the C library does with what is freed."""

import ctypes
import os
import resource
import sys

VARIABLE, DASKS = "MALLOC_TRIM_THRESHOLD_", "65536"  # what `dask worker` sets for its processes
TRIM, MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
KEPT, LARGE = 64 << 20, 32 << 20  # bytes: what glibc comes to by itself where neither is set


def peak_memory() -> float:
    """The most memory that this process has had, in MB of 2^20 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)  # macOS counts bytes, Linux KiB


def keep_freed_memory() -> None:
    """Undo a setting of Dask's workers, by which each tensor of 128 KiB and more is new pages of the system:
    a model of 1,000 units computes a quarter more slowly. Nothing where the setting is not Dask's, or the C
    library is not glibc."""
    if os.environ.get(VARIABLE) != DASKS:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(MMAP, LARGE)
        mallopt(TRIM, KEPT)
