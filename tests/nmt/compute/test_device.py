"""The device that is asked for: used, or refused in one line; threads and memory."""

import ctypes
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nmt.compute import device, resources
from nmt.compute.device import (
    Arithmetic,
    processor_flags,
    processor_name,
    resolve_device,
    set_up_device,
    settle_threads,
)
from nmt.compute.resources import peak_memory
from nmt.errors import ConfigError
from tests.nmt.compute.restored import torch_as_before

# ---- test processor ----------------------------------------------------------------------------------------
# What the processor is called and can do.


def test_the_name_holds_for_one_version_of_torch_and_one_line() -> None:
    assert processor_name().endswith(f", torch {torch.__version__}")
    assert (
        "\t" not in processor_name() and "\n" not in processor_name() and processor_name() == processor_name()
    )


def test_flags_are_words() -> None:
    assert all(flag == flag.strip() and " " not in flag for flag in processor_flags())


# ---- test matmul -------------------------------------------------------------------------------------------
# The back end of matrix products: exact, chosen once, remembered.


@pytest.fixture(autouse=True)
def default_back_end() -> Iterator[None]:
    yield
    device.use_back_end("mkl")


def test_the_choice_is_exact_and_made() -> None:
    choice = device.choose_back_end("auto")
    a, b = torch.randn(50, 400), torch.randn(400, 60)
    assert float((a @ b - (a.double() @ b.double())).abs().max()) < 1e-3  # bf16 inputs would err by 0.1
    assert choice.back_end in device.BACK_ENDS


@pytest.mark.parametrize(
    ("error", "speed", "expected"), [(2.0, 2.0, "onednn"), (2.0, 1.1, "mkl"), (1000.0, 9.0, "mkl")]
)
def test_rule(monkeypatch: pytest.MonkeyPatch, error: float, speed: float, expected: str) -> None:
    monkeypatch.setattr("nmt.compute.device.measure_back_ends", lambda: (error, speed))
    assert device.choose_back_end("auto").back_end == expected


@pytest.mark.ci
@pytest.mark.parametrize("waiting", device.BACK_ENDS)
def test_what_else_the_machine_does_does_not_count(monkeypatch: pytest.MonkeyPatch, waiting: str) -> None:
    """A back end that has to wait is not slower for it. The wait is ten times as long as a product takes."""
    product, quiet = torch.addmm, device.measure_back_ends()[1]

    def disturbed(*given: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        if device.back_end_in_use() == waiting:
            time.sleep(0.02)
        return product(*given, out=out)

    monkeypatch.setattr(torch, "addmm", disturbed)
    assert quiet / 3 < device.measure_back_ends()[1] < quiet * 3


def test_an_inexact_back_end_is_refused_even_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.compute.device.measure_back_ends", lambda: (1000.0, 9.0))
    with pytest.raises(ConfigError, match="onednn has 1000 times"):
        device.choose_back_end("onednn")
    with pytest.raises(ConfigError, match="expected auto, mkl or onednn"):
        device.choose_back_end("amx")


def test_a_back_end_that_torch_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="torch has no oneDNN here; use auto or mkl"):
        device.choose_back_end("onednn")
    assert device.choose_back_end("auto").back_end == "mkl"


def test_a_choice_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A noisy start must not decide anew: the file of a run holds what was chosen on this processor."""
    memory = tmp_path / "matmul.tsv"
    monkeypatch.setattr("nmt.compute.device.measure_back_ends", lambda: (2.0, 2.0))
    assert device.choose_back_end("auto", memory).back_end == "onednn"
    monkeypatch.setattr("nmt.compute.device.measure_back_ends", lambda: (2.0, 1.0))
    assert (
        device.choose_back_end("auto", memory).back_end == "onednn" and device.back_end_in_use() == "onednn"
    )
    assert device.choose_back_end("mkl", memory).back_end == "mkl"  # a wish goes before
    monkeypatch.setattr("nmt.compute.device.processor_name", lambda: "another")
    assert device.choose_back_end("auto", memory).back_end == "mkl"
    assert len(memory.read_text().split("\n")) == 3


def test_a_damaged_memory_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\xff\n")
    monkeypatch.setattr("nmt.compute.device.measure_back_ends", lambda: (2.0, 2.0))
    assert device.choose_back_end("auto", tmp_path / "m").back_end == "onednn"


PRODUCTS_PROGRAM = """
import torch
from nmt.compute import device

device.use_back_end("onednn")
columns = torch.ones(32, 32)
for _ in range(2):
    for rows in range(100, 200):
        torch.ones(rows, 32) @ columns
"""


def compiled(capacity: str) -> int:
    """Kernels that a process compiles for 100 shapes of matrices, in turn and twice, if so many are kept."""
    own = {name: capacity for name in device.KERNEL_CACHES if capacity}
    theirs = {name: value for name, value in os.environ.items() if name not in device.KERNEL_CACHES}
    environment = theirs | own | {"ONEDNN_VERBOSE": "profile_create"}
    call = [sys.executable, "-c", PRODUCTS_PROGRAM]
    said = subprocess.run(call, env=environment, check=True, capture_output=True, text=True).stdout
    return said.count("create:cache_miss")


@pytest.mark.ci
def test_few_kernels_are_kept_unless_the_user_says_otherwise() -> None:
    """All shapes are compiled anew where 64 are kept, none where 150 are."""
    if not (once := compiled("150")):
        pytest.skip("torch does not take oneDNN on this processor")
    assert compiled("") > 1.5 * once


# ---- test arithmetic ---------------------------------------------------------------------------------------
# How torch computes, from process to process.


def test_what_is_used_is_in_use() -> None:
    before = device.arithmetic_in_use()
    try:
        for wanted in (Arithmetic(2, "mkl"), Arithmetic(1, "onednn")):
            wanted.use()
            assert device.arithmetic_in_use() == wanted and device.back_end_in_use() == wanted.back_end
    finally:
        before.use()


# ---- test device -------------------------------------------------------------------------------------------

as_before = pytest.fixture(autouse=True)(torch_as_before)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "device: 'gpu' is unknown, expected cpu, cuda, cuda:N or auto"),
        ("cuda:x", "device: 'cuda:x' is unknown"),
        ("", "is unknown"),
        ("mps", "device: 'mps' is not supported, expected cpu, cuda, cuda:N or auto"),
        ("cuda", "torch finds no GPU; use --device cpu"),
        ("cuda:1", "device: 'cuda:1' was requested"),
    ],
)
def test_refused(device: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError) as error:
        set_up_device(device, None, "mkl")
    assert message in str(error.value)


def test_the_line_says_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set_up_device("cpu", 1, "mkl") == "device cpu, 1 thread"
    assert torch.get_num_threads() == 1
    assert set_up_device("cpu", None, "mkl") == "device cpu, 1 thread"  # torch's own number
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert set_up_device("cuda:1", None, "mkl") == "device cuda:1"


@pytest.mark.parametrize(("count", "remedy"), [(1, "finds 1 GPU; use cuda:0"), (2, "2 GPUs; use cuda:0 or")])
def test_a_gpu_that_the_machine_does_not_have_is_refused(
    count: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(ConfigError, match=f"device: 'cuda:2' does not exist, .*{remedy}"):
        set_up_device("cuda:2", None, "mkl")
    assert set_up_device(f"cuda:{count - 1}", None, "mkl") == f"device cuda:{count - 1}"


def test_too_many_threads_are_fewer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nmt.compute.resources.ALWAYS_STARTED", 2)
    monkeypatch.setattr("nmt.compute.resources.THREADS_PER_PROCESSOR", 0)
    with caplog.at_level("WARNING", logger="nmt"):
        assert "2 threads" in set_up_device("cpu", 100_000, "mkl")
    assert "threads: 100,000: more than this machine can use; using 2" in caplog.text


@pytest.mark.parametrize(
    ("spinning", "count", "environment", "expected"),
    [
        (True, 4, "", 1),
        (True, 2, "", 1),  # of four processors on two cores
        (True, 3, "", None),  # which the user has set
        (True, 4, "4", None),
        (False, 4, "", None),
    ],
)
def test_one_thread_computes_where_waiting_ones_would_spin(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    spinning: bool,
    count: int,
    environment: str,
    expected: int | None,
) -> None:
    logging.getLogger("nmt").propagate = True
    numbers: list[int] = []
    monkeypatch.setattr("nmt.compute.resources.SPINNING", spinning)
    monkeypatch.setattr("nmt.compute.resources.processors", lambda: 4)
    monkeypatch.setattr(torch, "get_num_threads", lambda: count)
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if environment:
        monkeypatch.setenv("OMP_NUM_THREADS", environment)
    settle_threads.cache_clear()
    for _ in range(2):  # the second call leaves what the user has set since
        settle_threads()
    settle_threads.cache_clear()
    assert numbers == ([expected] if expected else [])
    assert ("torch was imported before nmt" in caplog.text) == bool(expected)


def test_auto_is_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == "cuda" and resolve_device("auto", cpu_only=True) == "cpu"
    assert set_up_device("auto", None, "mkl") == "device cuda"
    assert resolve_device("cuda:1", cpu_only=True) == "cuda:1"  # what was asked for is refused, not changed
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == "cpu"
    assert set_up_device("auto", 1, "mkl") == "device cpu, 1 thread"


# ---- threads and memory ------------------------------------------------------------------------------------

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
        ("", {}, "False PASSIVE 0"),
        ("sys.modules['torch'] = sys; ", {}, "True PASSIVE 0"),
        ("sys.modules['torch'] = sys; ", {"OMP_WAIT_POLICY": "ACTIVE"}, "False ACTIVE 0"),  # the user's own
    ],
)
def test_importing_nmt_sets_how_threads_wait(first: str, extra: dict[str, str], expected: str) -> None:
    code = f"import os, sys; {first}import nmt; from nmt.compute.resources import SPINNING; " + (
        "print(SPINNING, os.environ['OMP_WAIT_POLICY'], os.environ['GOMP_SPINCOUNT'])"
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
