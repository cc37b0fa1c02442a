"""Analyses of the outputs of any system: subsets, compare, samples, scores."""

import argparse
import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.analysis import correlation, plots, samples, significance, systems, unknown
from nmt.analysis.lengths import lengths
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output, add_title
from nmt.cli.arguments import Input, add_setting, integer, positive, settings_of
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError

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
        if not args.vocabulary and not args.train:
            raise ConfigError("which words are hard? Give --vocabulary, or --train for systems with subwords")
        vocabs = inputs.read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = inputs.read_systems(args)
        test = systems[0].test
        masks: dict[str, NDArray[np.bool_]] = {}
        for kind, counts in inputs.hard_words(args, vocabs, test)[0].items():
            masks |= unknown.subsets_without(kind, counts, test, args.min_length, args.max_length)
        scores = unknown.score_subsets(systems, masks)

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

        return Findings(unknown.table(scores), inputs.scores_of(systems), draw)


class Compare:
    """Paired bootstrap resampling against a baseline."""

    help = "Paired bootstrap: are systems different from a baseline? Intervals and p-values."

    def add_options(self, parser: Parser) -> None:
        inputs.add_references(parser)
        parser.add_argument(
            "--baseline",
            type=Input,
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
            default=significance.SAMPLES,
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
        rows, signatures = significance.paired_bootstrap(
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

        return Findings(significance.table(rows), signatures, draw)


class Samples:
    """Long and short sentences to read."""

    help = "Long and short sentences without unknown words, as every system translates them (Table 6.2)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=False)
        for name in ("count", "long", "short", "seed"):
            add_setting(parser, samples.SampleConfig, name)

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs = inputs.read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = inputs.read_systems(args)
        if vocabs:
            inputs.check_vocabularies(args.vocabulary, vocabs, systems[0].test)
        found = samples.sample_sentences(systems, vocabs, settings_of(samples.SampleConfig, args))
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

        return Findings(samples.table(found), inputs.scores_of(systems), draw)


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

        return Findings(
            table=correlation.table((x_name, y_name), found),
            summary=[f"Pearson {found.pearson:.4f}, Spearman {found.spearman:.4f}, {found.pairs:,} pairs"],
            draw=lambda paths: plots.scatter(
                paths, first, second, x_name, y_name, args.title or f"r = {found.pearson:.3f}"
            ),
        )
