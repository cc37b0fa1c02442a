"""Whatever has happened to a file, its reader returns, or raises a UserError of one short line that names it:
nothing else, soon, in little memory."""

import logging
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest
from hypothesis import given

from nmt.errors import UserError
from tests.fuzz import nmt_readers, smt_readers
from tests.fuzz.cases import options
from tests.fuzz.files import Reader
from tests.fuzz.mutations import mutated

SECONDS = 10  # of the processor: a busy machine is no failure
MEMORY = 3 << 30  # bytes beyond what the process has: far more than any of these small files needs
CASES = 500  # of each reader, in the slow ring
READERS = nmt_readers.READERS | smt_readers.READERS


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
def test_damaged_files_give_one_clear_error(name: str, tmp_path: Path) -> None:
    fuzz(READERS[name], tmp_path, READERS[name].cases)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_of_500_kinds_give_one_clear_error(name: str, tmp_path: Path) -> None:
    fuzz(READERS[name], tmp_path, CASES)
