"""What the faults are made of: hosts that hear each other unless a cable is cut, and reports."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.faults import jobs
from tests.faults.faults import fill, workers_of
from tests.faults.hosts import Host, missing, small_disk, two_hosts
from tests.faults.jobs import Row, different

CALL = "import socket; socket.create_connection(('10.77.0.1', 9), 2)"


def call(host: Host, folder: Path) -> int:
    return host.start([sys.executable, "-c", CALL], folder / "log").wait()


@pytest.mark.ci
def test_hosts(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    with two_hosts() as (first, second):
        serve = "import http.server as h; h.ThreadingHTTPServer(('10.77.0.1', 9), h.BaseHTTPRequestHandler)"
        first.start([sys.executable, "-c", f"{serve}.serve_forever()"], tmp_path / "log")
        answers = [call(second, tmp_path)]
        while answers[-1] and len(answers) < 50:  # until it listens
            answers.append(call(second, tmp_path))
        assert answers[-1] == 0
        second.cut()
        assert call(second, tmp_path) == 1
        second.mend()
        assert call(second, tmp_path) == 0
        assert len(first.processes()) == 1 and not second.processes()
        first.kill()
        assert not first.processes() and call(second, tmp_path) == 1
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert first.name not in names


@pytest.mark.ci
def test_a_full_disk(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    with small_disk(tmp_path / "disk", "1M") as disk:
        ballast = fill(disk)
        with pytest.raises(OSError, match="No space left"):
            (disk / "more").write_text("x" * 9999)
        assert ballast.stat().st_size == 1 << 20
    assert not ballast.exists()


@pytest.mark.ci
def test_the_worker_of_a_nanny() -> None:
    """Which starts it in a thread of its own, and waits for it there."""
    worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    started = threading.Event()

    def look_after() -> None:
        worker.start()
        started.set()
        worker.join()

    nanny = threading.Thread(target=look_after)
    nanny.start()
    started.wait()
    end = time.monotonic() + 60
    while not (found := workers_of(os.getpid())) and time.monotonic() < end:
        time.sleep(0.05)  # until it is a program of its own
    expected = worker.pid
    worker.kill()
    nanny.join()
    assert found == [expected]


def test_bytes_that_differ() -> None:
    assert different(b"one\ntwo\n", b"one\ntwo\n") == 0
    assert different(b"one\ntwo\n", b"one\ntoo\nmore\n") == 6


def test_distinct_lines() -> None:
    found = ["worker 1 died", "chunk 7 is lost", "worker 22 died", "worker 1.5 died"]
    assert jobs.distinct(found) == ["worker 1 died", "chunk 7 is lost"]


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULTS_REPORT", str(tmp_path))
    jobs.begin_report()
    jobs.add_row(Row("smt-score-table", "worker killed", 3, 1, 1, 1, seconds=20))
    jobs.add_row(Row("smt-score-table", "client killed", 4, 2, 6, 2, seconds=30, seen=["gone", "again"]))
    lines = (tmp_path / "faults.tsv").read_text().split("\n")
    assert lines[0].split("\t")[:4] == ["work", "fault", "injected", "jobs"] and len(lines) == 4
    page = (tmp_path / "faults.md").read_text()
    assert "| smt-score-table | client killed | 4 | 2 | 6 | 2 | 0 | 0 | 30 |" in page
    assert "| all |  | 7 | 3 | 7 | 3 | 0 | 0 | 50 |" in page
    assert "worker killed: nothing" in page and "      again\n" in page
