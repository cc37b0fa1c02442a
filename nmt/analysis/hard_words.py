"""BLEU by the number of words that are hard to translate, and of sentences without any: words unknown to a
vocabulary, rare in the training text, or split into several subword units."""

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis import plots
from nmt.analysis.actions import Findings, ResultTable, add_title, field_values
from nmt.analysis.buckets import (
    MIN_SENTENCES,
    Curves,
    add_curves,
    by_count,
    by_side,
    curve_findings,
    lengths,
)
from nmt.analysis.known_words import (
    TrainingCounts,
    add_training,
    add_vocabularies,
    check_vocabularies,
    match_case,
    rare_name,
    read_training,
    read_vocabularies,
)
from nmt.analysis.systems import SystemOutput, TestSet, add_systems, load_systems, score_summary
from nmt.analysis.trained_runs import read_units
from nmt.cli.arguments import InputPath, positive
from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.io import files
from nmt.text.subwords.bpe import SEPARATOR
from nmt.text.vocab import Vocab

MIN_LENGTH, MAX_LENGTH = 10, 20  # words of both sides, in the second half of van Merriënboer 2018, table 6.1
WORD_START = "\u2581"  # begins the first unit of a word in SentencePiece

Counts = dict[str, list[int]]  # source, reference, both -> a number for each sentence


# ---- unknown words -----------------------------------------------------------------------------------------


def unknown_words(test: TestSet, source: Vocab, target: Vocab) -> Counts:
    """Count the words outside the vocabularies, in each source and its first reference."""

    def missing(lines: Sequence[str], vocab: Vocab) -> list[int]:
        return [sum(word not in vocab.ids for word in files.split_words(line)) for line in lines]

    return by_side(missing(test.sources, source), missing(test.references[0], target))


def by_unknown(
    systems: Sequence[SystemOutput], source: Vocab, target: Vocab, least: int = MIN_SENTENCES
) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... words outside the vocabularies:
    system -> source, reference, both -> buckets.

    Buckets of fewer than `least` sentences are left out.
    """
    return by_count(systems, unknown_words(systems[0].test, source, target), least)


# ---- subsets -----------------------------------------------------------------------------------------------


@dataclass
class SubsetScore:
    """The scores of one system on one subset of the test set."""

    subset: str
    system: str
    sentences: int
    bleu: float | None  # 0 to 100; None without sentences
    chrf: float | None  # 0 to 100
    ratio: float | None  # words of the hypotheses over words of the references


def subsets(
    test: TestSet, source: Vocab, target: Vocab, min_length: int = MIN_LENGTH, max_length: int = MAX_LENGTH
) -> dict[str, NDArray[np.bool_]]:
    """The subsets of van Merriënboer 2018, table 6.1, as masks over the sentences: all; no unknown word in
    source and reference; `min_length` to `max_length` words on both sides; both conditions together."""
    return hard_word_subsets("unknown", unknown_words(test, source, target), test, min_length, max_length)


def hard_word_subsets(
    kind: str,
    counts: Mapping[str, Sequence[int]],
    test: TestSet,
    min_length: int = MIN_LENGTH,
    max_length: int = MAX_LENGTH,
) -> dict[str, NDArray[np.bool_]]:
    """Select sentences like `subsets`, for any kind of hard words and their counts by side and sentence."""
    easy = np.array(counts["both"]) == 0
    by = lengths(test)
    medium = np.all(
        [
            (np.array(by[side]) >= min_length) & (np.array(by[side]) <= max_length)
            for side in ("source", "reference")
        ],
        0,
    )
    band = f"{min_length}-{max_length} words"
    return {
        "all": np.ones(len(easy), bool),
        f"no {kind}": easy,
        band: medium,
        f"{band}, no {kind}": easy & medium,
    }


def score_subsets(
    systems: Sequence[SystemOutput], masks: Mapping[str, NDArray[np.bool_]]
) -> list[SubsetScore]:
    """Score each system on each subset; an empty subset has None for scores."""
    return [
        SubsetScore(
            subset=name,
            system=system.name,
            sentences=int(mask.sum()),
            bleu=system.bleu(mask).score if mask.any() else None,
            chrf=system.chrf(mask).score if mask.any() else None,
            ratio=system.ratio(mask) if mask.any() else None,
        )
        for name, mask in masks.items()
        for system in systems
    ]


def subsets_table(scores: Iterable[SubsetScore]) -> ResultTable:
    columns = {"subset": "", "system": "", "sentences": "", "bleu": ".4f", "chrf": ".4f"}
    return ResultTable(columns | {"length_ratio": ".4f"}, field_values(scores))


# ---- rare words --------------------------------------------------------------------------------------------
# Words are rare for systems with subwords, too, which have no unknown ones.


def rare_words(test: TestSet, source: TrainingCounts, target: TrainingCounts, most: int = 0) -> Counts:
    """Count the words that training has at most `most` times, in each source and its first reference."""

    def rare(lines: Sequence[Sequence[str]], counts: TrainingCounts) -> list[int]:
        return [sum(counts.get(word, 0) <= most for word in words) for words in lines]

    return by_side(rare(test.source_words, source), rare(test.reference_words[0], target))


def by_rare(
    systems: Sequence[SystemOutput],
    source: TrainingCounts,
    target: TrainingCounts,
    most: int = 0,
    least: int = MIN_SENTENCES,
) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... words that training has at most `most` times:
    system -> source, reference, both -> buckets.

    `source` and `target`: how often the training text has each word. Buckets of fewer than `least` sentences
    are left out.
    """
    return by_count(systems, rare_words(systems[0].test, source, target, most), least)


# ---- segmented words ---------------------------------------------------------------------------------------


def segmented_words(units: Sequence[str]) -> int:
    """Count the words of a sentence that are split into several units.

    The units are those of BPE (`lower@@ case`) or of SentencePiece (`\u2581lower case`); of the latter,
    punctuation beside a word does not count.
    """
    if any(unit.startswith(WORD_START) for unit in units):
        numbers = accumulate(unit.startswith(WORD_START) for unit in units)
        sizes = Counter(n for n, unit in zip(numbers, units, strict=True) if any(map(str.isalnum, unit)))
    else:
        sizes = Counter(accumulate([False, *(not unit.endswith(SEPARATOR) for unit in units[:-1])]))
    return sum(size > 1 for size in sizes.values())


def by_segmented(
    systems: Sequence[SystemOutput],
    source: Sequence[Sequence[str]],
    reference: Sequence[Sequence[str]],
    least: int = MIN_SENTENCES,
) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... words of several units: system -> source,
    reference, both -> buckets.

    `source` and `reference` have the units of each sentence. Buckets of fewer than `least` sentences are left
    out.
    """
    return by_count(systems, segmented_sides(source, reference), least)


def segmented_sides(source: Sequence[Sequence[str]], reference: Sequence[Sequence[str]]) -> Counts:
    """Count the words of several units, given the units of each source and reference."""
    return by_side(list(map(segmented_words, source)), list(map(segmented_words, reference)))


# ---- actions -----------------------------------------------------------------------------------------------


def count_hard_words(
    args: argparse.Namespace, vocabs: tuple[Vocab, Vocab] | None, test: TestSet
) -> tuple[dict[str, Counts], TrainingCounts | None]:
    """Count each kind of hard words that --vocabulary and --train define, by side and sentence.

    Also returns how often the training text has each word of the target; None where neither option says it.
    """
    hard, training = dict[str, Counts](), None
    if vocabs:
        check_vocabularies(args.vocabulary, vocabs, test)
        hard["unknown"] = unknown_words(test, *vocabs)
        training = match_case(vocabs[1].counts, test)
    if args.train:
        source, target = read_training(args.train, test)
        hard[rare_name(args.rare)] = rare_words(test, source, target, args.rare)
        training = target
    return hard, training


class SubsetsAnalysis:
    help = "BLEU and chrF without unknown words, of medium length, of both."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        add_vocabularies(parser, required=False)
        add_training(parser, required=False)
        parser.add_argument(
            "--min-length",
            type=positive,
            default=MIN_LENGTH,
            metavar="N",
            help="fewest words of both sides in the middle group",
        )
        parser.add_argument(
            "--max-length",
            type=positive,
            default=MAX_LENGTH,
            metavar="N",
            help="most words of both sides in the middle group",
        )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        if not args.vocabulary and not args.train:
            raise ConfigError("which words are hard? Give --vocabulary, or --train for systems with subwords")
        vocabs = read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = load_systems(args)
        test = systems[0].test
        masks: dict[str, NDArray[np.bool_]] = {}
        for kind, counts in count_hard_words(args, vocabs, test)[0].items():
            masks |= hard_word_subsets(kind, counts, test, args.min_length, args.max_length)
        scores = score_subsets(systems, masks)

        def draw(paths: Sequence[Path]) -> None:
            groups = [f"{name}\nn = {mask.sum()}" for name, mask in masks.items()]
            series = {
                system.name: [
                    math.nan if score.bleu is None else score.bleu
                    for score in scores
                    if score.system == system.name
                ]
                for system in systems
            }
            title = args.title or systems[0].bleu().signature
            plots.bars(groups, series, {}, "BLEU", title, paths)

        return Findings(subsets_table(scores), score_summary(systems), draw)


class UnknownWordsAnalysis:
    help = "BLEU and chrF of the sentences with at most this many unknown words."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        add_vocabularies(parser, required=True)
        add_curves(parser, "whose unknown words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs, systems = read_vocabularies(args.vocabulary), load_systems(args)
        check_vocabularies(args.vocabulary, vocabs, systems[0].test)
        curves = by_unknown(systems, *vocabs, args.least)
        x_label = "at most this many unknown words"
        return curve_findings(args, systems, curves, "unknown", x_label, "the side with more")


class RareWordsAnalysis:
    help = "BLEU and chrF of the sentences with at most this many words unseen or rare in training."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        add_training(parser, required=True)
        add_curves(parser, "whose rare words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = load_systems(args)
        counts = read_training(args.train, systems[0].test)
        curves = by_rare(systems, *counts, args.rare, args.least)
        x_label = f"at most this many words {rare_name(args.rare)} in training"
        return curve_findings(args, systems, curves, "rare", x_label, "the side with more")


class SegmentedWordsAnalysis:
    help = "BLEU and chrF of the sentences with at most this many words that a run's subwords split."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        parser.add_argument(
            "--run",
            type=InputPath,
            required=True,
            metavar="RUN_DIR",
            help="the run whose subwords split the words",
        )
        parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
        add_curves(parser, "whose words the figure of several systems counts")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = load_systems(args)
        units = read_units(args.run, systems[0].test, args.tokenized)
        if units is None:
            raise ConfigError(f"{args.run}: splits no words; see by-unknown and by-rare")
        curves = by_segmented(systems, *units, args.least)
        x_label = "at most this many words of several units"
        return curve_findings(args, systems, curves, "segmented", x_label, "the side with more")
