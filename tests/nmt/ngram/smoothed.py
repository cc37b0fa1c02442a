"""Models of other estimators than Kneser-Ney's, for tests."""

from collections.abc import Iterable, Sequence

from nmt.ngram.count_models import NgramModel
from nmt.ngram.counting import CountSettings, count_lines
from nmt.ngram.estimators import SmoothingConfig, smoothed_model


def estimate_smoothed(sentences: Iterable[Sequence[str]], config: SmoothingConfig, kind: str) -> NgramModel:
    """Estimate a model from sentences. `kind`: a name in ESTIMATORS."""
    counts = count_lines(map(" ".join, sentences), CountSettings(config.order, config.skip_symbols))
    return smoothed_model(*counts, config, kind)
