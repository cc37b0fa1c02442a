"""Analyses of texts alone: ngram-counts."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt import files
from nmt.analysis import plots
from nmt.analysis.table import Table, fields_of
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import Input, integer
from nmt.cli.options import Parser
from nmt.ngram.statistics import NgramStatistics, statistics


class NgramCounts:
    """How many n-grams a text has, by their length."""

    help = "How many n-grams a text has by length (Fig. 2.1), how many once, how many of another's it lacks."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--input",
            "-i",
            type=Input,
            default="-",
            metavar="FILE",
            help="training text, tokenized, one sentence a line; plain, gzip, or - for stdin",
        )
        parser.add_argument(
            "--dev", type=Input, default="", metavar="FILE", help="text whose n-grams are looked up in it"
        )
        parser.add_argument(
            "--order", type=integer(1, 20), default=7, metavar="N", help="longest n-grams, in words"
        )
        add_title(parser)
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        others = [files.split_words(line) for line in files.read_lines(args.dev)] if args.dev else []
        text = map(files.split_words, files.read_lines(args.input))
        found = statistics(text, args.order, others)
        name = files.name_of(args.input)

        def draw(paths: Sequence[Path]) -> None:
            title = args.title or f"n-grams of {name}"
            plots.bars([str(row.words) for row in found], series(found), {}, "%", title, paths)

        columns = {"words": "", "occurrences": "", "distinct": "", "once": ".4f", "unseen": ".4f"}
        summary = [f"{name}: {found[0].occurrences:,} words, ends of sentences among them"]
        return Findings(Table(columns, fields_of(found)), summary, draw)


def series(found: Sequence[NgramStatistics]) -> dict[str, list[float]]:
    """What the figure shows, in percent."""
    shown = {
        "distinct, of all occurrences": [100 * row.distinct / max(1, row.occurrences) for row in found],
        "once, of the distinct": [100 * row.once for row in found],
    }
    unseen = [100 * row.unseen for row in found if row.unseen is not None]
    return shown | ({"new in the other text": unseen} if len(unseen) == len(found) else {})
