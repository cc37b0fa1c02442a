"""Standard streams that are closed, full, or were never there."""

import io
import os
import sys
from pathlib import Path

import pytest

from nmt.cli import streams
from nmt.errors import UserError


def test_a_closed_stream_takes_the_lowest_number_and_fails_when_it_is_used() -> None:
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    with streams.placeholder(os.O_RDONLY, "w") as stdout:
        assert stdout.fileno() == lowest and os.get_inheritable(lowest)
        stdout.write("a")
        with pytest.raises(OSError, match="Bad file"):
            stdout.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), lowest)  # what it holds can leave


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_cannot_be_written_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        full.write("a")
        with pytest.raises(UserError, match="<stdout>: cannot write: No space left"):
            streams.flush()
        streams.flush()


def test_a_reader_that_left_is_not_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as left:
        monkeypatch.setattr(sys, "stdout", left)
        left.write("a")
        with pytest.raises(BrokenPipeError):
            streams.flush()
        streams.drop()


def test_say(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    streams.say("a: b")
    assert told.getvalue() == "a: b\n"
    with open(os.devnull, encoding="utf-8") as unwritable:
        monkeypatch.setattr(sys, "stderr", unwritable)
        streams.say("nobody is left to tell")
