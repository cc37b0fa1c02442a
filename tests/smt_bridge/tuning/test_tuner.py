"""Runs of a tuner with several seeds, their starting points, and their spread."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError, UserError
from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Floats, HypothesisRows, Pool
from smt_bridge.tuning.tuner import (
    Progress,
    TuningPoint,
    best_point,
    better_point,
    read_start,
    run_seeds,
    run_tuner,
    silent,
    spread_table,
    starting_point,
)


@dataclass
class Recorder:
    """A tuner that records its arguments."""

    weight: float
    asked: list[tuple[Floats | None, int, int]] = field(default_factory=list)

    def tune(
        self, pool: Pool, start: Floats | None, seed: int, threads: int = 1, progress: Progress = silent,
        **unused: object,
    ) -> TuningPoint:  # fmt: skip
        self.asked.append((start, seed, threads))
        progress(1, 2)
        progress(2, 2)
        return TuningPoint(np.full(2, self.weight), 1 / seed)


def make_pool(features: list[list[float]]) -> Pool:
    """The pool of one sentence, with a match in each order."""
    lists = HypothesisRows(["A_0", "B_0"])
    lists.add(0, np.array(features), np.ones((len(features), COLUMNS)))
    return lists.pool()


@pytest.fixture
def pool() -> Pool:
    return make_pool([[1.0, 2.0], [3.0, 4.0]])


def test_each_seed_is_a_run_and_progress_is_that_of_all(pool: Pool) -> None:
    tuner, told = Recorder(0.5), []
    points = run_seeds(pool, tuner, None, [4, 5], 3, lambda done, total: told.append((done, total)))
    assert tuner.asked == [(None, 4, 3), (None, 5, 3)]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert best_point(points).bleu == 0.25
    with pytest.raises(UserError, match="every weight is 0"):
        run_seeds(pool, Recorder(0.0), None, [1], 1, silent)


def test_the_start_is_kept_where_it_is_better(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    start, weaker = starting_point(pool, np.array([3.0, 1.0])), TuningPoint(np.ones(2), -1.0)
    assert start.weights.tolist() == [0.75, 0.25] and start.bleu == pool.bleu(start.weights)
    assert better_point(start, [weaker, TuningPoint(np.ones(2), start.bleu)]).weights.tolist() == [1, 1]
    assert not caplog.messages
    assert better_point(start, [weaker]) is start and "keeping the initial ones" in caplog.text
    assert better_point(TuningPoint(np.zeros(2), 1.0), [weaker]) is weaker


def test_equal_weights_are_the_start_of_none() -> None:
    point = starting_point(make_pool([[1.0, 5.0], [3.0, 5.0]]), None)
    assert point.weights.tolist() == [1, 0]  # B is constant


def test_the_spread_of_points() -> None:
    points = [TuningPoint(np.array([1.0, 2.0]), 0.25), TuningPoint(np.array([3.0, 2.0]), 0.75)]
    assert list(spread_table(["A_0", "B_0"], points)) == [
        "value\tmean\tsd\tlowest\thighest",
        "BLEU\t0.5\t0.25\t0.25\t0.75",
        "A_0\t2\t1\t1\t3",
        "B_0\t2\t0\t2\t2",
    ]


def test_weights_to_start_from(tmp_path: Path) -> None:
    path = tmp_path / "w"
    names = ["A_0", "B_0", "B_1"]
    for text, expected in (("B= 2 3\n", [0, 2, 3]), ("# mert\n1 2 3\n", [1, 2, 3])):
        path.write_text(text)
        assert read_start(str(path), names).tolist() == expected
    path.write_text("1 2\n")
    with pytest.raises(ConfigError, match="2 numbers, but the pool has 3 features: A_0 B_0 B_1"):
        read_start(str(path), names)
    path.write_text("B= 2\n")
    with pytest.raises(DataError, match="w: 1 weights for B, which has 2 values"):
        read_start(str(path), names)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(2), r"returned ndarray, expected a TuningPoint"),
        (
            TuningPoint(np.ones(1), 0.5),
            r"returned weights of shape \(1,\), expected finite weights of shape \(2,\)",
        ),
        (TuningPoint(np.array([1.0, np.nan]), 0.5), "returned a weight that is not finite"),
    ],
)
def test_what_a_tuner_must_not_return(pool: Pool, result: object, message: str) -> None:
    class Wrong(Mert):
        def tune(self, *_: object, **__: object) -> TuningPoint:
            return result  # type: ignore[return-value]

    with pytest.raises(ConfigError, match=rf"NMT_PLUGINS: \S+test_tuner\.py:\d+: \S+Wrong\.tune: {message}"):
        run_tuner(Wrong(), pool, None, 1, [], 1)
