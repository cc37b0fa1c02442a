"""The alignment error rate of word alignments against a gold standard (Och and Ney 2003)."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from nmt.analysis.actions import Findings, ResultTable, add_output
from nmt.analysis.systems import add_hypotheses, add_names, check_names
from nmt.cli.arguments import InputPath, integer
from nmt.cli.options import Parser
from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import GoldLinks, Links
from nmt.io import files


@dataclass
class AlignmentScores:
    """Link counts of a text: those of a system (A), sure gold links (S), and possible ones (P, with S)."""

    links: int = 0  # |A|
    sure: int = 0  # |S|
    sure_matches: int = 0  # |A ∩ S|
    possible_matches: int = 0  # |A ∩ P|

    @property
    def precision(self) -> float:
        """The share of the system's links that are possible, |A ∩ P| / |A|; 1 without any."""
        return self.possible_matches / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """The share of the sure links that the system has, |A ∩ S| / |S|; 1 without any."""
        return self.sure_matches / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), from 0 to 1; 0 without any links."""
        total = self.links + self.sure
        return 1 - (self.sure_matches + self.possible_matches) / total if total else 0.0


def score_alignment(gold: Iterable[GoldLinks], alignment: Iterable[Links]) -> AlignmentScores:
    """Compare the alignment of a text with its gold alignment, sentence by sentence. ValueError if they do
    not have equally many sentences.

    >>> from nmt.formats.pharaoh import parse, parse_gold
    >>> score_alignment([parse_gold("0-0 1-1 1?2", "")], [parse("0-0 1-2 2-2", "")]).error_rate
    0.4
    """
    scores = AlignmentScores()
    for gold_links, links in zip(gold, alignment, strict=True):
        scores.links += len(links)
        scores.sure += len(gold_links.sure)
        scores.sure_matches += len(links & gold_links.sure)
        scores.possible_matches += len(links & gold_links.possible)
    return scores


class AlignmentErrorAnalysis:
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
            help="index of the first word in the gold file, 0 or 1; many published sets count from 1",
        )
        add_hypotheses(
            parser,
            "one or more alignments, lines of points 0-0 1-2, as smt-align and --alignments write them",
        )
        add_names(parser, "names of the alignments; default: paths")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        check_names(args.names, args.hypothesis, "alignments")
        gold_name = files.name_of(args.gold)
        gold = [
            pharaoh.parse_gold(line, f"{gold_name}:{number}", args.gold_from)
            for number, line in enumerate(files.read_lines(args.gold), 1)
        ]
        if not gold:
            raise DataError(f"{gold_name}: empty file, expected the links of one sentence pair a line")
        rows: list[tuple[object, ...]] = []
        for name, path in zip(args.names or args.hypothesis, args.hypothesis, strict=True):
            alignment = list(pharaoh.read(path))
            if len(alignment) != len(gold):
                raise files.unequal([args.gold, path], [len(gold), len(alignment)])
            scores = score_alignment(gold, alignment)
            rows.append((name, scores.sure, scores.links, scores.precision, scores.recall, scores.error_rate))
        columns = {
            "alignment": "", "sure": "", "links": "", "precision": ".4f", "recall": ".4f", "aer": ".4f"
        }  # fmt: skip
        return Findings(ResultTable(columns, rows))
