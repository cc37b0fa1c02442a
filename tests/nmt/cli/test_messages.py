"""Where the messages of a command go."""

import logging
import re
from pathlib import Path

import pytest

from nmt.cli import messages
from nmt.errors import UserError

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
    with pytest.raises(UserError, match="text: is no log of ours"):
        messages.start("a-command", True, str(tmp_path / "text"), False)
    with pytest.raises(UserError, match="cannot write"):
        messages.start("a-command", True, str(tmp_path), False)
