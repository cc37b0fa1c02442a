"""nmt-analyze: reports on the output of any translation system, and on what a trained model has learned."""

import sys
from collections.abc import Sequence

from nmt.cli import options
from nmt.cli.analyses.base import Analysis
from nmt.cli.analyses.outputs import (
    ByFrequency,
    ByLength,
    ByRare,
    BySegmented,
    ByUnknown,
    Compare,
    Differences,
    Ngrams,
    Samples,
    Scores,
    Subsets,
)
from nmt.cli.analyses.report import Report
from nmt.cli.analyses.runs import (
    Attention,
    Curves,
    Neighbors,
    Parse,
    PhraseMap,
    Phrases,
    Vectors,
    Words,
)
from nmt.cli.analyses.texts import AlignmentError, NgramCounts
from nmt.plugins import Registry

ANALYSES: Registry[type[Analysis]] = Registry(
    "analysis",
    {
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
        "words": Words,
        "neighbors": Neighbors,
        "vectors": Vectors,
        "phrase-map": PhraseMap,
        "parse": Parse,
        "attention": Attention,
        "curves": Curves,
        "report": Report,
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return options.run(command, argv)


def parser() -> options.Parser:
    """The options."""
    parser = options.Parser(
        "nmt-analyze",
        "Reports on the output of any translation system and on trained runs: TSV, figures, BLEU and chrF "
        "with signatures.",
    )
    kinds = parser.add_subparsers(
        dest="kind", required=True, parser_class=options.ActionParser, metavar="KIND"
    )
    for name, analysis in ANALYSES.items():
        kind = kinds.add_parser(name, description=analysis.help, help=analysis.help)
        analysis().add_options(kind)
        options.add_quiet(kind)
    return parser


def command(argv: Sequence[str] | None) -> None:
    """Parse the options, run the analysis, write what it found."""
    args = parser().parse_args(argv)
    options.start_log("nmt-analyze", args)
    ANALYSES[args.kind]().run(args).write(args.output, args.kind)


if __name__ == "__main__":
    sys.exit(main())
