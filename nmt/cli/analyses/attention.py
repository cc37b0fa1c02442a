"""nmt-analyze attention."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings
from nmt.cli.options import Parser


class Attention:
    """The attention weights of a sentence."""

    help = "The source words that each word of a translation attends to: a heat map."

    def add_options(self, parser: Parser) -> None:
        inputs.add_line(parser)
        parser.add_argument(
            "--target", default="", metavar="TEXT", help="its translation; else the run's own"
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = inputs.read_line(args)
        run = inputs.load_run(args, args.run)
        from nmt.analysis import attention_map

        source, target, weights = attention_map.weights(run, line, args.target, args.tokenized)

        def draw(paths: Sequence[Path]) -> None:
            plots.heat_map(weights, source, target, run.name, paths)

        return Findings(attention_map.table(source, target, weights), [" ".join(target[:-1])], draw)
