"""Analyses of texts and word alignments alone: ngram-counts, alignment-error."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots
from nmt.analysis.alignment_error import score_alignment
from nmt.analysis.table import Table, fields_of
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import InputPath, integer
from nmt.cli.options import Parser
from nmt.formats import pharaoh
from nmt.io import files
from nmt.ngram.counting import NgramStatistics, statistics

# ---- texts -------------------------------------------------------------------------------------------------


class NgramCounts:
    """How many n-grams a text has, by their length."""

    help = "How many n-grams a text has by length (Fig. 2.1), how many once, how many of another's it lacks."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--input",
            "-i",
            type=InputPath,
            default="-",
            metavar="FILE",
            help="training text, tokenized, one sentence a line; plain, gzip, or - for stdin",
        )
        parser.add_argument(
            "--dev", type=InputPath, default="", metavar="FILE", help="text whose n-grams are looked up in it"
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
            plots.bars([str(row.words) for row in found], ngram_series(found), {}, "%", title, paths)

        columns = {"words": "", "occurrences": "", "distinct": "", "once": ".4f", "unseen": ".4f"}
        summary = [f"{name}: {found[0].occurrences:,} words, ends of sentences among them"]
        return Findings(Table(columns, fields_of(found)), summary, draw)


def ngram_series(found: Sequence[NgramStatistics]) -> dict[str, list[float]]:
    """What the figure shows, in percent."""
    shown = {
        "distinct, of all occurrences": [100 * row.distinct / max(1, row.occurrences) for row in found],
        "once, of the distinct": [100 * row.once for row in found],
    }
    unseen = [100 * row.unseen for row in found if row.unseen is not None]
    return shown | ({"new in the other text": unseen} if len(unseen) == len(found) else {})


# ---- alignment error ---------------------------------------------------------------------------------------
# The analysis `alignment-error`: word alignments against a gold alignment.


class AlignmentError:
    """The alignment error rate of one or more alignments."""

    help = "Alignment error rate, precision and recall of word alignments against sure and possible links."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--gold",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="gold alignment, a line a pair: i-j is a sure link, i?j or ipj a possible one, source first",
        )
        parser.add_argument(
            "--gold-from",
            type=integer(0, 1),
            default=0,
            metavar="N",
            help="number of the first word in the gold file, 0 or 1; it is 1 in many published sets",
        )
        inputs.add_hypotheses(
            parser,
            "one or more alignments, lines of points 0-0 1-2, as smt-align and --alignments write them",
        )
        inputs.add_names(parser, "names of the alignments; file names unless given")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        inputs.check_names(args.names, args.hypothesis, "alignments")
        name, rows = files.name_of(args.gold), list[tuple[object, ...]]()
        gold = [
            pharaoh.parse_gold(line, f"{name}:{number}", args.gold_from)
            for number, line in enumerate(files.read_lines(args.gold), 1)
        ]
        for name, path in zip(args.names or args.hypothesis, args.hypothesis, strict=True):
            links = list(pharaoh.read(path))
            if len(links) != len(gold):
                raise files.unequal([args.gold, path], [len(gold), len(links)])
            found = score_alignment(gold, links)
            rows.append((name, found.sure, found.links, found.precision, found.recall, found.error_rate))
        columns = {
            "alignment": "", "sure": "", "links": "", "precision": ".4f", "recall": ".4f", "aer": ".4f"
        }  # fmt: skip
        return Findings(Table(columns, rows))
