"""Analyses of the outputs of any system by a number that each sentence has: by-length, by-unknown, by-rare,
by-segmented."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots, rare, segmented, unknown
from nmt.analysis.buckets import Curves, curve_table
from nmt.analysis.lengths import WINDOW, by_length
from nmt.analysis.systems import System
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_title
from nmt.cli.arguments import Input, positive
from nmt.cli.options import Parser
from nmt.errors import ConfigError

log = logging.getLogger(__name__)


class ByLength:
    """BLEU and chrF in a sliding window of sentence lengths."""

    help = "BLEU and chrF by length of source, reference and the longer of both (Fig. 6.4 a, b)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        parser.add_argument(
            "--window", type=positive, default=WINDOW, help="neighboring lengths that are scored together"
        )
        add_figure(parser, "which length the figure of several systems shows")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        curves = by_length(systems, args.window, args.least)
        x_label = "sentence length in words (each point: a window of lengths)"
        return curve_findings(args, systems, curves, "length", x_label, "the longer side")


def add_figure(parser: Parser, side: str) -> None:
    """Options of the curves and their figure. `side`: help of --by."""
    parser.add_argument("--by", choices=("source", "reference", "both"), default="source", help=side)
    inputs.add_least(parser)
    add_title(parser)


def curve_findings(
    args: argparse.Namespace, systems: Sequence[System], curves: Curves, key: str, x_label: str, both: str
) -> Findings:
    """The table of curves and their figure.

    One system: a curve each for source, reference and both. Several: a curve each, by one of those. `key` is
    the column of the buckets' keys; `both` says in words which side counts.
    """
    if not any(buckets for sides in curves.values() for buckets in sides.values()):
        log.warning("no point has %d sentences; --least asks for fewer", args.least)

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


class ByUnknown:
    """BLEU and chrF by the number of unknown words, cumulative."""

    help = "BLEU and chrF of the sentences with at most this many unknown words (Fig. 6.4 c)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=True)
        add_figure(parser, "whose unknown words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs, systems = inputs.read_vocabularies(args.vocabulary), inputs.read_systems(args)
        inputs.check_vocabularies(args.vocabulary, vocabs, systems[0].test)
        curves = unknown.by_unknown(systems, *vocabs, args.least)
        x_label = "at most this many unknown words"
        return curve_findings(args, systems, curves, "unknown", x_label, "the side with more")


class ByRare:
    """BLEU and chrF by the number of words that are rare or unseen in training, cumulative."""

    help = "BLEU and chrF of the sentences with at most this many words unseen or rare in training."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_training(parser, required=True)
        add_figure(parser, "whose rare words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        counts = inputs.read_training(args.train, systems[0].test)
        curves = rare.by_rare(systems, *counts, args.rare, args.least)
        x_label = f"at most this many words {inputs.rare_name(args.rare)} in training"
        return curve_findings(args, systems, curves, "rare", x_label, "the side with more")


class BySegmented:
    """BLEU and chrF by the number of words that a run cuts into several units, cumulative."""

    help = "BLEU and chrF of the sentences with at most this many words that a run's subwords cut."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        parser.add_argument(
            "--run",
            type=Input,
            required=True,
            metavar="RUN_DIR",
            help="the run whose subwords cut the words",
        )
        parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
        add_figure(parser, "whose words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        units = inputs.read_units(args.run, systems[0].test, args.tokenized)
        if units is None:
            raise ConfigError(f"{args.run}: cuts no words; see by-unknown and by-rare")
        curves = segmented.by_segmented(systems, *units, args.least)
        x_label = "at most this many words of several units"
        return curve_findings(args, systems, curves, "segmented", x_label, "the side with more")
