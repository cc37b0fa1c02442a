"""nmt-analyze by-unknown."""

import argparse

from nmt.analysis.unknown import by_unknown
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_title
from nmt.cli.analyses.by_length import add_side, curve_findings
from nmt.cli.options import Parser


class ByUnknown:
    """BLEU and chrF by the number of unknown words, cumulative."""

    help = "BLEU and chrF of the sentences with at most this many unknown words (Fig. 6.4 c)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=True)
        add_side(parser, "whose unknown words the figure of several systems counts")
        inputs.add_least(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs, systems = inputs.read_vocabularies(args.vocabulary), inputs.read_systems(args)
        curves = by_unknown(systems, *vocabs, args.least)
        x_label = "at most this many unknown words"
        return curve_findings(args, systems, curves, "unknown", x_label, "the side with more")
