"""The log-bilinear language model (Mnih and Hinton 2007; Jernite 2018, sections 3.2 and 3.5): a network of
n-grams without a hidden layer.

    r = Σ_k R_k u(w_{t-k});  p(w | context) = softmax(u(w)ᵀ r + b_w)

The words before and the word that follows have the same vectors u, unless `tied` is false."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from nmt.config.settings import MOST_UNITS, number, setting
from nmt.layers.initialize import initialize
from nmt.lm.base import LMConfig
from nmt.lm.cslm import CSLM, Activation, NgramConfig


@dataclass
class LogBilinearConfig(NgramConfig):
    """The keys of `lm` for type log-bilinear."""

    type: str = "log-bilinear"
    embedding: int = number(200, least=1, most=MOST_UNITS, help="size of a word vector, and of r")
    order: int = number(5, least=2, most=1000, help="words of an n-gram, the predicted one included")
    tied: bool = setting(True, help="the same vectors for the words before and for the predicted word")

    @property
    def sizes(self) -> list[int]:
        return [self.embedding]

    @property
    def function(self) -> Activation:
        return identity


def identity(values: Tensor) -> Tensor:
    return values


class LogBilinear(CSLM):
    """A CSLM whose only layer has no activation and no bias, and is as wide as a word vector."""

    Config: ClassVar[type[LMConfig]] = LogBilinearConfig

    def __init__(self, config: LogBilinearConfig, vocab_size: int, fill: bool = True) -> None:
        super().__init__(config, vocab_size, fill=False)
        self.first.register_parameter("bias", None)
        if fill:
            initialize(self, config.init, config.init_scale)
