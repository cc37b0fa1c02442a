"""Analyses of translations and of trained runs: numbers from Python, and the actions of `nmt-analyze`.

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
    from nmt.analysis.actions import ResultTable
    from nmt.analysis.alignment_error import AlignmentScores, score_alignment
    from nmt.analysis.buckets import Bucket, by_length
    from nmt.analysis.curves import TrainingHistory, history
    from nmt.analysis.differences import (
        NgramDifference,
        SentenceDifference,
        WordAccuracy,
        by_frequency,
        different_ngrams,
        largest_differences,
    )
    from nmt.analysis.hard_words import (
        SubsetScore,
        by_rare,
        by_segmented,
        by_unknown,
        read_counts,
        score_subsets,
        subsets,
    )
    from nmt.analysis.samples import SampleSentence, sample_sentences
    from nmt.analysis.sentences import Attention, MergeTriangle, attend, parse_line
    from nmt.analysis.statistics import BootstrapScores, Correlation, correlate, paired_bootstrap
    from nmt.analysis.systems import SystemOutput, TestSet, read_systems

__all__ = [
    "AlignmentScores", "Attention", "BootstrapScores", "Bucket", "Correlation", "MergeTriangle",
    "NgramDifference", "ResultTable", "SampleSentence", "SentenceDifference", "SubsetScore", "SystemOutput",
    "TestSet", "TrainingHistory", "WordAccuracy", "attend", "by_frequency", "by_length", "by_rare",
    "by_segmented", "by_unknown", "correlate", "different_ngrams", "history", "largest_differences",
    "paired_bootstrap", "parse_line", "read_counts", "read_systems", "sample_sentences", "score_alignment",
    "score_subsets", "subsets",
]  # fmt: skip

# The module of each public name.
MODULES = {
    "AlignmentScores": "nmt.analysis.alignment_error",
    "Attention": "nmt.analysis.sentences",
    "BootstrapScores": "nmt.analysis.statistics",
    "Bucket": "nmt.analysis.buckets",
    "Correlation": "nmt.analysis.statistics",
    "MergeTriangle": "nmt.analysis.sentences",
    "NgramDifference": "nmt.analysis.differences",
    "ResultTable": "nmt.analysis.actions",
    "SampleSentence": "nmt.analysis.samples",
    "SentenceDifference": "nmt.analysis.differences",
    "SubsetScore": "nmt.analysis.hard_words",
    "SystemOutput": "nmt.analysis.systems",
    "TestSet": "nmt.analysis.systems",
    "TrainingHistory": "nmt.analysis.curves",
    "WordAccuracy": "nmt.analysis.differences",
    "attend": "nmt.analysis.sentences",
    "by_frequency": "nmt.analysis.differences",
    "by_length": "nmt.analysis.buckets",
    "by_rare": "nmt.analysis.hard_words",
    "by_segmented": "nmt.analysis.hard_words",
    "by_unknown": "nmt.analysis.hard_words",
    "correlate": "nmt.analysis.statistics",
    "different_ngrams": "nmt.analysis.differences",
    "history": "nmt.analysis.curves",
    "largest_differences": "nmt.analysis.differences",
    "paired_bootstrap": "nmt.analysis.statistics",
    "parse_line": "nmt.analysis.sentences",
    "read_counts": "nmt.analysis.hard_words",
    "read_systems": "nmt.analysis.systems",
    "sample_sentences": "nmt.analysis.samples",
    "score_alignment": "nmt.analysis.alignment_error",
    "score_subsets": "nmt.analysis.hard_words",
    "subsets": "nmt.analysis.hard_words",
}

__getattr__, __dir__ = lazy.names(__name__, MODULES)
