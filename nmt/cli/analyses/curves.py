"""nmt-analyze curves."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import curves, plots
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import Input
from nmt.cli.options import Parser


class Curves:
    """Learning curves of runs."""

    help = "Learning curves of runs: training cost, dev cost, dev BLEU."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument("runs", nargs="+", type=Input, metavar="RUN_DIR", help="runs of nmt-train")
        inputs.add_names(parser, "names of the runs")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        inputs.check_names(args.names, args.runs, "runs")
        names = args.names or args.runs
        found = {name: curves.read_curves(Path(run)) for name, run in zip(names, args.runs, strict=True)}

        def draw(paths: Sequence[Path]) -> None:
            plots.learning_curves(found, paths)

        best = {
            name: max(learned["dev BLEU"], key=lambda point: point[1], default=None)
            for name, learned in found.items()
        }
        summary = [
            f"{name}: best dev BLEU {point[1]:.2f} at update {point[0]:.0f}"
            for name, point in best.items()
            if point
        ]
        return Findings(curves.table(found), summary, draw)
