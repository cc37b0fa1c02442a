"""What a process does with memory that is free again."""

import ctypes
import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import torch
from nmt.compute.allocator import keep_freed_memory

{undo}
for _ in range(500):
    torch.ones(1 << 18)  # 256 pages
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def pages(undo: str, setting: str) -> int:
    """Pages that a process asked the system for."""
    program = PROGRAM.format(undo=undo)
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": setting, "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    return int(found.stdout)


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
@pytest.mark.parametrize(("setting", "kept"), [("65536", True), ("65537", False)])
def test_memory_is_kept_where_dask_would_not(setting: str, kept: bool) -> None:
    """A setting of somebody else stays."""
    saved = pages("", setting) - pages("keep_freed_memory()", setting)
    assert (saved > 100_000) == kept
