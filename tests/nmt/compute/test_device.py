"""The device that is asked for: used, or refused in one line."""

import logging

import pytest
import torch

from nmt.compute import threads
from nmt.compute.device import resolve, set_up, settle_threads
from nmt.errors import ConfigError
from tests.nmt.compute.restored import torch_as_before

as_before = pytest.fixture(autouse=True)(torch_as_before)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "device: 'gpu' is unknown, expected cpu, cuda, cuda:N or auto"),
        ("cuda:x", "device: 'cuda:x' is unknown"),
        ("", "is unknown"),
        ("mps", "device: 'mps' is not supported, expected cpu, cuda, cuda:N or auto"),
        ("cuda", "this torch finds no GPU; use --device cpu"),
        ("cuda:1", "device: 'cuda:1' was asked for"),
    ],
)
def test_refused(device: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError) as error:
        set_up(device, None, "mkl")
    assert message in str(error.value)


def test_the_line_says_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set_up("cpu", 1, "mkl") == "device cpu, 1 thread"
    assert torch.get_num_threads() == 1
    assert set_up("cpu", None, "mkl") == "device cpu, 1 thread"  # torch's own number
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert set_up("cuda:1", None, "mkl") == "device cuda:1"


def test_too_many_threads_are_fewer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "ALWAYS", 2)
    monkeypatch.setattr(threads, "PER_PROCESSOR", 0)
    with caplog.at_level("WARNING", logger="nmt"):
        assert "2 threads" in set_up("cpu", 100_000, "mkl")
    assert "threads: 100,000: more than this machine can use; taking 2" in caplog.text


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
    monkeypatch.setattr(threads, "SPINNING", spinning)
    monkeypatch.setattr(threads, "processors", lambda: 4)
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
    assert resolve("auto") == "cuda" and resolve("auto", cpu_only=True) == "cpu"
    assert set_up("auto", None, "mkl") == "device cuda"
    assert resolve("cuda:1", cpu_only=True) == "cuda:1"  # what was asked for is refused, not changed
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve("auto") == "cpu"
    assert set_up("auto", 1, "mkl") == "device cpu, 1 thread"
