"""nmt-analyze scores."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt import files
from nmt.analysis import correlation, plots
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import Input
from nmt.cli.options import Parser
from nmt.errors import DataError


class Scores:
    """Correlation of two lists of scores."""

    help = "How two scores of the same lines correlate (Fig. 4.3), with a scatter plot."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--first",
            type=Input,
            required=True,
            metavar="FILE",
            help="one number a line, as nmt-score writes them",
        )
        parser.add_argument(
            "--second", type=Input, required=True, metavar="FILE", help="another score of the same lines"
        )
        parser.add_argument(
            "--names", nargs=2, default=None, metavar="NAME", help="names of both; file names unless given"
        )
        add_output(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        first, second = correlation.read_scores(args.first), correlation.read_scores(args.second)
        if len(first) != len(second):
            raise files.unequal([args.first, args.second], [len(first), len(second)])
        if not first:
            raise DataError(f"{args.first}: empty file, expected one number a line")
        x_name, y_name = args.names or (Path(args.first).name, Path(args.second).name)
        found = correlation.correlate(first, second)

        def draw(paths: Sequence[Path]) -> None:
            title = args.title or f"r = {found.pearson:.3f}"
            plots.scatter(paths, first, second, x_name, y_name, title)

        summary = f"Pearson {found.pearson:.4f}, Spearman {found.spearman:.4f}, {found.pairs:,} pairs"
        return Findings(correlation.table((x_name, y_name), found), [summary], draw)
