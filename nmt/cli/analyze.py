"""nmt-analyze: analyses of the output of any translation system, and of trained models."""

import sys
from collections.abc import Sequence

from nmt import plugins
from nmt.analysis.actions import Analysis, Findings
from nmt.analysis.alignment_error import AlignmentErrorAnalysis
from nmt.analysis.attention import AttentionAnalysis
from nmt.analysis.buckets import LengthAnalysis
from nmt.analysis.curves import CurvesAnalysis
from nmt.analysis.differences import DifferencesAnalysis, FrequencyAnalysis, NgramsAnalysis
from nmt.analysis.embeddings import NeighborsAnalysis, PhraseMapAnalysis, VectorsAnalysis, WordMapAnalysis
from nmt.analysis.hard_words import (
    RareWordsAnalysis,
    SegmentedWordsAnalysis,
    SubsetsAnalysis,
    UnknownWordsAnalysis,
)
from nmt.analysis.ngram_counts import NgramCountsAnalysis
from nmt.analysis.phrases import PhrasesAnalysis
from nmt.analysis.report import ReportAnalysis
from nmt.analysis.samples import SamplesAnalysis
from nmt.analysis.soft_parse import ParseAnalysis
from nmt.analysis.statistics import CompareAnalysis, ScoresAnalysis
from nmt.cli import options
from nmt.plugins import Registry

ANALYSES: Registry[type[Analysis]] = Registry(
    "analysis",
    {
        "by-length": LengthAnalysis,
        "by-unknown": UnknownWordsAnalysis,
        "by-rare": RareWordsAnalysis,
        "by-segmented": SegmentedWordsAnalysis,
        "subsets": SubsetsAnalysis,
        "by-frequency": FrequencyAnalysis,
        "compare": CompareAnalysis,
        "differences": DifferencesAnalysis,
        "ngrams": NgramsAnalysis,
        "ngram-counts": NgramCountsAnalysis,
        "alignment-error": AlignmentErrorAnalysis,
        "samples": SamplesAnalysis,
        "scores": ScoresAnalysis,
        "phrases": PhrasesAnalysis,
        "words": WordMapAnalysis,
        "neighbors": NeighborsAnalysis,
        "vectors": VectorsAnalysis,
        "phrase-map": PhraseMapAnalysis,
        "parse": ParseAnalysis,
        "attention": AttentionAnalysis,
        "curves": CurvesAnalysis,
        "report": ReportAnalysis,
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    whole = options.Parser(
        "nmt-analyze",
        "Reports on the output of any translation system and on trained runs: TSV, figures, BLEU and chrF "
        "with signatures.",
    )
    analyses = whole.add_subparsers(
        dest="analysis", required=True, parser_class=options.ActionParser, metavar="ANALYSIS"
    )
    for name, analysis in ANALYSES.items():
        own = analyses.add_parser(name, description=analysis.help, help=analysis.help)
        analysis().add_options(own)
        options.add_quiet(own)
    return whole


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    analysis = ANALYSES[args.analysis]()
    findings: object = analysis.run(args)
    if isinstance(findings, Findings):
        findings.write(args.output, args.analysis)
    elif findings is not None:
        raise plugins.wrong_result(type(analysis).run, type(findings).__name__, "Findings or None")


if __name__ == "__main__":
    sys.exit(main())
