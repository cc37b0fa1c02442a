"""What all commands share: bounds of threads and workers."""

import logging
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence

import pytest

from nmt.cli import messages, options
from nmt.compute.threads import bounded
from nmt.errors import ConfigError


def test_as_many_threads_as_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """More are cut to four a processor, with one line; sixteen always work, so that no result of a larger
    machine depends on this one."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(6)), raising=False)
    assert [bounded(count) for count in (1, 16, 24, 25, 100_000)] == [1, 16, 24, 24, 24]
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
    assert [bounded(count) for count in (16, 17)] == [16, 16]
    parser = options.Parser("a-command", "")
    options.add_compute(parser)
    parser.add_argument("--workers", type=options.positive, default=1)
    args = parser.parse_args(["--threads", "100000", "--workers", "16"])
    assert (args.threads, args.workers) == (16, 16)
    assert (
        capsys.readouterr().err == "a-command: --threads 100,000: more than this machine can use; taking 16\n"
    )


def test_a_renamed_option_is_accepted_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    parser = options.Parser("a-command", "")
    parser.add_argument("--n-best", type=options.positive, default=None)
    parser.renamed = {"--nbest": "--n-best"}
    assert parser.parse_args(["--nbest", "3"]).n_best == parser.parse_args(["--nbest=3"]).n_best == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["a-command: --nbest is now --n-best; the next version drops the old name"] * 2
    assert parser.parse_args(["--n_best", "4"]).n_best == 4 and not capsys.readouterr().err


def test_without_torch_a_command_says_where_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    """And a module of ours that is missing is an error of ours."""

    def missing(name: str) -> int:
        def command(argv: Sequence[str] | None) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return options.run(command, [])

    assert missing("torch") == 2
    told = capsys.readouterr().err
    assert "torch is not installed" in told and "whl/cpu" in told and told.count("\n") == 1
    with pytest.raises(ModuleNotFoundError):
        missing("nmt.nosuch")


def test_both_packages_write_to_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    options.start_log("a-command", Namespace(quiet=True))
    for package in messages.PACKAGES:
        logging.getLogger(f"{package}.x").info("not shown")
        logging.getLogger(f"{package}.x").warning("two\nlines")
    assert capsys.readouterr().err == "a-command: two lines\n" * 2


def test_threads_of_a_configuration() -> None:
    """A run of another machine goes on with fewer; without the bound this is a segmentation fault."""
    script = (
        "import argparse; from nmt.cli import options; options.start_log('x', argparse.Namespace()); "
        "print(options.set_up_torch('cpu', 10**6, "
        "'mkl')); import torch; torch.randn(999, 999).sum()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0 and done.stderr.startswith(
        "x: threads: 1,000,000: more than this machine can use; taking "
    ), done
    assert f" {bounded(10**6)} threads" in done.stdout


def test_int8_off_the_processor_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's product of int8 crashes on a GPU for a beam's few rows."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for device in ("cuda", "cuda:1", "auto"):
        with pytest.raises(ConfigError) as error:
            options.reduced("int8", [], device)
        assert str(error.value) == "--precision int8: computes on the CPU only; use bf16, or --device cpu"
    assert options.reduced("int8", [], "cpu") == []


@pytest.mark.parametrize(("argv", "frozen"), [("None", True), ("[]", False)])
def test_nothing_is_searched_for_garbage_when_a_process_ends(argv: str, frozen: bool) -> None:
    """A command called from Python leaves the collector alone."""
    script = f"import gc; from nmt.cli import options; options.run(lambda argv: None, {argv}); "
    script += "print(gc.get_freeze_count() > 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{frozen}\n"
