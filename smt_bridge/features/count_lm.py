"""log p(target) by an n-gram model: ARPA, gzipped ARPA or KenLM's binary formats.

Words are as Moses has them, escapes in place: its language models are trained on the same escaped text.
"""

from pathlib import Path

import numpy as np

from nmt.ngram import count_model as count
from smt_bridge.features.base import Values, WordPairs, digest
from smt_bridge.features.spec import FeatureSettings, FeatureSpec


class CountLM:
    """A phrase is scored without `<s>` and `</s>`, a sentence with both. `reverse`: a model of sentences read
    from their end."""

    def __init__(self, path: str, reverse: bool = False) -> None:
        self.path, self.reverse = Path(path), reverse
        self.model = count.load_count_model(path)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "CountLM":
        """From an n-gram model's file."""
        return cls(spec.path, spec.kind == "reverse-lm")

    def identity(self) -> str:
        """See Feature."""
        return digest("reverse-lm" if self.reverse else "lm", [self.path])

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target."""
        texts = [words[::-1] for words in pairs.targets] if self.reverse else pairs.targets
        return np.array([scores.sum() for scores in self.model.scores(texts, pairs.whole)], np.float64)
