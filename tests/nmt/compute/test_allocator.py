"""What a process does with memory that is free again."""

import ctypes
import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nmt.compute.allocator import peak_memory


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1 << 20), ("linux", 1 << 10)])
def test_the_unit_of_peak_memory(platform: str, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=300 * unit))
    assert peak_memory() == 300


PROGRAM = """
import resource
import torch
from nmt.compute.allocator import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

{undo}
before = faults()
for _ in range(500):
    torch.ones(1 << 18)  # 256 pages
print(faults() - before)
"""


def pages(undo: str, setting: str) -> int:
    """How often a process asked the system for pages, for tensors that come and go."""
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
    assert (10 * pages("keep_freed_memory()", setting) < pages("", setting)) == kept
