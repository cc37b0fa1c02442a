"""Settings of output layers: those that a layer does not read are refused, and so is what it cannot do."""

import pytest

from nmt.errors import ConfigError
from nmt.layers.output import OutputSettings, check_output, refuse


@pytest.mark.parametrize(
    "settings, tied, message",
    [
        ({"output": "sofmax"}, False, "lm.output: 'sofmax' is unknown, expected one of 'softmax', "),
        (
            {"output_class_count": 5},
            False,
            "lm.output_class_count: output: softmax does not read it; leave it out",
        ),
        (
            {"output": "tree", "output_arity": 1},
            False,
            "lm.output_arity: 1 makes no tree; expected 2 or",
        ),
        ({"output": "nce", "output_arity": 3}, False, "lm.output_arity: output: nce does not read it"),
        ({"output": "classes"}, True, "lm.tied: does not go with lm.output: classes: its matrix has rows of"),
    ],
)
def test_refused(settings: dict[str, object], tied: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        check_output(OutputSettings(**settings), "lm", tied)  # type: ignore[arg-type]


def test_accepted() -> None:
    check_output(OutputSettings(), "model", tied=True)
    check_output(OutputSettings(output="classes", output_class_count=5), "model")
    refuse(OutputSettings(), "model", "label_smoothing", "training.label_smoothing")


def test_label_smoothing() -> None:
    with pytest.raises(
        ConfigError, match=r"^training\.label_smoothing: does not go with model\.output: classes"
    ):
        refuse(OutputSettings(output="classes"), "model", "label_smoothing", "training.label_smoothing")
