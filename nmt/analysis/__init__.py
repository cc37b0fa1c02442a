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
    from nmt.analysis.attention import Attention, attend
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
    from nmt.analysis.soft_parse import MergeTriangle, parse_line
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

PUBLIC = {  # module -> its public names
    "actions": ("ResultTable",),
    "alignment_error": ("AlignmentScores", "score_alignment"),
    "attention": ("Attention", "attend"),
    "buckets": ("Bucket", "by_length"),
    "curves": ("TrainingHistory", "history"),
    "differences": (
        "NgramDifference", "SentenceDifference", "WordAccuracy", "by_frequency", "different_ngrams",
        "largest_differences",
    ),
    "hard_words": (
        "SubsetScore", "by_rare", "by_segmented", "by_unknown", "read_counts", "score_subsets", "subsets",
    ),
    "samples": ("SampleSentence", "sample_sentences"),
    "soft_parse": ("MergeTriangle", "parse_line"),
    "statistics": ("BootstrapScores", "Correlation", "correlate", "paired_bootstrap"),
    "systems": ("SystemOutput", "TestSet", "read_systems"),
}  # fmt: skip
MODULES = {name: f"{__name__}.{module}" for module, names in PUBLIC.items() for name in names}

__getattr__, __dir__ = lazy.names(__name__, MODULES)
