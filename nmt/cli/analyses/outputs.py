"""Analyses of the outputs of any system: subsets, compare, samples, scores; by length, unknown, rare and
segmented words; differences."""

import argparse
import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis import differences, hard_words, plots, statistics, systems
from nmt.analysis.buckets import WINDOW, Curves, by_length, curve_table, lengths
from nmt.analysis.differences import DifferenceConfig, NgramConfig
from nmt.analysis.systems import System, read_systems
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import InputPath, add_setting, integer, parse_settings, positive
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError
from nmt.io import files

# ---- outputs -----------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)


class Subsets:
    """The rows of Table 6.1."""

    help = "BLEU and chrF without unknown words, of medium length, of both."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=False)
        inputs.add_training(parser, required=False)
        parser.renamed |= {"--shortest": "--min-length", "--longest": "--max-length"}
        parser.add_argument(
            "--min-length",
            type=positive,
            default=hard_words.MIN_LENGTH,
            metavar="N",
            help="fewest words of both sides in the middle group",
        )
        parser.add_argument(
            "--max-length",
            type=positive,
            default=hard_words.MAX_LENGTH,
            metavar="N",
            help="most words of both sides in the middle group",
        )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        if not args.vocabulary and not args.train:
            raise ConfigError("which words are hard? Give --vocabulary, or --train for systems with subwords")
        vocabs = inputs.read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = inputs.read_systems(args)
        test = systems[0].test
        masks: dict[str, NDArray[np.bool_]] = {}
        for kind, counts in inputs.count_hard_words(args, vocabs, test)[0].items():
            masks |= hard_words.subsets_without(kind, counts, test, args.min_length, args.max_length)
        scores = hard_words.score_subsets(systems, masks)

        def draw(paths: Sequence[Path]) -> None:
            groups = [f"{name}\nn = {mask.sum()}" for name, mask in masks.items()]
            series = {
                system.name: [
                    math.nan if row.bleu is None else row.bleu for row in scores if row.system == system.name
                ]
                for system in systems
            }
            title = args.title or systems[0].bleu().signature
            plots.bars(groups, series, {}, "BLEU", title, paths)

        return Findings(hard_words.subsets_table(scores), inputs.scores_of(systems), draw)


class Compare:
    """Paired bootstrap resampling against a baseline."""

    help = "Paired bootstrap: are systems different from a baseline? Intervals and p-values."

    def add_options(self, parser: Parser) -> None:
        inputs.add_references(parser)
        parser.add_argument(
            "--baseline",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="output of the system to compare with: text, or an n-best list",
        )
        parser.renamed["-b"] = "--baseline"
        inputs.add_hypotheses(parser, "outputs of the other systems")
        inputs.add_names(parser, "names of the systems, the baseline first; paths unless given")
        parser.add_argument(
            "--samples",
            type=integer(1, 100_000),
            default=statistics.SAMPLES,
            help="samples drawn from the test set",
        )
        add_output(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        paths = [args.baseline, *args.hypothesis]
        found = systems.read_systems(
            "", args.reference, paths, args.names or paths, args.bleu_tokenize, args.lowercase
        )
        names = [system.name for system in found]
        rows, signatures = statistics.paired_bootstrap(
            names,
            [system.hypotheses for system in found],
            found[0].test.references,
            args.bleu_tokenize,
            args.samples,
            args.lowercase,
        )

        def draw(figures: Sequence[Path]) -> None:
            labels = [Path(row.name).name + ("" if row.p is None else f"\np = {row.p:.3f}") for row in rows]
            series, errors = {"BLEU": [row.bleu for row in rows]}, {"BLEU": [row.interval for row in rows]}
            title = args.title or f"against {Path(names[0]).name}"
            plots.bars(labels, series, errors, "BLEU, 95% interval", title, figures)

        return Findings(statistics.bootstrap_table(rows), signatures, draw)


class Samples:
    """Long and short sentences to read."""

    help = "Long and short sentences without unknown words, as every system translates them (Table 6.2)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=False)
        for name in ("count", "long", "short", "seed"):
            add_setting(parser, hard_words.SampleConfig, name)

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs = inputs.read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = inputs.read_systems(args)
        if vocabs:
            inputs.check_vocabularies(args.vocabulary, vocabs, systems[0].test)
        found = hard_words.sample_sentences(systems, vocabs, parse_settings(hard_words.SampleConfig, args))
        if not found:
            log.warning(
                "no sentence of more than %d or fewer than %d words is without an unknown word; try other "
                "--long, --short",
                args.long,
                args.short,
            )

        def draw(paths: Sequence[Path]) -> None:
            source = lengths(systems[0].test)["source"]
            points = {system.name: (source, system.chrf_statistics.by_sentence()) for system in systems}
            words = [sample.words for sample in found]
            marked = {
                system.name: (words, [sample.chrf[system.name] for sample in found]) for system in systems
            }
            plots.points_by_length(points, marked, paths)

        return Findings(hard_words.samples_table(found), inputs.scores_of(systems), draw)


class Scores:
    """Correlation of two lists of scores."""

    help = "How two scores of the same lines correlate (Fig. 4.3), with a scatter plot."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--first",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="one number a line, as nmt-score writes them",
        )
        parser.add_argument(
            "--second", type=InputPath, required=True, metavar="FILE", help="another score of the same lines"
        )
        parser.add_argument(
            "--names", nargs=2, default=None, metavar="NAME", help="names of both; file names unless given"
        )
        add_output(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        first, second = statistics.read_scores(args.first), statistics.read_scores(args.second)
        if len(first) != len(second):
            raise files.unequal([args.first, args.second], [len(first), len(second)])
        if not first:
            raise DataError(f"{args.first}: empty file, expected one number a line")
        x_name, y_name = args.names or (Path(args.first).name, Path(args.second).name)
        found = statistics.correlate(first, second)

        return Findings(
            table=statistics.correlation_table((x_name, y_name), found),
            summary=[f"Pearson {found.pearson:.4f}, Spearman {found.spearman:.4f}, {found.pairs:,} pairs"],
            draw=lambda paths: plots.scatter(
                paths, first, second, x_name, y_name, args.title or f"r = {found.pearson:.3f}"
            ),
        )


# ---- by number ---------------------------------------------------------------------------------------------
# Analyses of the outputs of any system by a number that each sentence has: by-length, by-unknown, by-rare,
# by-segmented.


class ByLength:
    """BLEU and chrF in a sliding window of sentence lengths."""

    help = "BLEU and chrF by length of source, reference and the longer of both (Fig. 6.4 a, b)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        parser.add_argument(
            "--window", type=positive, default=WINDOW, help="neighboring lengths that are scored together"
        )
        add_curves(parser, "which length the figure of several systems shows")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        curves = by_length(systems, args.window, args.least)
        x_label = "sentence length in words (each point: a window of lengths)"
        return curve_findings(args, systems, curves, "length", x_label, "the longer side")


def add_curves(parser: Parser, side: str) -> None:
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
        add_curves(parser, "whose unknown words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs, systems = inputs.read_vocabularies(args.vocabulary), inputs.read_systems(args)
        inputs.check_vocabularies(args.vocabulary, vocabs, systems[0].test)
        curves = hard_words.by_unknown(systems, *vocabs, args.least)
        x_label = "at most this many unknown words"
        return curve_findings(args, systems, curves, "unknown", x_label, "the side with more")


class ByRare:
    """BLEU and chrF by the number of words that are rare or unseen in training, cumulative."""

    help = "BLEU and chrF of the sentences with at most this many words unseen or rare in training."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_training(parser, required=True)
        add_curves(parser, "whose rare words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        counts = inputs.read_training(args.train, systems[0].test)
        curves = hard_words.by_rare(systems, *counts, args.rare, args.least)
        x_label = f"at most this many words {inputs.rare_name(args.rare)} in training"
        return curve_findings(args, systems, curves, "rare", x_label, "the side with more")


class BySegmented:
    """BLEU and chrF by the number of words that a run cuts into several units, cumulative."""

    help = "BLEU and chrF of the sentences with at most this many words that a run's subwords cut."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        parser.add_argument(
            "--run",
            type=InputPath,
            required=True,
            metavar="RUN_DIR",
            help="the run whose subwords cut the words",
        )
        parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
        add_curves(parser, "whose words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = inputs.read_systems(args)
        units = inputs.read_units(args.run, systems[0].test, args.tokenized)
        if units is None:
            raise ConfigError(f"{args.run}: cuts no words; see by-unknown and by-rare")
        curves = hard_words.by_segmented(systems, *units, args.least)
        x_label = "at most this many words of several units"
        return curve_findings(args, systems, curves, "segmented", x_label, "the side with more")


# ---- differences -------------------------------------------------------------------------------------------
# Analyses of where systems differ: by-frequency, ngrams, differences.


class ByFrequency:
    """Accuracy of words by their frequency in training."""

    help = "Precision, recall and F1 of words by their frequency in training, or in the reference."

    def add_options(self, parser: Parser) -> None:
        add_systems_without_source(parser)
        parser.add_argument(
            "--train",
            type=InputPath,
            default=None,
            metavar="FILE",
            help="target side of the training text, or a file of nmt-vocab; the reference unless given",
        )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        systems = read_systems_without_source(args)
        test = systems[0].test
        if args.train:
            counts = inputs.read_counts(args.train, test)
        else:
            counts = differences.reference_counts(test)
        found = differences.by_frequency(systems, counts)

        def draw(paths: Sequence[Path]) -> None:
            groups = sorted({(row.first, row.last or math.inf): row for row in found}.items())
            f1 = {(row.system, row.first): row.f1 for row in found}
            series = {
                system.name: [f1.get((system.name, row.first), math.nan) for _, row in groups]
                for system in systems
            }
            labels = [differences.frequency_label(row.first, row.last) for _, row in groups]
            title = args.title or f"words by frequency in {'training' if args.train else 'the reference'}"
            plots.bars(labels, series, {}, "F1", title, paths)

        return Findings(differences.frequency_table(found), inputs.scores_of(systems), draw)


class Ngrams:
    """N-grams that one system gets right and another does not."""

    help = "N-grams that the first system gets right and another does not, and the other way round."

    def add_options(self, parser: Parser) -> None:
        add_systems_without_source(parser)
        for name in ("max_words", "count"):
            add_setting(parser, NgramConfig, name)

    def run(self, args: argparse.Namespace) -> Findings:
        systems = read_systems_without_source(args, least=2)
        found = differences.different_ngrams(systems, parse_settings(NgramConfig, args))
        return Findings(differences.ngrams_table(found), inputs.scores_of(systems))


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
        found = differences.largest_differences(first, second, parse_settings(DifferenceConfig, args))
        groups = differences.difference_histogram(first, second, args.metric)

        def draw(paths: Sequence[Path]) -> None:
            title = args.title or f"{args.metric} of {second.name} minus {args.metric} of {first.name}"
            plots.bars(list(groups), {"sentences": list(groups.values())}, {}, "sentences", title, paths)

        counts = [f"{name}: {count:,} sentences" for name, count in groups.items()]
        return Findings(
            differences.differences_table(found), [*inputs.scores_of([first, second]), *counts], draw
        )


def add_systems_without_source(parser: Parser) -> None:
    """References, the outputs of systems, and --output: no source is needed."""
    inputs.add_references(parser)
    inputs.add_hypotheses(parser, "output of the systems: text, or n-best lists")
    inputs.add_names(parser, "names of the systems; file names unless given")
    add_output(parser)


def read_systems_without_source(args: argparse.Namespace, least: int = 1) -> list[System]:
    """The systems that the options of `add_systems` name."""
    found = read_systems("", args.reference, args.hypothesis, args.names, args.bleu_tokenize, args.lowercase)
    return at_least(found, least)


def at_least(systems: list[System], number: int) -> list[System]:
    """ConfigError for fewer systems."""
    if len(systems) < number:
        raise ConfigError(f"--hypothesis: {len(systems)} system; expected {number} to compare")
    return systems
