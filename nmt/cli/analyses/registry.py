"""The actions of nmt-analyze by name."""

from nmt.cli.analyses.alignment_error import AlignmentError
from nmt.cli.analyses.base import Analysis
from nmt.cli.analyses.by_number import ByLength, ByRare, BySegmented, ByUnknown
from nmt.cli.analyses.computation import Computation
from nmt.cli.analyses.differences import ByFrequency, Differences, Ngrams
from nmt.cli.analyses.neighbors import Neighbors
from nmt.cli.analyses.outputs import Compare, Samples, Scores, Subsets
from nmt.cli.analyses.report import Report
from nmt.cli.analyses.runs import Attention, Curves, Parse, PhraseMap, Phrases, Words
from nmt.cli.analyses.texts import NgramCounts
from nmt.cli.analyses.vectors import Vectors

ANALYSES: dict[str, type[Analysis]] = {
    "by-length": ByLength,
    "by-unknown": ByUnknown,
    "by-rare": ByRare,
    "by-segmented": BySegmented,
    "subsets": Subsets,
    "by-frequency": ByFrequency,
    "compare": Compare,
    "differences": Differences,
    "ngrams": Ngrams,
    "ngram-counts": NgramCounts,
    "alignment-error": AlignmentError,
    "samples": Samples,
    "scores": Scores,
    "phrases": Phrases,
    "computation": Computation,
    "words": Words,
    "neighbors": Neighbors,
    "vectors": Vectors,
    "phrase-map": PhraseMap,
    "parse": Parse,
    "attention": Attention,
    "curves": Curves,
    "report": Report,
}
