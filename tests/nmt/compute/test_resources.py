"""How many threads are started, and how they wait."""

import ctypes
import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nmt.compute import resources
from nmt.compute.resources import peak_memory

# ---- test threads ------------------------------------------------------------------------------------------

OURS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")


def test_no_more_than_the_machine_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, most in ((1, 16), (2, 16), (4, 16), (8, 32), (100, 400)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=processors: set(range(n)))
        for count in (0, 1, 15, 16, 17, 33, 399, 400, 401, 10**6):
            assert resources.bounded_threads(count) == min(count, most)


def test_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert resources.bounded_threads(17) == 16
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert resources.bounded_threads(17) == 17


def test_waiting_threads_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    resources.before_torch()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"]) == ("PASSIVE", "7")


@pytest.mark.parametrize(
    ("first", "extra", "expected"),
    [
        ("", {}, "False PASSIVE"),
        ("sys.modules['torch'] = sys; ", {}, "True PASSIVE"),
        ("sys.modules['torch'] = sys; ", {"OMP_WAIT_POLICY": "ACTIVE"}, "False ACTIVE"),  # the user's own
    ],
)
def test_importing_nmt_sets_how_threads_wait(first: str, extra: dict[str, str], expected: str) -> None:
    code = f"import os, sys; {first}import nmt; from nmt.compute.resources import SPINNING; " + (
        "print(SPINNING, os.environ['OMP_WAIT_POLICY'])"
    )
    clean = {key: value for key, value in os.environ.items() if key not in OURS}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **extra}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected


# ---- test allocator ----------------------------------------------------------------------------------------
# What a process does with memory that is free again.


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1 << 20), ("linux", 1 << 10)])
def test_the_unit_of_peak_memory(platform: str, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=300 * unit))
    assert peak_memory() == 300


FAULTS_PROGRAM = """
import resource
import torch
from nmt.compute.resources import keep_freed_memory

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
    program = FAULTS_PROGRAM.format(undo=undo)
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
