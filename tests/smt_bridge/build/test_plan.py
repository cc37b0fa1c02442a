"""What a build decides to do, and how long it says that takes."""

import dataclasses
import time
from itertools import pairwise

import pytest

from smt_bridge.build import plan
from smt_bridge.build import plan as plans
from smt_bridge.build.networks import ORDER, recipe
from smt_bridge.build.plan import (
    SHORTENED_STEPS,
    CorpusSizes,
    Plan,
    decide,
    plan_candidates,
    remaining_seconds,
    shorten_late,
    shorter_plans,
    side_by_side,
)

# ---- test plan ---------------------------------------------------------------------------------------------


MULTI30K = CorpusSizes(29_000, 377_000, 400_000, 1014, 13_300)
GRAMMAR = CorpusSizes(3000, 33_000, 36_000, 500, 5500)


def made(sizes: CorpusSizes, minutes: float, speed: float = 1.0) -> Plan:
    return decide(sizes, 60 * minutes, speed, "mkl")


def names(found: Plan) -> list[str]:
    return [one.name for one in found.networks]


def test_multi30k_fits_the_default_budget_with_all_networks_in_full() -> None:
    """25 minutes of attention, then CSLM, beside NNJM, as they were measured."""
    found = made(MULTI30K, 90)
    assert names(found) == ["attention", "joint", "cslm"]
    assert found.total() <= 90 * 60 and found.tuning.lines == 1014
    assert found.networks[0].updates == 10 * 454 and 23 * 60 < found.networks[0].seconds < 30 * 60


def test_a_few_thousand_pairs_fit_five_minutes() -> None:
    found = made(GRAMMAR, 5)
    assert found.networks and found.total() <= 300


@pytest.mark.parametrize("sizes", [MULTI30K, GRAMMAR, dataclasses.replace(MULTI30K, pairs=400_000)])
def test_more_time_is_never_used_for_less(sizes: CorpusSizes) -> None:
    found = [made(sizes, minutes) for minutes in (1, 3, 5, 10, 20, 45, 90, 180, 2000)]
    updates = [{one.name: one.updates for one in each.networks} for each in found]
    assert all(len(a) <= len(b) for a, b in pairwise(updates))
    same = [(a, b) for a, b in pairwise(updates) if a.keys() == b.keys()]
    assert all(a[name] <= b[name] for a, b in same for name in a)


def test_epochs_shrink_before_networks_are_left_out() -> None:
    full, less = made(MULTI30K, 90), made(MULTI30K, 30)
    assert names(less) == names(full)
    assert all(a.updates > b.updates for a, b in zip(full.networks, less.networks, strict=True))


@pytest.mark.parametrize("sizes", [MULTI30K, GRAMMAR, dataclasses.replace(GRAMMAR, pairs=600)])
def test_no_network_gets_fewer_updates_than_it_is_worth(sizes: CorpusSizes) -> None:
    """A small corpus has few of them in all the epochs that help."""
    for minutes in (1, 2, 3, 5, 8, 12, 20, 30, 45):
        for one in made(sizes, minutes).networks:
            found = recipe(one.name, sizes.pairs)
            assert found and one.updates >= min(found.least, found.most * -(-sizes.pairs // found.batch))


def test_the_budget_holds_unless_nothing_is_left() -> None:
    for minutes in (2, 4, 8, 15, 30, 60):
        for sizes in (MULTI30K, GRAMMAR):
            found = made(sizes, minutes)
            smallest = list(plan_candidates(sizes))[-1]
            assert found.total() <= 60 * minutes or found.tuning.lines == min(smallest.lines, sizes.dev_pairs)


def of(pairs: int) -> CorpusSizes:
    """As many pairs of Multi30k."""
    return CorpusSizes(pairs, 13 * pairs, 14 * pairs, 1014, 13_300)


def test_a_small_corpus_has_the_same_networks_and_more_epochs() -> None:
    """Half the sizes lose 2 to 3 BLEU at 10,000 pairs; see docs/results.md."""
    found = [
        {one.name: one for one in made(of(pairs), 1000).networks} for pairs in (2000, 5000, 10_000, 29_000)
    ]
    for less, more in pairwise(found):
        assert {name: one.what for name, one in less.items()} == {
            name: one.what for name, one in more.items()
        }
        assert all(less[name].epochs >= more[name].epochs for name in less)


@pytest.mark.parametrize("pairs", [1000, 2000, 5000, 10_000, 20_000])
def test_a_few_pairs_lost_in_cleaning_change_nothing(pairs: int) -> None:
    whole, cleaned = (made(of(size), 1000).networks for size in (pairs, pairs - pairs // 100))
    assert [(one.what, one.epochs) for one in whole] == [(one.what, one.epochs) for one in cleaned]


@pytest.mark.parametrize("pairs", [600, 1000, 2000, 5000])
def test_a_small_budget_is_tuned_on_fewer_lines_rather_than_without_networks(pairs: int) -> None:
    found = made(of(pairs), 5)
    assert names(found) == ["joint", "cslm"] and found.total() <= 300
    assert found.tuning.lines < made(of(pairs), 90).tuning.lines


@pytest.mark.parametrize("pairs", [2000, 5000, 10_000, 29_000])
def test_the_shortest_tunings_are_the_last_resort(pairs: int) -> None:
    """Where one is chosen, no longer one fits beside the same networks, however few their updates."""
    shortest = 0
    for minutes in range(4, 60, 2):
        found = made(of(pairs), minutes)
        if found.networks and found.tuning.lines < 500:
            shortest += 1
            longer = [
                one
                for one in plan_candidates(of(pairs))
                if list(one.names) == names(found) and one.lines >= 500
            ]
            longer = [one for one in longer if one.iterations != plan.ITERATIONS[-1]]
            plans = [plan.make_plan(of(pairs), one, 1.0, "mkl") for one in longer]
            assert longer and all(one is None or one.total() > 60 * minutes for one in plans)
    assert shortest


def test_a_tiny_corpus_has_no_attention_model() -> None:
    assert names(made(dataclasses.replace(GRAMMAR, pairs=1499), 90)) == ["joint", "cslm"]
    assert names(made(dataclasses.replace(GRAMMAR, pairs=499), 90)) == []
    shown = "\n".join(plan.plan_lines(made(dataclasses.replace(GRAMMAR, pairs=499), 90), {}, 5400))
    assert "attention: left out, 499 pairs are too few" in shown


def test_a_slower_machine_gets_the_same_work_in_more_time_or_less_work() -> None:
    fast, slow = made(MULTI30K, 1000, 2.0), made(MULTI30K, 1000, 0.5)
    assert [one.updates for one in fast.networks] == [one.updates for one in slow.networks]
    assert 3.9 < slow.total() / fast.total() < 4.1
    assert made(MULTI30K, 60, 0.5).networks != made(MULTI30K, 60, 2.0).networks


@pytest.mark.parametrize(("sizes", "minutes"), [(MULTI30K, 4), (MULTI30K, 10), (GRAMMAR, 3), (GRAMMAR, 1)])
def test_the_budget_that_brings_a_network_is_named_and_brings_it(sizes: CorpusSizes, minutes: int) -> None:
    plan_now = made(sizes, minutes)
    left_out = [name for name in ORDER if not plan_now.has(name)]
    assert left_out
    for name in left_out:
        text = plan.reason_left_out(name, plan_now)
        needed = int(text.partition("--budget ")[2].partition("m")[0])
        assert needed > minutes and made(sizes, needed).has(name) and not made(sizes, needed - 1).has(name)
        assert f"{name}: left out, {text}" in list(plan.plan_lines(plan_now, plan_now.seconds, 60 * minutes))


def test_more_than_the_budget_with_one_worker() -> None:
    """A plan counts with two; with one it may take longer than the budget, which is said rightly."""
    plan_now = made(MULTI30K, 90)
    alone = plan.seconds_with_workers(plan_now, 1)
    budget = (sum(alone.values()) + plan_now.total()) / 2
    *_, last = plan.plan_lines(plan_now, alone, budget)
    assert "a smaller --budget plans less" in last and "nothing is left" not in last
    *_, last = plan.plan_lines(plan_now, alone, plan_now.total() - 1)
    assert "nothing is left to leave out" in last


def test_monolingual_text_goes_to_the_cslm_unless_there_is_too_much() -> None:
    some = dataclasses.replace(MULTI30K, monolingual_lines=50_000, monolingual_words=700_000)
    much = dataclasses.replace(MULTI30K, monolingual_lines=500_000, monolingual_words=7_000_000)
    without = made(MULTI30K, 500).networks[2].updates
    assert made(some, 500).networks[2].updates > without and made(some, 500).monolingual_network
    assert made(much, 500).networks[2].updates == without and not made(much, 500).monolingual_network


def test_tasks_side_by_side() -> None:
    assert side_by_side([5, 3, 3]) == 6  # the third waits for the second
    assert side_by_side([5, 3, 3], 1) == 11
    found = made(MULTI30K, 90)
    assert plan.seconds_with_workers(found, 2) == pytest.approx(found.seconds, abs=1)
    assert plan.seconds_with_workers(found, 1)["networks"] == sum(one.seconds for one in found.networks)


# ---- test rates --------------------------------------------------------------------------------------------
# How fast a machine is.


@pytest.mark.parametrize(("share", "grade"), [(0.93, 1.0), (1.1, 1.0), (0.01, 0.25), (1.9, 2.0), (50, 4.0)])
def test_speeds_are_coarse_so_that_two_measurements_agree(share: float, grade: float) -> None:
    assert plan.grade_speed(share * plan.REFERENCE_FLOPS) == grade


def test_a_measurement_counts_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that ticks once a product, a second has ten products."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "process_time", lambda: next(ticks) / 10)
    monkeypatch.setattr("smt_bridge.build.plan.ROUND_SECONDS", 1.0)
    rows, inner, columns = plan.PRODUCT_SHAPE
    assert plan.measure_speed() == pytest.approx(2 * rows * inner * columns * 9, rel=0.2)


# ---- test shortening ---------------------------------------------------------------------------------------
# What a build that is late does without.


PLAN = decide(MULTI30K, 5400, 1.0, "mkl")
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


@pytest.mark.parametrize("pace", [2, 3, 4])
def test_a_late_build_does_what_still_fits(pace: float) -> None:
    plan, why = decided(PLAN, "networks", pace)
    left = 5400 - SPENT
    assert (
        pace * remaining_seconds(plan, "networks", 2) <= left < pace * remaining_seconds(PLAN, "networks", 2)
    )
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
    assert "attention: left out, the build was behind its plan" in list(
        plans.plan_lines(plan, plan.seconds, 5400)
    )


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
    times = [remaining_seconds(plan, step, 2) for plan in shorter_plans(PLAN, step) if step in plan.seconds]
    assert times and max(times) <= remaining_seconds(PLAN, step, 2)
    assert all(plan.tuning.lines == PLAN.tuning.lines for plan in shorter_plans(PLAN, step))


def test_what_cannot_be_shortened_is_not_reported() -> None:
    small = decide(CorpusSizes(600, 5000, 5000, 40, 300), 100, 1.0, "mkl")
    plan, why = decided(small, "evaluate", 100, budget=100, spent=99)
    assert not why and plan.decisions == {"evaluate": ""}
