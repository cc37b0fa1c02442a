"""Whatever has happened to a file, its reader returns, or raises a UserError of one short line that names it:
nothing else, soon, in little memory. So do commands, and they leave nothing half-written."""

import io
import logging
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest
from hypothesis import given

from nmt.errors import UserError
from tests.fuzz.cases import NBEST, TABLE, Reader, mutated, options, text
from tests.fuzz.readers import INI, READERS

# ---- readers -----------------------------------------------------------------------------------------------


SECONDS = 10  # of the processor: a busy machine is no failure
MEMORY = 3 << 30  # bytes beyond what the process has: far more than any of these small files needs
CASES = 500  # of each reader, in the slow ring


@contextmanager
def bounded() -> Iterator[None]:
    """An AssertionError after SECONDS, a MemoryError above MEMORY."""

    def late(number: int, frame: FrameType | None) -> NoReturn:
        raise AssertionError(f"not done in {SECONDS} s")

    used = (
        int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        if Path("/proc/self/statm").exists()
        else None
    )
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    if used is not None:
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def fuzz(reader: Reader, folder: Path, cases: int) -> None:
    reader.make(folder)
    damaged = folder / reader.file
    valid = damaged.read_bytes()
    reader.read(damaged)  # what is valid is read

    @options(cases)
    @given(mutated(valid))
    def each(data: bytes) -> None:
        damaged.write_bytes(data)
        with bounded():
            try:
                reader.read(damaged)
            except UserError as error:
                message = str(error)
                assert "\n" not in message and len(message) < 2000, message[:3000]
                assert not reader.named or str(damaged) in message or str(damaged.parent) in message, message

    logging.disable(logging.CRITICAL)
    try:
        each()
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.ci
def test_damaged_files_give_one_clear_error(name: str, tmp_path: Path) -> None:
    fuzz(READERS[name], tmp_path, READERS[name].cases)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_of_500_kinds_give_one_clear_error(name: str, tmp_path: Path) -> None:
    fuzz(READERS[name], tmp_path, CASES)


# ---- commands ----------------------------------------------------------------------------------------------
# Exit status 0 or 2, a last line that says why, no traceback.


LINES = ("the cat sat", "", "a b c d e", "été \u2028 l' homme")
Make = Callable[[Path], object]

# A command line in which `<` is the damaged file and `>` the output.
COMMANDS: dict[str, tuple[Make, str]] = {
    "nmt.cli.vocab": (text(*LINES), "-i < -o >"),
    "nmt.cli.tokenize": (text(*LINES), "-l fr -i < -o >"),
    "nmt.cli.subword": (text("#version: 0.2", "l o", "lo w</w>"), "apply < -i ok -o >"),
    "nmt.cli.clean": (text(*LINES), "-s < -t ok --output-source > --output-target other"),
    "nmt.cli.ngram": (text(*LINES), "--order 2 --discount-fallback --skip-symbols -i < -o >"),
    "nmt.papers.multiscale.command": (text("#version: 1 dictionary size=2", "a\t5", "b\t3"), "table < -o >"),
    "nmt.cli.analyze": (text("-1.5", "-2", "-0.25", "-1"), "scores --first < --second numbers"),
    "smt_bridge.cli.ini": (text(*INI), "show <"),
    "smt_bridge.cli.filter_table": (text(*TABLE), "< -i ok -o >"),
    "smt_bridge.cli.tune_nbest": (text(*NBEST), "--n-best < -r ok --method kbmira -o >"),
}


def fuzz_command(name: str, folder: Path, cases: int) -> None:
    make, line = COMMANDS[name]
    make(folder)
    (folder / "ok").write_text("".join(row + "\n" for row in LINES), encoding="utf-8")
    (folder / "numbers").write_text("-1\n-2\n-3\n-4\n", encoding="utf-8")
    damaged = folder / "file"
    names = {"<": "file", ">": "out", "ok": "ok", "numbers": "numbers", "other": "other"}
    argv = [str(folder / names[word]) if word in names else word for word in line.split()]
    main = import_module(name).main

    @options(cases)
    @given(mutated(damaged.read_bytes()))
    def each(data: bytes) -> None:
        damaged.write_bytes(data)
        told = io.StringIO()
        with bounded(), redirect_stderr(told), redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            try:
                status = main(argv)
            except SystemExit as stop:
                status = stop.code
        assert status in (0, 2), told.getvalue()
        if status == 2:
            last = told.getvalue().rstrip("\n").split("\n")[-1]
            assert "Traceback" not in told.getvalue() and ":" in last and len(last) < 2000
        assert not [path for path in folder.rglob("*") if ".part" in path.name]

    each()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_with_0_or_2(name: str, tmp_path: Path) -> None:
    fuzz_command(name, tmp_path, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_with_0_or_2_in_500_cases(name: str, tmp_path: Path) -> None:
    fuzz_command(name, tmp_path, 500)
