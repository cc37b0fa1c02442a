"""How many threads are started, and how they wait."""

import os
import subprocess
import sys

import pytest

from nmt.compute import threads

OURS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")


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


@pytest.mark.parametrize(
    ("first", "extra", "expected"),
    [
        ("", {}, "False PASSIVE"),
        ("sys.modules['torch'] = sys; ", {}, "True PASSIVE"),
        ("sys.modules['torch'] = sys; ", {"OMP_WAIT_POLICY": "ACTIVE"}, "False ACTIVE"),  # the user's own
    ],
)
def test_importing_nmt_sets_how_threads_wait(first: str, extra: dict[str, str], expected: str) -> None:
    code = f"import os, sys; {first}import nmt; from nmt.compute.threads import SPINNING; " + (
        "print(SPINNING, os.environ['OMP_WAIT_POLICY'])"
    )
    clean = {key: value for key, value in os.environ.items() if key not in OURS}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **extra}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected
