"""Analyses of translations: text or scores in, numbers out. `nmt-analyze` makes tables and figures of them.

>>> from nmt.analysis import by_length, read_systems
>>> (system,) = read_systems("dev.en", ["dev.fr"], ["dev.fr"], names=["reference"])
>>> curves = by_length([system], window=2)
>>> {round(bucket.bleu) for bucket in curves["reference"]["source"]}  # a reference agrees with itself
{100}

The names below are loaded when they are first used: `import nmt.analysis` alone is quick.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.analysis.buckets import Bucket
    from nmt.analysis.correlation import Correlation, correlate
    from nmt.analysis.lengths import by_length
    from nmt.analysis.samples import Sample, sample_sentences
    from nmt.analysis.significance import BootstrapScores, paired_bootstrap
    from nmt.analysis.systems import System, TestSet, read_systems
    from nmt.analysis.table import Table
    from nmt.analysis.unknown import SubsetScore, by_unknown, score_subsets, subsets

__all__ = [
    "BootstrapScores",
    "Bucket",
    "Correlation",
    "Sample",
    "SubsetScore",
    "System",
    "Table",
    "TestSet",
    "by_length",
    "by_unknown",
    "correlate",
    "paired_bootstrap",
    "read_systems",
    "sample_sentences",
    "score_subsets",
    "subsets",
]

# The module of each public name.
HOMES = {
    "BootstrapScores": "significance",
    "Bucket": "buckets",
    "Correlation": "correlation",
    "Sample": "samples",
    "SubsetScore": "unknown",
    "System": "systems",
    "Table": "table",
    "TestSet": "systems",
    "by_length": "lengths",
    "by_unknown": "unknown",
    "correlate": "correlation",
    "paired_bootstrap": "significance",
    "read_systems": "systems",
    "sample_sentences": "samples",
    "score_subsets": "unknown",
    "subsets": "unknown",
}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"nmt.analysis.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
