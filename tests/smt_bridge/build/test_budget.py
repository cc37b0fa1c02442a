"""The clock of a build, and the shortening of late builds; time is simulated."""

from itertools import pairwise
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.io import files
from smt_bridge.build import budget
from smt_bridge.build import plan as plans
from smt_bridge.build.budget import (
    SHORTENED_STEPS,
    BuildClock,
    is_late,
    remaining_seconds,
    shorten_late,
    shorter_plans,
)
from smt_bridge.build.plan import CorpusSizes, Plan, decide
from tests.smt_bridge.build.test_plan import MULTI30K

# ---- test clock --------------------------------------------------------------------------------------------
# What the clock of a build says; the time is a number here.


PLANNED = {"corpus": 100.0, "tune": 300.0, "networks": 1000.0, "evaluate": 200.0}


class Time:
    """A clock that only advances in `run`."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.clock = BuildClock(folder, lambda: self.now)

    def run(self, seconds: float, *shares: float) -> None:
        """Let time pass, in equal parts, while the step advances."""
        for share in shares or (0.0,):
            self.now += seconds / max(1, len(shares))
            self.clock.tick(share)

    def step(self, name: str, seconds: float) -> None:
        """Run a complete step."""
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
    """Steps take ten times too long at first, then as planned: the first ones soon count no more."""
    time.step("corpus", 1000)
    assert time.clock.pace() > 5
    time.step("tune", 300)
    assert time.clock.pace() == pytest.approx(1, rel=0.1)
    time.clock.start("networks", PLANNED)
    assert time.clock.left() == pytest.approx(1200, rel=0.1)


def test_within_a_step_its_own_recent_progress_counts(time: Time) -> None:
    """Half of the step takes ten times as long as planned, the rest as planned."""
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
    assert budget.read_times(tmp_path) == {"corpus": 100, "tune": 300} and again.clock.spent() == 400
    assert again.clock.pace() == 1  # a step in two starts says nothing


@pytest.mark.parametrize("text", ["", "[]", '{"corpus": "1"}', '{"corpus": NaN}', "{" * 9999])
def test_a_damaged_file_says_what_to_do(text: str, tmp_path: Path) -> None:
    files.write_text(tmp_path / budget.FILE, [text])
    with pytest.raises(DataError, match=r"times\.json: damaged .*; remove it"):
        budget.read_times(tmp_path)


# ---- test late ---------------------------------------------------------------------------------------------
# A build that is late.


# What a build that is late does without.


PLAN = decide(MULTI30K, 5400, 1.0, "mkl")
EXTENDED = decide(MULTI30K, 5400, 1.0, "mkl", "auto")
SPENT = PLAN.total() - remaining_seconds(PLAN, "networks", 2)


def decided(
    plan: Plan, step: str, pace: float, budget: float = 5400, spent: float = SPENT
) -> tuple[Plan, str]:
    return shorten_late(plan, step, spent, budget, pace, 2)


@pytest.mark.parametrize("step", SHORTENED_STEPS)
def test_on_time_nothing_changes_but_the_record(step: str) -> None:
    plan, why = decided(PLAN, step, 1.0)
    assert not why and plan.decisions == {step: ""}
    assert plan.networks == PLAN.networks and plan.tuning == PLAN.tuning and plan.seconds == PLAN.seconds


def test_a_small_excess_counts_as_on_time() -> None:
    """5% of the time left, and a quarter of a minute."""
    needed = remaining_seconds(PLAN, "networks", 2)
    assert not is_late(PLAN, "networks", (needed - 14) / 1.05, 1.0, 2)
    assert is_late(PLAN, "networks", (needed - 16) / 1.05, 1.0, 2)


@pytest.mark.parametrize("pace", [2, 3, 4])
def test_a_late_build_does_what_still_fits(pace: float) -> None:
    plan, why = decided(PLAN, "networks", pace)
    left = 5400 - SPENT
    assert (
        pace * remaining_seconds(plan, "networks", 2) <= left < pace * remaining_seconds(PLAN, "networks", 2)
    )
    assert why.startswith("behind schedule before networks: ") and "tuning with networks" in why
    assert ("updates instead of 4,540" in why) == (plan.networks[0].updates < 4540)
    assert plan.decisions == {"networks": why}
    assert {name: plan.seconds[name] for name in ("corpus", "tune")} == {
        name: PLAN.seconds[name] for name in ("corpus", "tune")
    }


def test_the_later_the_less() -> None:
    updates = [
        {one.name: one.updates for one in decided(PLAN, "networks", pace)[0].networks}
        for pace in (1, 2, 3, 5, 10, 50)
    ]
    assert all(len(a) >= len(b) for a, b in pairwise(updates))
    assert all(b[name] <= a[name] for a, b in pairwise(updates) for name in b)
    assert not updates[-1]


def test_without_networks_their_steps_go() -> None:
    plan, why = decided(PLAN, "networks", 50)
    assert list(plan.seconds) == ["corpus", "alignment", "model", "filter", "tune", "evaluate", "package"]
    assert not plan.networks and "no attention" in why
    assert "attention: left out, the build was behind its plan" in list(plans.plan_lines(plan, 2, 5400))


def test_trained_networks_stay_and_their_tuning_is_shortened() -> None:
    plan, why = decided(PLAN, "tune-hybrid", 3, spent=4500)
    assert plan.networks == PLAN.networks and plan.tuning.lines == PLAN.tuning.lines
    assert (
        plan.tuning.lines_of_hybrid < PLAN.tuning.lines and plan.evaluated <= 2 * plan.tuning.lines_of_hybrid
    )
    assert plan.seconds["networks"] == PLAN.seconds["networks"] and "lines instead of 1,014" in why


def test_the_last_comparison_is_shortened_too() -> None:
    plan, why = decided(PLAN, "evaluate", 3, spent=5300)
    assert plan.compared == 200 and plan.tuning == PLAN.tuning and "compared on 200 lines" in why


@pytest.mark.parametrize("step", SHORTENED_STEPS)
def test_no_way_to_shorten_takes_longer(step: str) -> None:
    longer = EXTENDED if step == "tune-extended" else PLAN
    times = [remaining_seconds(plan, step, 2) for plan in shorter_plans(longer, step) if step in plan.seconds]
    assert times and max(times) <= remaining_seconds(longer, step, 2)
    assert all(plan.tuning.lines == longer.tuning.lines for plan in shorter_plans(longer, step))


def test_the_extended_system_goes_before_any_network_is_shortened() -> None:
    """Its features stay in the model, so that another build by the plan trains the same one."""
    done = EXTENDED.total() - remaining_seconds(EXTENDED, "tune-extended", 2)
    late, why = decided(EXTENDED, "tune-extended", 1.5, spent=done)
    assert late.extended and late.extended.iterations == 0 and "no extended phrase-based system" in why
    assert late.extended.osm == 5 and late.networks == EXTENDED.networks and late.phrase_features == "auto"
    assert "tune-extended" not in late.seconds and late.seconds["model"] == EXTENDED.seconds["model"]
    assert late.seconds["tune-hybrid"] < EXTENDED.seconds["tune-hybrid"]
    shown = list(plans.plan_lines(late, 2, 5400))
    assert "extended phrase-based system: left out, the build was behind its plan" in shown


def test_an_extended_system_that_is_wanted_in_any_case_is_only_tuned_less() -> None:
    wanted = decide(MULTI30K, 5400, 1.0, "mkl", "all")
    plan, why = decided(wanted, "tune-extended", 50)
    assert plan.extended and plan.extended.iterations == 4
    assert "extended phrase-based system: 4 iterations instead of 6" in why


def test_what_cannot_be_shortened_is_not_reported() -> None:
    small = decide(CorpusSizes(600, 5000, 5000, 40, 300), 100, 1.0, "mkl")
    plan, why = decided(small, "evaluate", 100, budget=100, spent=99)
    assert not why and plan.decisions == {"evaluate": ""}
