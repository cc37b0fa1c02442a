"""Training from Python."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import torch

import nmt
from nmt.errors import ConfigError, DataError
from nmt.training import build, config_file
from nmt.training.job import TrainingJob
from nmt.training.state import Clock
from nmt.training.train import run_training

TINY = {"embedding": 4, "hidden": 4, "maxout": 4}


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    for name in ("source", "target"):
        (tmp_path / name).write_text("a b c\nb c\nc a\nb\n" * 5)
    sides = {"source": {"language": "en"}, "target": {"language": "fr"}}
    return {"train_source": str(tmp_path / "source"), "train_target": str(tmp_path / "target"), **sides}


def settings(data: dict[str, object], tmp_path: Path, steps: int) -> dict[str, object]:
    training = {"max_steps": steps, "batch_size": 4, "tensorboard": False}
    return {"run": str(tmp_path / "run"), "data": data, "model": TINY, "training": training, "matmul": "mkl"}


def test_a_run_is_made_resumed_and_made_afresh(data: dict[str, object], tmp_path: Path) -> None:
    assert nmt.train(settings(data, tmp_path, 3)).members[0].step == 3
    run = nmt.train(settings(data, tmp_path, 5))
    assert run.members[0].step == 5 and len(run.translate(["a b", ""])) == 2
    assert nmt.train(settings(data, tmp_path, 2), overwrite=True).members[0].step == 2
    with pytest.raises(ConfigError, match=r"was started with other settings: model\.hidden=5"):
        nmt.train({**settings(data, tmp_path, 4), "model": {**TINY, "hidden": 5}})
    assert (tmp_path / "run" / "version").read_text() == "nmt-run 2\n"


@pytest.mark.ci
@pytest.mark.parametrize("model", ["rnn", "lm"])
def test_batches_by_tokens_are_resumed_exactly(data: dict[str, object], tmp_path: Path, model: str) -> None:
    """Stopped in the middle of an epoch, and at its end: the same weights as of a run that never stopped."""
    given = settings(data, tmp_path, 0)
    training = {"batch_tokens": 9, "pool": 3, "max_epochs": 3, "validate_every": 0, "tensorboard": False}
    if model == "lm":
        text = {"train_text": data["train_target"], "target": data["target"]}
        lm = {"type": "cslm", "embedding": 4, "layers": [4], "order": 3}
        given = {"data": text, "lm": lm, "matmul": "mkl"}
    found = []
    for run, limits in (("whole", [0]), ("parts", [1, 4, 9, 0])):
        for limit in limits:
            place = {"run": str(tmp_path / run), "training": {**training, "max_steps": limit}}
            (nmt.train if model == "rnn" else nmt.train_language_model)({**given, **place})
        (weights,) = (tmp_path / run).glob("step-*.pt")
        found.append((weights.name, torch.load(weights, weights_only=True)))
    assert found[0][0] == found[1][0] and found[0][1].keys() == found[1][1].keys()
    assert all(torch.equal(value, found[1][1][name]) for name, value in found[0][1].items())


def test_stop_ends_a_training_with_a_save(data: dict[str, object], tmp_path: Path) -> None:
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(len(asked) == 2)
        return asked[-1]

    assert nmt.train(settings(data, tmp_path, 50), stop=stop).members[0].step == 3


class HalfASecond(Clock):
    """A clock on which each update takes half a second."""

    def __init__(self, before: float, words: int = 0) -> None:
        super().__init__(0, words)
        self.earlier = before

    def seconds(self) -> float:
        return self.earlier + 0.5 * self.updates


def test_a_rate_that_follows_the_clock_is_resumed_exactly(
    data: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that has passed is a part of the saved state; the rate has fallen to 0 when it is over."""
    monkeypatch.setattr("nmt.training.state.Clock", HalfASecond)
    timed = {"schedule": "linear", "max_minutes": 0.1, "batch_size": 4, "log_every": 1, "tensorboard": False}
    weights = []
    for run, stops in (("whole", []), ("parts", [2, 7])):
        given = {**settings(data, tmp_path, 0), "run": str(tmp_path / run), "training": timed}
        for update in [*stops, 99]:
            nmt.train(given, stop=partial(next, iter([False] * (update - 1) + [True])))
        weights.append(torch.load(tmp_path / run / "step-12.pt", weights_only=True))
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    rows = [line.split("\t") for line in (tmp_path / "parts" / "train.tsv").read_text().splitlines()[1:]]
    assert [float(row[5]) for row in rows] == pytest.approx(
        [1 - update / 12 for update in range(12)], abs=1e-5
    )


@pytest.mark.parametrize("limit", ["max_minutes", "max_steps"])
def test_a_training_that_is_over_loads_nothing(
    limit: str, data: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings(data, tmp_path, 3)
    nmt.train(given)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("[a-z]*.*")}
    broken = replace(build.KINDS["translator"], build=cast(Callable[[TrainingJob], None], None))
    monkeypatch.setitem(build.KINDS, "translator", broken)
    limits = {"max_steps": 3} if limit == "max_steps" else {"max_steps": 0, "max_minutes": 1e-9}
    again = {**given, "training": {"batch_size": 4, "tensorboard": False, **limits}}
    assert run_training(config_file.from_mapping(again)).startswith(limit)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").glob("[a-z]*.*")}
    with pytest.raises(TypeError, match="not callable"):  # there is something left to do
        nmt.train(settings(data, tmp_path, 4))


def test_what_is_wrong_is_one_line_before_any_work(data: dict[str, object], tmp_path: Path) -> None:
    good = settings(data, tmp_path, 3)
    text = {"data": {"train_text": data["train_source"]}, "lm": {"type": "cslm"}, "run": good["run"]}
    with pytest.raises(ConfigError, match="a language model; train it by train_language_model"):
        nmt.train(text)
    with pytest.raises(ConfigError, match=r"a translator; train it by train$"):
        nmt.train_language_model(good)
    with pytest.raises(DataError, match="none"):
        nmt.train({**good, "data": {**data, "train_source": str(tmp_path / "none")}})
    with pytest.raises(ConfigError, match="is the run directory; name a folder of its own"):
        nmt.train({**good, "data": {**data, "cache": good["run"]}})
    assert not (tmp_path / "run").exists()
