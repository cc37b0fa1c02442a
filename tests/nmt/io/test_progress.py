"""What is said of a long job."""

import time
from pathlib import Path

import pytest

from nmt.io import files, progress
from nmt.io.progress import Progress, duration, format_rate


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.reads = 0.0, 0
        monkeypatch.setattr(time, "monotonic", self.read)

    def read(self) -> float:
        self.reads += 1
        return self.now


def test_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(600, "pairs")
    clock.now = 10
    progress.add(100)
    assert progress.line() == "100 of 600 pairs, 10 a second, 50 s left"
    progress.note = lambda: "9 min left of the training"
    assert progress.line() == "100 of 600 pairs, 10 a second, 50 s left; 9 min left of the training"
    progress.note = lambda: ""
    assert progress.line().endswith(", 50 s left")


def test_the_wait_for_the_first_unit_is_not_ahead_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder compiles its functions before the first sentence: "10 h 54 min left"."""
    clock = Clock(monkeypatch)
    progress = Progress(1000, "sentences")
    clock.now = 50
    progress.add(1)
    assert progress.line() == "1 of 1,000 sentences, 1.2 a minute"
    clock.now = 60
    progress.add(49)
    assert progress.line() == "50 of 1,000 sentences, 50 a minute, 3 min 14 s left"


def test_what_an_earlier_start_did_is_not_in_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(None, "pairs")
    clock.now = 100  # the models are loaded, the table is checked
    progress.reach(400, 600)
    assert progress.line() == "400 of 600 pairs"
    clock.now = 110
    progress.reach(500, 600)
    assert progress.line() == "500 of 600 pairs, 10 a second, 10 s left" and progress.done == 500


def test_lines_that_an_earlier_start_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(600, "lines")
    progress.skip(300)
    clock.now = 10
    progress.add(100)
    assert progress.line() == "400 of 600 lines, 10 a second, 20 s left"


def test_a_line_a_minute(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(monkeypatch)
    progress = Progress(0, "lines", title="text")  # a stream: nobody knows its end
    with caplog.at_level("INFO"):
        for clock.now in (10, 59, 61, 100, 122):
            progress.add(61)
    assert caplog.messages == ["text: 183 lines, 3.0 a second", "text: 305 lines, 2.5 a second"]


def test_a_caller_who_knows_how_long_it_will_take(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And a line a minute even where nothing advances."""
    clock = Clock(monkeypatch)
    progress = Progress(200, "seconds", title="building", left=lambda: 75 - clock.now / 2)
    progress.add(50)
    with caplog.at_level("INFO"):
        for clock.now in (61, 62, 122):
            progress.refresh()
    assert caplog.messages == ["building: 25%, about 44 s left", "building: 25%, about 14 s left"]


def test_slow_work_has_a_rate_too(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It was "0 a second"."""
    clock = Clock(monkeypatch)
    progress = Progress(10, "sentences")
    with caplog.at_level("INFO"):
        clock.now = 90
        progress.add(1)
    assert caplog.messages == ["1 of 10 sentences, 40 an hour"]


@pytest.mark.parametrize(
    ("rate", "text"),
    [(1234, "1,234 a second"), (9.97, "10 a second"), (3.46, "3.5 a second"), (0.2, "12 a minute"),
     (1 / 60, "1.0 a minute"), (0.001, "3.6 an hour")],
)  # fmt: skip
def test_rates(rate: float, text: str) -> None:
    assert format_rate(rate) == text


def test_the_clock_is_read_less_often_where_work_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    shown = Progress(0, "lines")
    for _ in shown.over(range(100_000)):
        clock.now += 1e-5
    assert shown.done == 100_000 and clock.reads < 1000
    before, clock.now = clock.reads, clock.now + 1
    for _ in shown.over(range(progress.MOST + 20)):
        clock.now += 1  # slower: soon it is read for each
    assert clock.reads > before + 10


def test_a_total_is_counted_only_where_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(monkeypatch)
    counted = []

    def total() -> int:
        counted.append(clock.now)
        return 100

    shown = Progress(total, "lines")
    shown.add(1)
    clock.now = 61
    shown.add(9)
    clock.now = 122
    with caplog.at_level("INFO"):
        shown.add(10)
        clock.now = 200
        shown.add(10)
    assert counted == [122] and " of 100 lines" in caplog.text


def test_lines_of_files(tmp_path: Path) -> None:
    for name, text in (("a", "a\nb\n"), ("b", "a\nb"), ("none", ""), ("c", "\n")):
        (tmp_path / name).write_text(text)
        assert files.number_of_lines(tmp_path / name) == len(list(files.read_lines(tmp_path / name)))
    with files.Writing(tmp_path / "z.gz") as out:
        out.write("x\n" * 300_000)
    assert files.number_of_lines(tmp_path / "z.gz", tmp_path / "b") == 300_002
    (tmp_path / "broken").write_bytes((tmp_path / "z.gz").read_bytes()[:100])
    for unknown in ("-", "/dev/null", tmp_path / "broken", tmp_path / "missing"):
        assert files.number_of_lines(unknown) == 0


@pytest.mark.parametrize(("seconds", "text"), [(7.4, "7 s"), (75, "1 min 15 s"), (7260, "2 h 1 min")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
