"""The settings of a training."""

import math

import pytest

from nmt.errors import ConfigError
from nmt.training.config import TrainingConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "cosine"}, "expected one of 'constant', 'inverse_sqrt', 'linear'"),
        ({"schedule": "inverse_sqrt"}, "needs warmup"),
        ({"schedule": "linear", "warmup": 9, "max_steps": 9}, "linear needs max_steps"),
        ({"decay_below": 1.0}, r"training\.decay_below: needs training\.decay below 1"),
        ({"label_smoothing": 1.0}, "range"),
        ({"accumulate": 0}, r"training\.accumulate: 0 is out of range, expected 1 or more"),
        ({"warmup": -1}, "range"),
        ({"learning_rate": math.inf}, r"training\.learning_rate: inf is out of range"),
        ({"max_minutes": math.nan}, "range"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**options).check()  # type: ignore[arg-type]
