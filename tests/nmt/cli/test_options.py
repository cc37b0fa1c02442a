"""What all commands share: bounds of threads and workers."""

import subprocess
import sys

import pytest

from nmt.cli import options
from nmt.cli.arguments import positive


def test_as_many_threads_as_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """More are cut to four a processor, with one line; sixteen always work, so that no result of a larger
    machine depends on this one."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(6)), raising=False)
    assert [options.bounded(count) for count in (1, 16, 24, 25, 100_000)] == [1, 16, 24, 24, 24]
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
    assert [options.bounded(count) for count in (16, 17)] == [16, 16]
    parser = options.Parser("a-command", "")
    options.add_compute(parser)
    parser.add_argument("--workers", type=positive, default=1)
    args = parser.parse_args(["--threads", "100000", "--workers", "16"])
    assert (args.threads, args.workers) == (16, 16)
    assert (
        capsys.readouterr().err == "a-command: --threads 100,000: more than this machine can use; taking 16\n"
    )


def test_threads_of_a_configuration() -> None:
    """A run of another machine goes on with fewer; without the bound this is a segmentation fault."""
    script = (
        "from nmt.cli import options; options.start_log('x'); print(options.set_up_torch('cpu', 10**6, "
        "'mkl')); import torch; torch.randn(999, 999).sum()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0 and done.stderr.startswith(
        "x: threads: 1,000,000: more than this machine can use; taking "
    ), done
    assert f" {options.bounded(10**6)} threads" in done.stdout
