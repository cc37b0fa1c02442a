"""Output layers: from features to a distribution over the vocabulary. One file each; `OUTPUTS` names them."""

from nmt.layers.output.protocol import (
    BestWords,
    LearnsText,
    OutputLayer,
    OutputSettings,
    SelfNormalized,
    WordByWord,
)
from nmt.layers.output.registry import OUTPUTS, check_output, make_output, refuse
from nmt.layers.output.softmax import Softmax

__all__ = [
    "OUTPUTS",
    "BestWords",
    "LearnsText",
    "OutputLayer",
    "OutputSettings",
    "SelfNormalized",
    "Softmax",
    "WordByWord",
    "check_output",
    "make_output",
    "refuse",
]
