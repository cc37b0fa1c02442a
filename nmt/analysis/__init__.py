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
    from nmt.analysis.alignment_error import AlignmentScores, score_alignment
    from nmt.analysis.buckets import Bucket
    from nmt.analysis.correlation import Correlation, correlate
    from nmt.analysis.differences import SentenceDifference, largest_differences
    from nmt.analysis.frequency import WordAccuracy, by_frequency
    from nmt.analysis.lengths import by_length
    from nmt.analysis.ngrams import NgramDifference, different_ngrams
    from nmt.analysis.rare import by_rare, read_counts
    from nmt.analysis.samples import Sample, sample_sentences
    from nmt.analysis.segmented import by_segmented
    from nmt.analysis.significance import BootstrapScores, paired_bootstrap
    from nmt.analysis.systems import System, TestSet, read_systems
    from nmt.analysis.table import Table
    from nmt.analysis.unknown import SubsetScore, by_unknown, score_subsets, subsets

__all__ = [
    "AlignmentScores",
    "BootstrapScores",
    "Bucket",
    "Correlation",
    "NgramDifference",
    "Sample",
    "SentenceDifference",
    "SubsetScore",
    "System",
    "Table",
    "TestSet",
    "WordAccuracy",
    "by_frequency",
    "by_length",
    "by_rare",
    "by_segmented",
    "by_unknown",
    "correlate",
    "different_ngrams",
    "largest_differences",
    "paired_bootstrap",
    "read_counts",
    "read_systems",
    "sample_sentences",
    "score_alignment",
    "score_subsets",
    "subsets",
]

# The module of each public name.
HOMES = {
    "AlignmentScores": "nmt.analysis.alignment_error",
    "BootstrapScores": "nmt.analysis.significance",
    "Bucket": "nmt.analysis.buckets",
    "Correlation": "nmt.analysis.correlation",
    "NgramDifference": "nmt.analysis.ngrams",
    "Sample": "nmt.analysis.samples",
    "SentenceDifference": "nmt.analysis.differences",
    "SubsetScore": "nmt.analysis.unknown",
    "System": "nmt.analysis.systems",
    "Table": "nmt.analysis.table",
    "TestSet": "nmt.analysis.systems",
    "WordAccuracy": "nmt.analysis.frequency",
    "by_frequency": "nmt.analysis.frequency",
    "by_length": "nmt.analysis.lengths",
    "by_rare": "nmt.analysis.rare",
    "by_segmented": "nmt.analysis.segmented",
    "by_unknown": "nmt.analysis.unknown",
    "correlate": "nmt.analysis.correlation",
    "different_ngrams": "nmt.analysis.ngrams",
    "largest_differences": "nmt.analysis.differences",
    "paired_bootstrap": "nmt.analysis.significance",
    "read_counts": "nmt.analysis.rare",
    "read_systems": "nmt.analysis.systems",
    "sample_sentences": "nmt.analysis.samples",
    "score_alignment": "nmt.analysis.alignment_error",
    "score_subsets": "nmt.analysis.unknown",
    "subsets": "nmt.analysis.unknown",
}

__getattr__, __dir__ = lazy.names(__name__, HOMES)
