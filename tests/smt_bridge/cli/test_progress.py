"""What is said of a long job."""

import time

import pytest

from smt_bridge.cli.progress import Progress, duration


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(600, "pairs")
    clock.now = 10
    progress.add(100)
    assert progress.line() == "100 of 600 pairs, 10 a second, 50 s left"


def test_what_an_earlier_start_did_is_not_in_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(None, "pairs")
    clock.now = 100  # the models are loaded, the table is checked
    progress.reach(400, 600)
    clock.now = 110
    progress.reach(500, 600)
    assert progress.line() == "500 of 600 pairs, 10 a second, 10 s left" and progress.done == 500


def test_a_line_a_minute(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(0, "lines")  # a stream: nobody knows its end
    with caplog.at_level("INFO"):
        for clock.now in (10, 59, 61, 100, 122):
            progress.add(61)
    assert caplog.messages == ["183 lines, 3 a second", "305 lines, 2 a second"]


@pytest.mark.parametrize(("seconds", "text"), [(7.4, "7 s"), (75, "1 min 15 s"), (7260, "2 h 1 min")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
