"""The neural language model that a configuration asks for."""

from nmt.lm.config import LMConfig
from nmt.lm.cslm import CSLM
from nmt.lm.recurrent import RecurrentLM

LanguageModel = CSLM | RecurrentLM


def make(config: LMConfig, words: int, fill: bool = True) -> LanguageModel:
    """`fill=False` leaves the parameters as they are, for weights that are about to be loaded."""
    return CSLM(config, words, fill) if config.type == "cslm" else RecurrentLM(config, words, fill)
