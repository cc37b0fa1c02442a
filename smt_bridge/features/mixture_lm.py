"""log p(target) by several language models as one, see nmt/runs/language_model.py."""

from pathlib import Path

import numpy as np

from nmt.errors import ConfigError
from nmt.runs.language_model import mixture_scorer
from nmt.text.escapes import unescape
from smt_bridge.features.base import Values, WordPairs, digest
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words


class MixtureLM:
    """A mixture as a feature. Moses' escapes are undone for all its models, n-gram models among them. A
    sentence is scored from its beginning to its end, a phrase as the beginning of a sentence."""

    def __init__(self, path: str, settings: FeatureSettings) -> None:
        if settings.assume_normalized or settings.backoff:
            option = "--backoff" if settings.backoff else "--assume-normalized"
            raise ConfigError(f"{option}: {path} is a mixture; this is for a single network")
        self.path, self.settings = path, settings
        self.model = mixture_scorer(path, settings.device)
        check_reads_words(path, target=self.model.raw)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "MixtureLM":
        """From a file of nmt-interpolate."""
        return cls(spec.path, settings)

    def identity(self) -> str:
        """See Feature. The file has the checksums of its models."""
        return digest("mixture-lm", [Path(self.path)], self.settings.arithmetic())

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target."""
        lines = [" ".join(map(unescape, words)) for words in pairs.targets]
        found = self.model.score(lines, tokenized=True)
        ends = None if pairs.whole else -1
        return np.array([sum(line.log_probs[:ends]) for line in found], np.float64)
