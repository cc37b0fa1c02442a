"""How many n-grams a text has, by their length (van Merriënboer 2018, fig. 2.1)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots
from nmt.analysis.actions import Findings, add_output, add_title, record_table
from nmt.cli import options
from nmt.cli.arguments import InputPath, integer
from nmt.cli.options import Parser
from nmt.io import files
from nmt.ngram.counting import NgramStatistics, statistics


class NgramCountsAnalysis:
    help = "Counts of n-grams by length: all, those that occur once, and those of another text that are new."

    def add_options(self, parser: Parser) -> None:
        options.add_input(
            parser, "training text, tokenized, one sentence a line; plain, gzip, or - for stdin"
        )
        parser.add_argument(
            "--dev",
            type=InputPath,
            default="",
            metavar="FILE",
            help="another text, whose n-grams are looked up in the input",
        )
        parser.add_argument(
            "--order", type=integer(1, 20), default=7, metavar="N", help="longest n-grams, in words"
        )
        add_title(parser)
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        dev = [files.split_words(line) for line in files.read_lines(args.dev)] if args.dev else []
        text = map(files.split_words, files.read_lines(args.input))
        with files.naming_file(args.input):
            rows = statistics(text, args.order, dev)
        name = files.name_of(args.input)

        def draw(paths: Sequence[Path]) -> None:
            title = args.title or f"n-grams of {name}"
            plots.bars([str(row.words) for row in rows], ngram_series(rows), {}, "%", title, paths)

        summary = [f"{name}: {rows[0].occurrences:,} words, ends of sentences among them"]
        return Findings(record_table(NgramStatistics, rows, once=".4f", unseen=".4f"), summary, draw)


def ngram_series(rows: Sequence[NgramStatistics]) -> dict[str, list[float]]:
    """Compute the bars of the figure, in percent: name -> values by length."""
    series = {
        "distinct, of all occurrences": [100 * row.distinct / max(1, row.occurrences) for row in rows],
        "once, of the distinct": [100 * row.once for row in rows],
    }
    unseen = [100 * row.unseen for row in rows if row.unseen is not None]
    return series | ({"new in the other text": unseen} if len(unseen) == len(rows) else {})
