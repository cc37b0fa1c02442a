"""nmt-analyze subsets."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots, unknown
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_title
from nmt.cli.arguments import positive
from nmt.cli.options import Parser


class Subsets:
    """The rows of Table 6.1."""

    help = "BLEU and chrF without unknown words, of medium length, of both (the rows of Table 6.1)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=True)
        parser.renamed |= {"--shortest": "--min-length", "--longest": "--max-length"}
        parser.add_argument(
            "--min-length",
            type=positive,
            default=unknown.MIN_LENGTH,
            metavar="N",
            help="fewest words of both sides in the middle group",
        )
        parser.add_argument(
            "--max-length",
            type=positive,
            default=unknown.MAX_LENGTH,
            metavar="N",
            help="most words of both sides in the middle group",
        )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs, systems = inputs.read_vocabularies(args.vocabulary), inputs.read_systems(args)
        masks = unknown.subsets(systems[0].test, *vocabs, args.min_length, args.max_length)
        scores = unknown.score_subsets(systems, masks)

        def draw(paths: Sequence[Path]) -> None:
            groups = [f"{name}\nn = {mask.sum()}" for name, mask in masks.items()]
            series = {
                system.name: [row.bleu for row in scores if row.system == system.name] for system in systems
            }
            title = args.title or systems[0].bleu().signature
            plots.bars(groups, series, {}, "BLEU", title, paths)

        return Findings(unknown.table(scores), inputs.scores_of(systems), draw)
