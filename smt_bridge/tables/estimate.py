"""How long a table will take: measured on chunks from all over it, before the job."""

import time
from dataclasses import dataclass

from nmt.compute.allocator import peak_memory
from smt_bridge.features.base import of_phrases
from smt_bridge.features.feature_set import FeatureSet
from smt_bridge.tables.chunks import Survey

LONGEST = 30.0  # seconds that are measured, or one chunk


@dataclass
class Estimate:
    """What one process does."""

    measured: int  # pairs
    rate: float  # pairs a second
    memory: float  # MB


def estimate(found: Survey, features: FeatureSet) -> Estimate:
    """Score some chunks in this process."""
    clock, count = time.monotonic(), 0
    for piece in found.sample:
        features.compute([of_phrases(piece)] * len(features))
        count += len(piece)
        if time.monotonic() - clock > LONGEST:
            break
    rate = count / (time.monotonic() - clock)
    return Estimate(count, rate, peak_memory())
