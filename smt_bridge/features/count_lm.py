"""log p(target) by an n-gram model: ARPA, gzipped ARPA or KenLM's binary formats.

Words are as Moses has them, escapes in place: its language models are trained on the same escaped text.
"""

import numpy as np
from numpy.typing import NDArray

from nmt.lm import count
from smt_bridge.features.base import Pairs


class CountLM:
    """A phrase is scored without `<s>` and `</s>`, a sentence with both. `reverse`: a model of sentences read
    from their end."""

    def __init__(self, path: str, reverse: bool = False) -> None:
        self.model, self.reverse = count.load_count_model(path), reverse

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """Natural log p of each target."""
        texts = [words[::-1] for words in pairs.targets] if self.reverse else pairs.targets
        return np.array([scores.sum() for scores in self.model.scores(texts, pairs.whole)], np.float64)
