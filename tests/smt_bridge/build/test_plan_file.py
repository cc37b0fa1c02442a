"""plan.json, and what is refused as one."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import DataError
from smt_bridge.build import plan_file, training
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.plan import CorpusSizes, decide
from tests.smt_bridge.build.builds import small_plan

PLAN = decide(CorpusSizes(29_000, 377_000, 400_000, 1014, 13_300), 5400, 1.0, "mkl")
Content = dict[str, Any]
OTHERS: tuple[object, ...] = (None, True, "x", -1, 1.5, [], {}, [1], {"a": 1}, 10**400)


def paths(content: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The keys to every value of nested lists and objects, those of sections left out."""
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
    plan_file.write(tmp_path / "plan.json", PLAN)
    found: Content = json.loads((tmp_path / "plan.json").read_text())
    return found


def test_a_kept_plan_is_the_same(tmp_path: Path) -> None:
    for plan in (PLAN, small_plan("attention", "joint", "cslm"), small_plan()):
        plan_file.write(tmp_path / "plan.json", plan)
        assert plan_file.read(tmp_path / "plan.json") == plan


def test_a_plan_of_before_has_the_defaults(tmp_path: Path, content: Content) -> None:
    for key in ("compared", "decisions"):
        del content[key]
    del content["tuning"]["hybrid_lines"]
    assert plan_file.read(write(tmp_path, content)) == PLAN


def test_values_of_every_other_type_are_refused_or_mean_the_same(tmp_path: Path, content: Content) -> None:
    """Each value of the plan as null, a flag, a text, a negative number, a fraction, a list and an object."""
    plain = paths(content)
    assert len(plain) > 60
    refused = 0
    for path in plain:
        for value in OTHERS:
            mutant = changed(content, path, value)
            try:
                plan = plan_file.read(write(tmp_path, mutant))
            except DataError as error:
                assert str(error).startswith(f"{tmp_path}/plan.json: is no plan of smt-build"), (path, value)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan["networks"][0].update(name="../../x"), r"networks\[0\].name: expected one of"),
        (lambda plan: plan["networks"][1].update(name="attention"), "networks: one is there twice"),
        (lambda plan: plan["networks"][0].update(updates=0), r"networks\[0\].updates: 0 is out of range"),
        (lambda plan: plan["networks"][0].update(preset="nosuch"), "--preset nosuch: unknown"),
        (lambda plan: plan["networks"][0]["sections"].update(data={}), "sections: data is none of"),
        (lambda plan: plan["networks"].pop(), None),
        (lambda plan: plan["networks"].clear(), "seconds: expected those of"),
        (lambda plan: plan["seconds"].pop("tune"), "seconds: expected those of"),
        (lambda plan: plan["seconds"].update(tune=-1), "seconds.tune: -1 is out of range"),
        (lambda plan: plan["tuning"].update(method="guess"), "tuning.method: 'guess' is unknown"),
        (lambda plan: plan["tuning"].update(iterations=101), "tuning.iterations: expected 1 to 100"),
        (lambda plan: plan["tuning"].update(neural_beam=-1), "tuning.neural_beam: -1 is out of range"),
        (lambda plan: plan.update(matmul="cublas"), "matmul: expected one of mkl, onednn"),
        (lambda plan: plan.update(speed=0), "speed: 0 is out of range"),
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
        assert plan_file.read(write(tmp_path, content)).networks == PLAN.networks[:-1]
        return
    with pytest.raises(DataError, match=rf"plan\.json: .*{message}"):
        plan_file.read(write(tmp_path, content))


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
    plan = plan_file.read(write(tmp_path, content))
    build = Build(BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system"), plan)
    with pytest.raises(DataError, match=r"plan\.json: networks\[0\]: "):
        training.check_networks(build, "plan.json")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "smt-build plan 1"}', '{"format": "other"}', "[" * 9999]
)
def test_another_file_is_no_plan(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(DataError, match=r"plan\.json: is no plan of smt-build, or damaged"):
        plan_file.read(tmp_path / "plan.json")
