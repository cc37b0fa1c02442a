"""log p(target) by an n-gram model through KenLM: ARPA, gzipped ARPA or KenLM's binary formats.

Words are as Moses has them, escapes in place: its language models are trained on the same escaped text.
"""

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError
from smt_bridge.features.base import Pairs

LN10 = math.log(10)  # KenLM and ARPA files hold logarithms to base 10, Moses and we natural ones


class CountLM:
    """A phrase is scored without `<s>` and `</s>`, a sentence with both. `reverse`: a model of sentences read from their end."""

    def __init__(self, path: str, reverse: bool = False) -> None:
        self.kenlm, self.model = load(path)
        self.reverse = reverse

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """Natural log p of each target."""
        return np.array([self.one(words[::-1] if self.reverse else words, pairs.whole) for words in pairs.targets], np.float64)

    def one(self, words: list[str], whole: bool) -> float:
        """Word by word, since KenLM's own sentence scorer splits at more than blanks."""
        state, after = self.kenlm.State(), self.kenlm.State()
        if whole:
            self.model.BeginSentenceWrite(state)
        else:
            self.model.NullContextWrite(state)
        total = 0.0
        for word in [*words, "</s>"] if whole else words:
            total += self.model.BaseScore(state, word, after)
            state, after = after, state
        return LN10 * total


def load(path: str) -> tuple[Any, Any]:
    """The module kenlm and a model. ConfigError where kenlm is not installed, DataError for a file that is no language model."""
    if not os.path.isfile(path):
        raise DataError(f"{path}: cannot read: no such file, expected an ARPA or KenLM file")
    try:
        import kenlm
    except ImportError as error:
        raise ConfigError("an n-gram LM needs the package kenlm; install it with: pip install 'nmt-smt[kenlm]'") from error
    try:
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        return kenlm, kenlm.Model(path, config)
    except (OSError, RuntimeError, ValueError) as error:
        text = str(error).split("\n")[0].split("Byte:")[0]
        raise DataError(f"{path}: not an ARPA or KenLM file ({text[:150]})") from error
