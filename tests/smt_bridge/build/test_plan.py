"""Plans of builds: which networks and tunings fit into a budget, the estimated times, and the plan file."""

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import DataError
from smt_bridge.build import plan, training
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.networks import ORDER, RECIPES, recipe
from smt_bridge.build.plan import (
    CorpusSizes,
    Plan,
    decide,
    plan_candidates,
    read_plan,
    side_by_side,
    write_plan,
)
from tests.smt_bridge.build.builds import small_plan

MULTI30K = CorpusSizes(29_000, 377_000, 400_000, 1014, 13_300)
GRAMMAR = CorpusSizes(3000, 33_000, 36_000, 500, 5500)


def made(sizes: CorpusSizes, minutes: float, speed: float = 1.0) -> Plan:
    return decide(sizes, 60 * minutes, speed, "mkl")


def names(found: Plan) -> list[str]:
    return [one.name for one in found.networks]


def test_multi30k_fits_the_default_budget_with_all_networks_in_full() -> None:
    """25 minutes for the attention model, and the CSLM after the NNJM at the same time, as measured."""
    found = made(MULTI30K, 90)
    assert names(found) == ["attention", "joint", "cslm"]
    assert found.total() <= 90 * 60 and found.tuning.lines == 1014
    assert found.networks[0].updates == 10 * 454 and 23 * 60 < found.networks[0].seconds < 30 * 60


def test_the_phrase_table_is_pruned_alike_at_every_size() -> None:
    """A pair may cost as much of the whole text's likelihood. With the 29,000 pairs of Multi30k that is the
    threshold of docs/smt.md."""
    assert made(MULTI30K, 90).prune_entropy == pytest.approx(3e-6, rel=0.05)
    whole = plan.estimate_seconds(dataclasses.replace(made(MULTI30K, 90), prune_entropy=0.0))
    assert whole["model"] < made(MULTI30K, 90).seconds["model"]
    few, many = (made(of(pairs), 90).prune_entropy for pairs in (1000, 100_000))
    assert few == pytest.approx(100 * many, rel=0.02)
    large = dataclasses.replace(MULTI30K, pairs=10**6, target_words=12_000_000)
    assert made(large, 600).prune_entropy == 0  # its pairs do not fit into memory
    (line,) = (line for line in plan.plan_lines(made(MULTI30K, 90), 2, 5400) if "phrase table" in line)
    assert line.endswith("--prune-entropy 3.1e-06")


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
    for minutes in (1, 2, 3, 5, 8, 12, 20, 30, 45):
        for one in made(sizes, minutes).networks:
            found = recipe(one.name, sizes.pairs)
            assert found and one.updates >= found.least


def test_every_recipe_is_worth_its_smallest_corpus() -> None:
    """All the epochs that help are enough updates, or the recipe would never be used there."""
    for entry in RECIPES:
        assert entry.most * (entry.pairs // entry.batch) >= entry.least, (entry.network, entry.pairs)


def test_the_budget_holds_unless_nothing_is_left() -> None:
    for minutes in (2, 4, 8, 15, 30, 60):
        for sizes in (MULTI30K, GRAMMAR):
            found = made(sizes, minutes)
            smallest = list(plan_candidates(sizes))[-1]
            assert found.total() <= 60 * minutes or found.tuning.lines == min(smallest.lines, sizes.dev_pairs)


def of(pairs: int) -> CorpusSizes:
    """Sizes of a part of Multi30k with so many pairs."""
    return CorpusSizes(pairs, 13 * pairs, 14 * pairs, 1014, 13_300)


def test_a_small_corpus_has_the_same_networks_and_more_epochs() -> None:
    """With half the layer sizes, 2 to 3 BLEU are lost at 10,000 pairs; see recipes/low_resource/README.md."""
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
    """If one of them is chosen, no longer one fits with the same networks, however few their updates."""
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
    shown = "\n".join(plan.plan_lines(made(dataclasses.replace(GRAMMAR, pairs=499), 90), 2, 5400))
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
        assert f"{name}: left out, {text}" in list(plan.plan_lines(plan_now, 2, 60 * minutes))


def test_more_than_the_budget_with_one_worker() -> None:
    """A plan assumes two workers; with one it may take longer than the budget, and the description says
    why."""
    plan_now = made(MULTI30K, 90)
    alone = plan.seconds_with_workers(plan_now, 1)
    budget = (sum(alone.values()) + plan_now.total()) / 2
    *_, last = plan.plan_lines(plan_now, 1, budget)
    assert "plans assume 2 workers" in last and "nothing more" not in last
    *_, last = plan.plan_lines(plan_now, 1, plan_now.total() - 1)
    assert "nothing more can be left out" in last


@pytest.mark.parametrize("sizes", [MULTI30K, GRAMMAR])
def test_extended_features_never_cost_a_network_or_its_updates(sizes: CorpusSizes) -> None:
    """Only tunings become a little shorter for them."""
    seen = set()
    for minutes in (2, 5, 10, 20, 30, 45, 50, 55, 60, 70, 90, 180):
        without = decide(sizes, 60 * minutes, 1.0, "mkl", "none")
        found = decide(sizes, 60 * minutes, 1.0, "mkl", "auto")
        assert found.networks == without.networks
        assert found.total() <= 60 * minutes or not found.extended
        assert found.tuning == without.tuning or found.tuning.lines >= 500
        assert ("tune-extended" in found.seconds) == bool(found.extended)
        seen.add(bool(found.extended))
    assert seen == {False, True}
    assert decide(sizes, 60 * 90, 1.0, "mkl", "auto").tuning == decide(sizes, 60 * 90, 1.0, "mkl").tuning


@pytest.mark.parametrize(("sizes", "minutes"), [(MULTI30K, 10), (GRAMMAR, 3)])
def test_the_budget_that_brings_the_extended_features_is_named(sizes: CorpusSizes, minutes: int) -> None:
    plan_now = decide(sizes, 60 * minutes, 1.0, "mkl", "auto")
    assert not plan_now.extended
    (line,) = plan.extended_lines(plan_now)
    needed = int(line.partition("--budget ")[2].partition("m")[0])
    assert "left out, the budget is too small" in line and line in list(plan.plan_lines(plan_now, 2, 60))
    assert decide(sizes, 60 * needed, 1.0, "mkl", "auto").extended
    assert not decide(sizes, 60 * (needed - 1), 1.0, "mkl", "auto").extended
    assert not list(plan.extended_lines(decide(sizes, 60 * minutes, 1.0, "mkl", "none")))


def test_extended_features_that_are_wanted_shorten_the_networks() -> None:
    found = decide(MULTI30K, 60 * 20, 1.0, "mkl", "all")
    assert found.extended and found.networks and found.total() <= 60 * 20
    smallest = decide(MULTI30K, 60, 1.0, "mkl", "all")
    assert smallest.extended and not smallest.networks and smallest.total() > 60
    (line,) = plan.extended_lines(found)
    assert "operation sequences of order 5, 200 word classes" in line and "kept if" not in line
    needed = int(plan.reason_left_out("attention", smallest).partition("--budget ")[2].partition("m")[0])
    assert decide(MULTI30K, 60 * needed, 1.0, "mkl", "all").has("attention")


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
    """With a clock that advances by one for each product, a second has ten products."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "process_time", lambda: next(ticks) / 10)
    monkeypatch.setattr("smt_bridge.build.plan.ROUND_SECONDS", 1.0)
    rows, inner, columns = plan.PRODUCT_SHAPE
    assert plan.measure_speed() == pytest.approx(2 * rows * inner * columns * 9, rel=0.2)


# ---- test plan file ----------------------------------------------------------------------------------------
# plan.json, and what is refused as one.


PLAN = decide(CorpusSizes(29_000, 377_000, 400_000, 1014, 13_300), 5400, 1.0, "mkl")
Content = dict[str, Any]
OTHERS: tuple[object, ...] = (None, True, "x", -1, 1.5, [], {}, [1], {"a": 1}, 10**400)


def paths(content: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The keys of all values in nested lists and objects, except those in `sections`."""
    if path and path[-1] == "sections":
        return []
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else []
    )
    return [deeper for key, value in items for deeper in [(*path, key), *paths(value, (*path, key))]]


def changed(plan: Content, path: tuple[str | int, ...], value: object) -> Content:
    copy: Content = json.loads(json.dumps(plan))
    part: Any = copy
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return copy


def write(folder: Path, content: Content) -> Path:
    (folder / "plan.json").write_text(json.dumps(content))
    return folder / "plan.json"


@pytest.fixture
def content(tmp_path: Path) -> Content:
    write_plan(tmp_path / "plan.json", PLAN)
    found: Content = json.loads((tmp_path / "plan.json").read_text())
    return found


def test_a_plan_of_version_1_0_prunes_nothing(tmp_path: Path, content: Content) -> None:
    assert content.pop("prune_entropy") == PLAN.prune_entropy
    assert read_plan(write(tmp_path, content)).prune_entropy == 0
    lines = plan.plan_lines(read_plan(tmp_path / "plan.json"), 2, 5400)
    assert not [line for line in lines if "phrase table" in line]


def test_a_kept_plan_is_the_same(tmp_path: Path) -> None:
    for kept in (PLAN, small_plan("attention", "joint", "cslm"), small_plan()):
        write_plan(tmp_path / "plan.json", kept)
        assert read_plan(tmp_path / "plan.json") == kept


def test_a_plan_of_before_has_the_defaults(tmp_path: Path, content: Content) -> None:
    for key in ("compared", "decisions"):
        del content[key]
    del content["tuning"]["hybrid_lines"]
    assert read_plan(write(tmp_path, content)) == PLAN


def test_values_of_every_other_type_are_refused_or_mean_the_same(tmp_path: Path, content: Content) -> None:
    """Each value of the plan is replaced by null, a boolean, a string, a negative number, a fraction, a list
    and an object."""
    plain = paths(content)
    assert len(plain) > 60
    refused = 0
    for path in plain:
        for value in OTHERS:
            mutant = changed(content, path, value)
            try:
                plan = read_plan(write(tmp_path, mutant))
            except DataError as error:
                assert str(error).startswith(f"{tmp_path}/plan.json: not a plan of smt-build"), (path, value)
                refused += 1
            else:  # a number or a text of the same type: nothing else is lost
                assert json.loads(json.dumps(asdict(plan))) == {
                    key: part for key, part in mutant.items() if key != "format"
                }, (path, value)
    assert refused > 0.8 * len(plain) * len(OTHERS)


def without(content: Content, *keys: str | int) -> None:
    *above, last = keys
    part: Any = content
    for key in above:
        part = part[key]
    del part[last]


def extend(content: Content, **values: object) -> None:
    content.update(phrase_features="auto", extended=values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan["networks"][0].update(name="../../x"), r"networks\[0\].name: expected one of"),
        (lambda plan: plan["networks"][1].update(name="attention"), "networks: a network is listed twice"),
        (lambda plan: plan["networks"][0].update(updates=0), r"networks\[0\].updates: 0 is out of range"),
        (lambda plan: plan["networks"][0].update(preset="nosuch"), "--preset nosuch: unknown"),
        (lambda plan: plan["networks"][0]["sections"].update(data={}), "sections: data is unknown"),
        (lambda plan: plan["networks"].pop(), None),
        (lambda plan: plan["networks"].clear(), "seconds: expected those of"),
        (lambda plan: plan["seconds"].pop("tune"), "seconds: expected those of"),
        (lambda plan: plan["seconds"].update(tune=-1), "seconds.tune: -1 is out of range"),
        (lambda plan: plan["tuning"].update(method="guess"), "tuning.method: 'guess' is unknown"),
        (
            lambda plan: plan["tuning"].update(hybrid_method="guess"),
            "tuning.hybrid_method: 'guess' is unknown",
        ),
        (
            lambda plan: plan["sizes"].update(monolingual_lines=-1),
            "sizes.monolingual_lines: -1 is out of range",
        ),
        (lambda plan: plan["tuning"].update(iterations=101), "tuning.iterations: expected 1 to 100"),
        (lambda plan: plan["tuning"].update(neural_beam=-1), "tuning.neural_beam: -1 is out of range"),
        (lambda plan: plan.update(matmul="cublas"), "matmul: expected one of mkl, onednn"),
        (lambda plan: plan.update(speed=0), "speed: 0 is out of range"),
        (lambda plan: plan.update(phrase_features="some"), "phrase_features: expected one of"),
        (lambda plan: plan.update(extended={}), "extended: expected null, as phrase_features is none"),
        (lambda plan: extend(plan, osm=11), "extended.osm: 11 is out of range"),
        (lambda plan: extend(plan, osm=0, class_lm=0), "extended: expected osm or class_lm above 0"),
        (lambda plan: extend(plan, iterations=101), "extended.iterations: expected 0 to 100"),
        (lambda plan: extend(plan, reordering_type="wbe"), "wbe"),
        (lambda plan: extend(plan, count_feature="all"), "extended.count_feature: 'all' is unknown"),
        (lambda plan: extend(plan), "seconds: expected those of .*tune-extended"),
        (lambda plan: plan.update(significance=2), "significance: 2 is out of range, expected 0 to 1"),
        (lambda plan: plan.update(prune_entropy=-1), "prune_entropy: -1 is out of range"),
        (lambda plan: plan["sizes"].update(dev_pairs=0), "sizes.dev_pairs: 0 is out of range"),
        (lambda plan: plan.update(format="smt-build plan 9"), "format: expected 'smt-build plan 1'"),
        (lambda plan: plan.pop("format"), "format: expected"),
        (lambda plan: without(plan, "networks", 0, "batch"), r"networks\[0\].batch: missing"),
    ],
)
def test_the_key_of_a_mistake_is_named(
    change: Callable[[Content], object], message: str | None, tmp_path: Path, content: Content
) -> None:
    change(content)
    if message is None:
        assert read_plan(write(tmp_path, content)).networks == PLAN.networks[:-1]
        return
    with pytest.raises(DataError, match=rf"plan\.json: .*{message}"):
        read_plan(write(tmp_path, content))


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"type": "rnn", "hidden": "x"}},
        {"model": {"typ": "rnn"}},
        {"model": {"type": 1}},
        {"training": {"optimizer": None}},
    ],
)
def test_settings_that_a_network_cannot_have_are_refused(
    sections: Content, tmp_path: Path, content: Content
) -> None:
    content["networks"][0]["sections"] = sections
    plan = read_plan(write(tmp_path, content))
    build = Build(BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system"), plan)
    with pytest.raises(DataError, match=r"plan\.json: networks\[0\]: "):
        training.check_networks(build, "plan.json")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "smt-build plan 1"}', '{"format": "other"}', "[" * 9999]
)
def test_another_file_is_no_plan(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(DataError, match=r"plan\.json: not a plan of smt-build, or damaged"):
        read_plan(tmp_path / "plan.json")
