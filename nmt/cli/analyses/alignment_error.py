"""The analysis `alignment-error`: word alignments against a gold alignment."""

import argparse

from nmt import files
from nmt.analysis.alignment_error import score_alignment
from nmt.analysis.table import Table
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import Input, integer
from nmt.cli.options import Parser
from nmt.formats import pharaoh


class AlignmentError:
    """The alignment error rate of one or more alignments."""

    help = "Alignment error rate, precision and recall of word alignments against sure and possible links."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--gold",
            type=Input,
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
