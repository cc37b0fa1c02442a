"""How many threads are started, and how they wait."""

import os

import pytest

from nmt.compute import threads


def test_no_more_than_the_machine_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, most in ((1, 16), (2, 16), (4, 16), (8, 32), (100, 400)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=processors: set(range(n)))
        for count in (0, 1, 15, 16, 17, 33, 399, 400, 401, 10**6):
            assert threads.bounded(count) == min(count, most)


def test_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.bounded(17) == 16
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert threads.bounded(17) == 17


def test_waiting_threads_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    threads.before_torch()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"]) == ("PASSIVE", "7")
