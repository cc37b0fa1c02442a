"""Output layers: from features to a distribution over the vocabulary. One file each; `OUTPUTS` names them."""

from nmt.layers.output.protocol import OutputLayer
from nmt.layers.output.softmax import Softmax

OUTPUTS: dict[str, type[OutputLayer]] = {"softmax": Softmax}

__all__ = ["OUTPUTS", "OutputLayer", "Softmax"]
