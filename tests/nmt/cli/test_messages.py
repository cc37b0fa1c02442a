"""Standard streams, messages, and the line that a command ends with."""

import io
import logging
import os
import pickle
import re
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt.cli import messages, options
from nmt.errors import DataError, UserError, one_line

# ---- test messages -----------------------------------------------------------------------------------------


log = logging.getLogger("nmt.of_a_test")


def test_the_file_has_all_messages_with_their_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a" / "log")
    messages.start("a-command", True, path, False)
    log.info("%s", "two\nlines")
    log.debug("a detail")
    log.warning("careful")
    logging.getLogger("smt_bridge.of_a_test").info("both packages")
    messages.error("a-command", "wrong")
    messages.stop()
    log.warning("afterwards")
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    time = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] a-command: "
    assert [re.sub(time, "", line) for line in lines] == [
        "two lines",
        "a detail",
        "careful",
        "both packages",
        "wrong",
    ]
    assert all(re.match(time, line) for line in lines)
    assert capsys.readouterr().err == "".join(
        f"a-command: {line}\n" for line in ("careful", "wrong", "afterwards")
    )


def test_without_a_file_quiet_makes_no_messages(capsys: pytest.CaptureFixture[str]) -> None:
    messages.start("a-command", True, None, False)
    assert not log.isEnabledFor(logging.INFO)
    messages.start("a-command", False, None, True)
    log.debug("a detail")
    log.info("told")
    assert re.fullmatch(r"\[[\d: -]{19}\] told\n", capsys.readouterr().err)


def test_what_a_bar_shows_is_for_the_file_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handler = messages.ToTerminal()
    record = logging.makeLogRecord({"msg": "5 of 9 lines", "on_bar": True})
    assert not handler.filter(record) and handler.filter(logging.makeLogRecord({"msg": "careful"}))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_ends_the_log_and_not_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    messages.start("a-command", True, "/dev/full", False)
    log.info("one")
    log.info("two")
    messages.stop()
    assert capsys.readouterr().err == "/dev/full: cannot write: No space left on device\n"


def test_a_text_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a sentence\n")
    with pytest.raises(UserError, match="text: exists and is not a log"):
        messages.start("a-command", True, str(tmp_path / "text"), False)
    with pytest.raises(UserError, match="cannot write"):
        messages.start("a-command", True, str(tmp_path), False)


# ---- test streams ------------------------------------------------------------------------------------------
# Standard streams that are closed, full, or were never there.


def test_a_closed_stream_takes_the_lowest_number_and_fails_when_it_is_used() -> None:
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    with messages.placeholder_stream(os.O_RDONLY, "w") as stdout:
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
            messages.flush_stdout()
        messages.flush_stdout()


def test_a_reader_that_left_is_not_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as left:
        monkeypatch.setattr(sys, "stdout", left)
        left.write("a")
        with pytest.raises(BrokenPipeError):
            messages.flush_stdout()
        messages.drop_stdout()


def test_say(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    messages.print_to_stderr("a: b")
    assert told.getvalue() == "a: b\n"
    with open(os.devnull, encoding="utf-8") as unwritable:
        monkeypatch.setattr(sys, "stderr", unwritable)
        messages.print_to_stderr("nobody is left to tell")


# ---- test out of threads -----------------------------------------------------------------------------------


def test_a_machine_out_of_threads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def command(argv: Sequence[str] | None) -> None:
        with ThreadPoolExecutor(2) as crew:
            crew.submit(print)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert options.run(command, []) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "the system starts no more threads" in message


def test_a_message_is_one_short_line_without_control_characters() -> None:
    assert one_line("a\nb\u2028c\r\td  e") == "a b c d  e"
    assert one_line("\x1b[2Ja\0") == "\\x1b[2Ja\\x00"
    assert len(one_line("\udc8a" * 10**6)) < 500 and len(one_line("\0 " * 10**6)) < 2000
    assert len(one_line("x" * 10**6)) < 500 and len(one_line("x y " * 10**6)) < 2000


def test_a_long_path_keeps_both_ends() -> None:
    assert one_line(f"/tmp/{'x' * 5000}/text:3: bad").endswith("x/text:3: bad") and one_line(
        f"/tmp/{'x' * 5000}/text:3: bad"
    ).startswith("/tmp/xx")


def test_every_error_of_a_user_is_such_a_line_and_crosses_processes() -> None:
    error = DataError(f"text:1: {'é' * 5000}\n")
    assert (
        str(error) == str(pickle.loads(pickle.dumps(error)))
        and len(str(error)) < 500
        and "\n" not in str(error)
    )
