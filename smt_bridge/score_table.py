"""A phrase table with new score columns: streamed, everything but the score field byte-equal."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from nmt.phrase_table import PhrasePair

CHUNK = 4096  # pairs in memory at a time
FLOOR = 1e-38  # Moses parses float32 and floors what it cannot hold; 0, negative numbers and nan break it silently


class Feature(Protocol):
    def score(self, pairs: Sequence[PhrasePair]) -> list[float]:
        """One natural logarithm for each pair."""
        ...


def moses_score(log_prob: float) -> bytes:
    """exp(value) as Moses writes numbers, floored at 1e-38: Moses takes the logarithm itself."""
    if math.isnan(log_prob):
        raise ValueError("a feature value is not a number")
    return b"%.6g" % max(FLOOR, math.exp(min(log_prob, 700.0)))


def add_columns(pairs: Iterable[PhrasePair], features: Sequence[Feature]) -> Iterator[bytes]:
    """The lines of the table, each with one more score for each feature, in their order."""
    stream = iter(pairs)
    while chunk := list(islice(stream, CHUNK)):
        columns = [feature.score(chunk) for feature in features]
        for pair, *values in zip(chunk, *columns, strict=True):
            yield pair.line(b" ".join(map(moses_score, values)))
