"""The actions of nmt-analyze by name."""

from nmt.cli.analyses.attention import Attention
from nmt.cli.analyses.base import Analysis
from nmt.cli.analyses.by_length import ByLength
from nmt.cli.analyses.by_unknown import ByUnknown
from nmt.cli.analyses.compare import Compare
from nmt.cli.analyses.curves import Curves
from nmt.cli.analyses.maps import PhraseMap, Words
from nmt.cli.analyses.parse import Parse
from nmt.cli.analyses.phrases import Phrases
from nmt.cli.analyses.report import Report
from nmt.cli.analyses.samples import Samples
from nmt.cli.analyses.scores import Scores
from nmt.cli.analyses.subsets import Subsets

ANALYSES: dict[str, type[Analysis]] = {
    "by-length": ByLength,
    "by-unknown": ByUnknown,
    "subsets": Subsets,
    "compare": Compare,
    "samples": Samples,
    "scores": Scores,
    "phrases": Phrases,
    "words": Words,
    "phrase-map": PhraseMap,
    "parse": Parse,
    "attention": Attention,
    "curves": Curves,
    "report": Report,
}
