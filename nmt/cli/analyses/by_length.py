"""nmt-analyze by-length, and the figure that by-unknown shares with it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots
from nmt.analysis.buckets import Curves, curve_table
from nmt.analysis.lengths import WINDOW, by_length
from nmt.analysis.systems import System
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_title
from nmt.cli.arguments import positive
from nmt.cli.options import Parser


class ByLength:
    """BLEU and chrF in a sliding window of sentence lengths."""

    help = "BLEU and chrF by length of source, reference and the longer of both (Fig. 6.4 a, b)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        parser.add_argument(
            "--window", type=positive, default=WINDOW, help="neighboring lengths that are scored together"
        )
        add_side(parser, "which length the figure of several systems shows")
        inputs.add_least(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        curves = by_length(systems, args.window, args.least)
        x_label = "sentence length in words (each point: a window of lengths)"
        return curve_findings(args, systems, curves, "length", x_label, "the longer side")


def add_side(parser: Parser, text: str) -> None:
    """--by, with its help text."""
    parser.add_argument("--by", choices=("source", "reference", "both"), default="source", help=text)


def curve_findings(
    args: argparse.Namespace, systems: Sequence[System], curves: Curves, key: str, x_label: str, both: str
) -> Findings:
    """The table of curves and their figure.

    One system: a curve each for source, reference and both. Several: a curve each, by one of those. `key` is
    the column of the buckets' keys; `both` says in words which side counts.
    """

    def draw(paths: Sequence[Path]) -> None:
        first = systems[0]
        if len(systems) == 1:
            title = args.title or f"{first.name}   {first.bleu()}"
            plots.bucket_curves(curves[first.name], plots.LABELS, x_label, title, paths)
        else:
            side = both if args.by == "both" else args.by
            plots.bucket_curves(
                {name: sides[args.by] for name, sides in curves.items()},
                {},
                f"{x_label}, {side}",
                args.title or first.bleu().signature,
                paths,
            )

    return Findings(curve_table(curves, key), inputs.scores_of(systems), draw)
