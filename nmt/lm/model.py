"""The neural language model that a configuration asks for."""

from collections.abc import Sequence

from nmt.lm.config import LMConfig
from nmt.lm.cslm import CSLM
from nmt.lm.dictionary import Dictionary
from nmt.lm.lattice import Tokens
from nmt.lm.multiscale import MultiscaleLM
from nmt.lm.recurrent import RecurrentLM

LanguageModel = CSLM | RecurrentLM | MultiscaleLM


def make(
    config: LMConfig, words: Sequence[str], fill: bool = True, dictionary: Dictionary | None = None
) -> LanguageModel:
    """`words` are those of the vocabulary; `fill=False` leaves the parameters as they are, for weights that
    are about to be loaded."""
    if config.type == "multiscale":
        assert dictionary is not None, "a multiscale model has a dictionary"
        return MultiscaleLM(config, Tokens(words, dictionary), fill)
    return CSLM(config, len(words), fill) if config.type == "cslm" else RecurrentLM(config, len(words), fill)
