"""Analyses of translations: text or scores in, numbers out. `nmt-analyze` makes tables and figures of them.

>>> from nmt.analysis import by_length, read_systems
>>> (system,) = read_systems("dev.en", ["dev.fr"], ["dev.fr"], names=["reference"])
>>> curves = by_length([system], window=2, least=1)
>>> {round(bucket.bleu) for bucket in curves["reference"]["source"]}  # a reference agrees with itself
{100}

The names below are loaded when they are first used: `import nmt.analysis` alone is quick.
"""

from typing import TYPE_CHECKING

from nmt import lazy

if TYPE_CHECKING:
    from nmt.analysis.buckets import Bucket
    from nmt.analysis.correlation import Correlation, correlate
    from nmt.analysis.lengths import by_length
    from nmt.analysis.rare import by_rare
    from nmt.analysis.samples import Sample, sample_sentences
    from nmt.analysis.segmented import by_segmented
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
    "by_rare",
    "by_segmented",
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
    "BootstrapScores": "nmt.analysis.significance",
    "Bucket": "nmt.analysis.buckets",
    "Correlation": "nmt.analysis.correlation",
    "Sample": "nmt.analysis.samples",
    "SubsetScore": "nmt.analysis.unknown",
    "System": "nmt.analysis.systems",
    "Table": "nmt.analysis.table",
    "TestSet": "nmt.analysis.systems",
    "by_length": "nmt.analysis.lengths",
    "by_rare": "nmt.analysis.rare",
    "by_segmented": "nmt.analysis.segmented",
    "by_unknown": "nmt.analysis.unknown",
    "correlate": "nmt.analysis.correlation",
    "paired_bootstrap": "nmt.analysis.significance",
    "read_systems": "nmt.analysis.systems",
    "sample_sentences": "nmt.analysis.samples",
    "score_subsets": "nmt.analysis.unknown",
    "subsets": "nmt.analysis.unknown",
}

__getattr__, __dir__ = lazy.names(__name__, HOMES)
