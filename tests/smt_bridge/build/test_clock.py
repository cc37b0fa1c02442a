"""What the clock of a build says; the time is a number here."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.io import files
from smt_bridge.build import clock
from smt_bridge.build.clock import BuildClock

PLANNED = {"corpus": 100.0, "tune": 300.0, "networks": 1000.0, "evaluate": 200.0}


class Time:
    """A clock that stands still between two calls of `run`."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.clock = BuildClock(folder, lambda: self.now)

    def run(self, seconds: float, *shares: float) -> None:
        """Let time pass, in equal parts, while the step advances."""
        for share in shares or (0.0,):
            self.now += seconds / max(1, len(shares))
            self.clock.tick(share)

    def step(self, name: str, seconds: float) -> None:
        """A whole step."""
        self.clock.start(name, PLANNED)
        self.run(seconds, 0.0, 0.5, 1.0)
        self.clock.stop()


@pytest.fixture
def time(tmp_path: Path) -> Time:
    return Time(tmp_path)


def test_as_planned(time: Time) -> None:
    time.step("corpus", 100)
    time.clock.start("tune", PLANNED)
    assert time.clock.pace() == 1 and time.clock.left() == 1500
    time.run(150, *(number / 60 for number in range(31)))
    assert time.clock.left() == pytest.approx(1350, rel=0.05)


def test_after_a_busy_start_the_time_left_is_that_of_the_recent_pace(time: Time) -> None:
    """Ten times too long at first, then as planned: the first does not count for long."""
    time.step("corpus", 1000)
    assert time.clock.pace() > 5
    time.step("tune", 300)
    assert time.clock.pace() == pytest.approx(1, rel=0.1)
    time.clock.start("networks", PLANNED)
    assert time.clock.left() == pytest.approx(1200, rel=0.1)


def test_within_a_step_its_own_recent_progress_counts(time: Time) -> None:
    """Half of it at a tenth of the pace, then at the planned one."""
    time.clock.start("networks", PLANNED)
    time.run(5000, *(number / 1000 for number in range(501)))
    assert time.clock.left() == pytest.approx(10 * (500 + 200), rel=0.1)
    time.run(300, *(0.5 + number / 1000 for number in range(301)))
    assert time.clock.left() == pytest.approx(200 + 200, rel=0.15)


def test_a_step_that_says_nothing_never_ends_at_once(time: Time) -> None:
    time.clock.start("corpus", PLANNED)
    time.run(500)
    assert time.clock.left() > 4 * 1500 and 0 < time.clock.done() < 100  # it is not faster later on


def test_short_steps_say_little(time: Time) -> None:
    for name in ("corpus", "tune"):
        time.clock.start(name, {"corpus": 1.0, "tune": 1.0, "networks": 100.0})
        time.run(10)
        time.clock.stop()
    assert time.clock.pace() < 3


def test_compiling_counts_for_the_budget_and_not_for_the_pace(tmp_path: Path) -> None:
    time, compiled = Time(tmp_path), [0.0]
    time.clock.once = lambda: compiled[0]
    time.clock.start("tune", PLANNED)
    compiled[0] = 600
    time.run(900)
    time.clock.stop()
    assert time.clock.spent() == 900 and time.clock.pace() == 1


def test_the_time_of_all_starts_is_kept(time: Time, tmp_path: Path) -> None:
    time.step("corpus", 100)
    time.clock.start("tune", PLANNED)
    time.run(50, 0.1)
    again = Time(tmp_path)  # killed
    again.clock.start("tune", PLANNED)
    again.run(250, 1.0)
    again.clock.stop()
    assert clock.read_times(tmp_path) == {"corpus": 100, "tune": 300} and again.clock.spent() == 400
    assert again.clock.pace() == 1  # a step in two starts says nothing


@pytest.mark.parametrize("text", ["", "[]", '{"corpus": "1"}', '{"corpus": NaN}', "{" * 9999])
def test_a_damaged_file_says_what_to_do(text: str, tmp_path: Path) -> None:
    files.write_text(tmp_path / clock.FILE, [text])
    with pytest.raises(DataError, match=r"times\.json: damaged .*; remove it"):
        clock.read_times(tmp_path)
