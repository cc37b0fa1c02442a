"""Analyses of where systems differ: by-frequency, ngrams, differences."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import differences, frequency, ngrams, plots
from nmt.analysis.differences import DifferenceConfig
from nmt.analysis.ngrams import NgramConfig
from nmt.analysis.systems import System, read_systems
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import Input, add_setting, settings_of
from nmt.cli.options import Parser
from nmt.errors import ConfigError


class ByFrequency:
    """Accuracy of words by their frequency in training."""

    help = "Precision, recall and F1 of words by their frequency in training, or in the reference."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        parser.add_argument(
            "--train",
            type=Input,
            default=None,
            metavar="FILE",
            help="target side of the training text, or a file of nmt-vocab; the reference unless given",
        )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        systems = read(args)
        test = systems[0].test
        if args.train:
            counts = inputs.read_counts(args.train, test)
        else:
            counts = frequency.reference_counts(test)
        found = frequency.by_frequency(systems, counts)

        def draw(paths: Sequence[Path]) -> None:
            groups = sorted({(row.first, row.last or math.inf): row for row in found}.items())
            f1 = {(row.system, row.first): row.f1 for row in found}
            series = {
                system.name: [f1.get((system.name, row.first), math.nan) for _, row in groups]
                for system in systems
            }
            labels = [frequency.label(row.first, row.last) for _, row in groups]
            title = args.title or f"words by frequency in {'training' if args.train else 'the reference'}"
            plots.bars(labels, series, {}, "F1", title, paths)

        return Findings(frequency.table(found), inputs.scores_of(systems), draw)


class Ngrams:
    """N-grams that one system gets right and another does not."""

    help = "N-grams that the first system gets right and another does not, and the other way round."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        for name in ("max_words", "count"):
            add_setting(parser, NgramConfig, name)

    def run(self, args: argparse.Namespace) -> Findings:
        systems = read(args, least=2)
        found = ngrams.different_ngrams(systems, settings_of(NgramConfig, args))
        return Findings(ngrams.table(found), inputs.scores_of(systems))


class Differences:
    """Sentences by the size of the difference between two systems."""

    help = "The sentences that two systems translate most differently well, and how many differ how much."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        for name in ("metric", "count"):
            add_setting(parser, DifferenceConfig, name)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        first, second, *more = at_least(inputs.read_systems(args), 2)
        if more:
            raise ConfigError(f"--hypothesis: {2 + len(more)} systems; differences are those of two")
        found = differences.largest_differences(first, second, settings_of(DifferenceConfig, args))
        groups = differences.histogram(first, second, args.metric)

        def draw(paths: Sequence[Path]) -> None:
            title = args.title or f"{args.metric} of {second.name} minus {args.metric} of {first.name}"
            plots.bars(list(groups), {"sentences": list(groups.values())}, {}, "sentences", title, paths)

        counts = [f"{name}: {count:,} sentences" for name, count in groups.items()]
        return Findings(differences.table(found), [*inputs.scores_of([first, second]), *counts], draw)


def add_systems(parser: Parser) -> None:
    """References, the outputs of systems, and --output: no source is needed."""
    inputs.add_references(parser)
    inputs.add_hypotheses(parser, "output of the systems: text, or n-best lists")
    inputs.add_names(parser, "names of the systems; file names unless given")
    add_output(parser)


def read(args: argparse.Namespace, least: int = 1) -> list[System]:
    """The systems that the options of `add_systems` name."""
    found = read_systems("", args.reference, args.hypothesis, args.names, args.bleu_tokenize, args.lowercase)
    return at_least(found, least)


def at_least(systems: list[System], number: int) -> list[System]:
    """ConfigError for fewer systems."""
    if len(systems) < number:
        raise ConfigError(f"--hypothesis: {len(systems)} system; expected {number} to compare")
    return systems
