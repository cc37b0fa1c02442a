"""What a build that is late does without."""

from itertools import pairwise

import pytest

from smt_bridge.build import plan as plans
from smt_bridge.build import shortening
from smt_bridge.build.plan import Plan, Sizes, decide
from smt_bridge.build.shortening import STEPS, shorter, time_from

MULTI30K = Sizes(29_000, 377_000, 400_000, 1014, 13_300)
PLAN = decide(MULTI30K, 5400, 1.0, "mkl")
SPENT = PLAN.total() - time_from(PLAN, "networks", 2)


def decided(
    plan: Plan, step: str, pace: float, budget: float = 5400, spent: float = SPENT
) -> tuple[Plan, str]:
    return shortening.decide(plan, step, spent, budget, pace, 2)


@pytest.mark.parametrize("step", STEPS)
def test_on_time_nothing_changes_but_the_record(step: str) -> None:
    plan, why = decided(PLAN, step, 1.0)
    assert not why and plan.decisions == {step: ""}
    assert plan.networks == PLAN.networks and plan.tuning == PLAN.tuning and plan.seconds == PLAN.seconds


@pytest.mark.parametrize("pace", [2, 3, 4])
def test_a_late_build_does_what_still_fits(pace: float) -> None:
    plan, why = decided(PLAN, "networks", pace)
    left = 5400 - SPENT
    assert pace * time_from(plan, "networks", 2) <= left < pace * time_from(PLAN, "networks", 2)
    assert why.startswith("behind its plan before networks: ") and "tuning with networks" in why
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
    assert "attention: left out, the build was behind its plan" in list(plans.shown(plan, plan.seconds, 5400))


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


@pytest.mark.parametrize("step", STEPS)
def test_no_way_to_shorten_takes_longer(step: str) -> None:
    times = [time_from(plan, step, 2) for plan in shorter(PLAN, step) if step in plan.seconds]
    assert times and max(times) <= time_from(PLAN, step, 2)
    assert all(plan.tuning.lines == PLAN.tuning.lines for plan in shorter(PLAN, step))


def test_what_cannot_be_shortened_is_not_reported() -> None:
    small = decide(Sizes(600, 5000, 5000, 40, 300), 100, 1.0, "mkl")
    plan, why = decided(small, "evaluate", 100, budget=100, spent=99)
    assert not why and plan.decisions == {"evaluate": ""}
