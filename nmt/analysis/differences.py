"""Differences between systems: in sentences, in n-grams, and in words by frequency."""

import argparse
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis import comet, plots
from nmt.analysis.actions import Findings, add_title, record_table, single_field
from nmt.analysis.hard_words import read_target_counts
from nmt.analysis.statistics import Floats, bleu_scores
from nmt.analysis.systems import SystemOutput, TestSet, add_systems, load_systems, score_summary
from nmt.cli.arguments import InputPath, add_settings, parse_settings
from nmt.cli.options import Parser
from nmt.config.settings import choice, number
from nmt.errors import ConfigError
from nmt.metrics import ter_scores

# ---- sentences ---------------------------------------------------------------------------------------------


BAR_WIDTH = 10  # width of a histogram's bar, in points of BLEU or chrF
MOST_BARS = 20  # on each side of a histogram: TER of a translation that repeats itself can be any number


@dataclass
class DifferenceConfig:
    """Which score is compared, and how many sentences are listed."""

    metric: str = choice(
        "chrf",
        "bleu",
        "ter",
        "comet",
        help="sentence-level score: chrF, BLEU with effective order, TER, or COMET by --comet-model",
    )
    count: int = number(10, least=1, help="number of sentences shown in each direction")


@dataclass
class SentenceDifference:
    """A sentence with its scores in two systems."""

    line: int  # from 1
    difference: float  # score of the second minus score of the first
    first: float  # score of the first: BLEU, chrF and TER in percent, COMET about 0 to 1
    second: float  # score of the second
    source: str
    reference: str
    first_text: str
    second_text: str


def sentence_scores(system: SystemOutput, metric: str) -> Floats:
    """Compute the score of each sentence, (sentences,). `metric`: chrf, bleu (of effective order), ter, all
    of sacreBLEU and in percent, or comet, about 0 to 1. ConfigError for comet that has not been computed."""
    if metric == "bleu":
        return bleu_scores(system.bleu_statistics.rows, effective_order=True)
    if metric == "ter":
        return ter_scores(system.ter_statistics.rows)
    if metric == "comet":
        return system.comet_scores()
    return np.array(system.chrf_statistics.by_sentence())


def largest_differences(
    first: SystemOutput, second: SystemOutput, config: DifferenceConfig
) -> list[SentenceDifference]:
    """List the sentences that the second system translates better than the first, then those that it
    translates worse, up to `config.count` of each, the largest differences first, ties as in the text."""
    scores = [sentence_scores(system, config.metric) for system in (first, second)]
    differences = (scores[1] - scores[0]).round(9)
    gains = -differences if config.metric == "ter" else differences  # less is better
    order = np.argsort(-gains, kind="stable")
    better = order[gains[order] > 0][: config.count]
    order = np.argsort(gains, kind="stable")
    worse = order[gains[order] < 0][: config.count]
    test = first.test
    return [
        SentenceDifference(
            line=row + 1,
            difference=float(differences[row]),
            first=float(scores[0][row]),
            second=float(scores[1][row]),
            source=single_field(test.sources[row]),
            reference=single_field(test.references[0][row]),
            first_text=single_field(first.hypotheses[row]),
            second_text=single_field(second.hypotheses[row]),
        )
        for row in [*better.tolist(), *worse.tolist()]
    ]


def difference_histogram(first: SystemOutput, second: SystemOutput, metric: str) -> dict[str, int]:
    """Count sentences by their difference, second minus first: label of a group -> sentences.

    Groups are `BAR_WIDTH` points wide, of COMET hundredths, from the lowest one that occurs to the highest;
    equal scores always have a group of their own. Group number `MOST_BARS` on either side is open. `metric`:
    as in `sentence_scores`.
    """
    points = 100 if metric == "comet" else 1
    differences = (points * (sentence_scores(second, metric) - sentence_scores(first, metric))).round(9)
    groups = np.sign(differences) * np.ceil(np.abs(differences) / BAR_WIDTH)
    groups = groups.clip(-MOST_BARS, MOST_BARS).astype(np.int64)
    return {
        group_name(group): int((groups == group).sum())
        for group in range(min(groups.min(initial=0), 0), max(groups.max(initial=0), 0) + 1)
    }


def group_name(group: int) -> str:
    """The label of a group of differences: under -190, -20 to -10, equal, 0 to 10, over 190."""
    if not group:
        return "equal"
    low = BAR_WIDTH * (group - 1 if group > 0 else group)
    if abs(group) == MOST_BARS:
        return f"over {low}" if group > 0 else f"under {low + BAR_WIDTH}"
    return f"{low} to {low + BAR_WIDTH}"


# ---- n-grams -----------------------------------------------------------------------------------------------
# N-grams that one system gets right and another does not, as in compare-mt (Neubig et al. 2019).


Ngram = tuple[str, ...]


@dataclass
class NgramDifferenceConfig:
    """How long the listed n-grams are, and how many are listed."""

    max_words: int = number(4, least=1, most=20, help="longest n-grams, in words")
    count: int = number(20, least=1, help="number of n-grams shown in each direction")


@dataclass
class NgramDifference:
    """An n-gram of the references that one system gets right more often than another."""

    better: str  # the system
    worse: str
    ngram: str
    words: int
    reference: int  # its count in the references; for several, the sum of each sentence's largest count
    matches: int  # how often the better system gets it right
    others: int  # how often the worse system gets it right
    score: float  # 0.5 to 1: (matches + 1) / (matches + others + 2)


def ngrams(words: Sequence[str], longest: int) -> Counter[Ngram]:
    """Count the n-grams of 1 to `longest` words in a sentence."""
    return Counter(
        tuple(words[start : start + size])
        for size in range(1, longest + 1)
        for start in range(len(words) - size + 1)
    )


def reference_ngrams(systems: Sequence[SystemOutput], longest: int) -> Iterator[Counter[Ngram]]:
    """Count the n-grams of 1 to `longest` words of each sentence's references, which the systems share; with
    several references, take the largest count."""
    for references in zip(*systems[0].test.reference_words, strict=True):
        first, *others = (ngrams(words, longest) for words in references)
        for reference in others:
            first |= reference
        yield first


def different_ngrams(systems: Sequence[SystemOutput], config: NgramDifferenceConfig) -> list[NgramDifference]:
    """List the n-grams that distinguish the first system most from each of the others.

    For each pair, n-grams that the first system gets right more often come first, then those that the other
    does, up to `config.count` of each. An n-gram within a listed one that has the same counts is left out. A
    system gets an n-gram right as often as BLEU counts, clipped by the reference.
    """
    total, right = Counter[Ngram](), [Counter[Ngram]() for _ in systems]
    for row, reference in enumerate(reference_ngrams(systems, config.max_words)):
        total.update(reference)
        for system, matches in zip(systems, right, strict=True):
            matches.update(ngrams(system.words[row], config.max_words) & reference)
    first, *others = zip(systems, right, strict=True)
    return [
        difference
        for rival in others
        for better, worse in ((first, rival), (rival, first))
        for difference in most_different(better, worse, total, config.count)
    ]


def most_different(
    better: tuple[SystemOutput, Counter[Ngram]],
    worse: tuple[SystemOutput, Counter[Ngram]],
    total: Counter[Ngram],
    count: int,
) -> list[NgramDifference]:
    """List up to `count` n-grams that `better` gets right more often than `worse`, highest score first. Each
    system comes with its matches; `total`: counts in the references."""
    (better_system, ours), (worse_system, theirs) = better, worse

    def score(ngram: Ngram) -> float:
        return (ours[ngram] + 1) / (ours[ngram] + theirs[ngram] + 2)

    wins = [ngram for ngram, matched in ours.items() if matched > theirs[ngram]]
    order = sorted(wins, key=lambda ngram: (-score(ngram), -ours[ngram], -len(ngram), ngram))
    return [
        NgramDifference(
            better=better_system.name,
            worse=worse_system.name,
            ngram=" ".join(ngram),
            words=len(ngram),
            reference=total[ngram],
            matches=ours[ngram],
            others=theirs[ngram],
            score=score(ngram),
        )
        for ngram in islice(without_parts(order, ours, theirs), count)
    ]


def without_parts(order: Iterable[Ngram], ours: Counter[Ngram], theirs: Counter[Ngram]) -> Iterator[Ngram]:
    """Yield n-grams in order, leaving out those within an earlier one that has the same counts. `ours`,
    `theirs`: how often each system gets an n-gram right."""
    parts: set[tuple[Ngram, int, int]] = set()
    for ngram in order:
        counts = ours[ngram], theirs[ngram]
        if (ngram, *counts) not in parts:
            yield ngram
            parts |= {(part, *counts) for part in ngrams(ngram, len(ngram))}


# ---- words by frequency ------------------------------------------------------------------------------------
# Precision, recall and F1 of frequent and rare words, as in compare-mt (Neubig et al. 2019).


FREQUENCY_EDGES = (0, 1, 2, 5, 10, 100, 1000)  # the smallest frequency of each group
Ints = NDArray[np.int64]


@dataclass
class WordAccuracy:
    """How well a system translates words whose frequency is in a group.

    The matches of a word in a sentence are the smaller of its counts in translation and first reference.
    """

    system: str
    first: int  # lowest frequency of the group
    last: int | None  # highest frequency; None: unbounded
    reference: int  # words of the group in the first reference
    hypothesis: int  # words of the group in the translations
    matches: int
    precision: float  # 0 to 100
    recall: float  # 0 to 100
    f1: float  # 0 to 100


def reference_counts(test: TestSet) -> Counter[str]:
    """Count the words of the first reference, for use in place of an unknown training text."""
    return Counter(word for words in test.reference_words[0] for word in words)


def word_statistics(system: SystemOutput, counts: Mapping[str, int]) -> Ints:
    """Count the words of each group of frequencies (FREQUENCY_EDGES) in the first reference, in the
    translation, and in both; returns (sentences, groups, 3). `counts`: word -> frequency."""
    references = system.test.reference_words[0]
    statistics = np.zeros((len(references), len(FREQUENCY_EDGES), 3), np.int64)
    for row, (hypothesis, reference) in enumerate(zip(system.words, references, strict=True)):
        ours, theirs = Counter(hypothesis), Counter(reference)
        for word in ours.keys() | theirs.keys():
            group = bisect_right(FREQUENCY_EDGES, counts.get(word, 0)) - 1
            statistics[row, group] += theirs[word], ours[word], min(ours[word], theirs[word])
    return statistics


def f1_scores(sums: NDArray[np.generic]) -> Floats:
    """Compute F1, 0 to 100: (..., 3) -> (...), from counts of words in reference, translation, and both."""
    numbers = np.asarray(sums, np.float64)
    return 200 * numbers[..., 2] / np.maximum(numbers[..., 0] + numbers[..., 1], 1)


def by_frequency(systems: Sequence[SystemOutput], counts: Mapping[str, int]) -> list[WordAccuracy]:
    """Score each system on the words of each group of frequencies.

    `counts`: how often each word occurs in the training text, or else in the reference. Groups without words
    in the reference are left out.
    """
    return [
        accuracy
        for system in systems
        for accuracy in group_accuracies(system.name, word_statistics(system, counts))
    ]


def group_accuracies(name: str, statistics: Ints) -> Iterator[WordAccuracy]:
    """Yield the accuracy of the system `name` on each group that has words in the reference. `statistics`: as
    `word_statistics` returns them."""
    sums = statistics.sum(0)
    lasts = [edge - 1 for edge in FREQUENCY_EDGES[1:]]
    for first, last, (reference, hypothesis, matches), f1 in zip(
        FREQUENCY_EDGES, [*lasts, None], sums.tolist(), f1_scores(sums).tolist(), strict=True
    ):
        if reference:
            yield WordAccuracy(
                system=name,
                first=first,
                last=last,
                reference=reference,
                hypothesis=hypothesis,
                matches=matches,
                precision=100 * matches / max(1, hypothesis),
                recall=100 * matches / reference,
                f1=f1,
            )


def frequency_label(first: int, last: int | None) -> str:
    """The label of a group of frequencies, such as 5-9."""
    return f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"


# ---- actions -----------------------------------------------------------------------------------------------


class FrequencyAnalysis:
    help = "Precision, recall and F1 of words by their frequency in training, or in the reference."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser, source=False)
        parser.add_argument(
            "--train",
            type=InputPath,
            metavar="FILE",
            help="target side of the training text, or a vocabulary of nmt-vocab; default: the reference",
        )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        systems = load_systems(args)
        test = systems[0].test
        counts = read_target_counts(args.train, test) if args.train else reference_counts(test)
        accuracies = by_frequency(systems, counts)

        def draw(paths: Sequence[Path]) -> None:
            series = {
                system.name: [row.f1 for row in accuracies if row.system == system.name] for system in systems
            }
            # All systems have the same groups, those with words in the reference.
            labels = list(dict.fromkeys(frequency_label(row.first, row.last) for row in accuracies))
            title = args.title or f"words by frequency in {'training' if args.train else 'the reference'}"
            plots.bars(labels, series, {}, "F1", title, paths)

        table = record_table(WordAccuracy, accuracies, precision=".2f", recall=".2f", f1=".2f")
        return Findings(table, score_summary(systems), draw)


class NgramsAnalysis:
    help = "N-grams that the first system gets right and another does not, and vice versa."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser, source=False)
        add_settings(parser, NgramDifferenceConfig, "max_words", "count")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = load_systems(args, least=2)
        rows = different_ngrams(systems, parse_settings(NgramDifferenceConfig, args))
        return Findings(record_table(NgramDifference, rows, score=".4f"), score_summary(systems))


class DifferencesAnalysis:
    help = "The sentences whose scores differ most between two systems, and a histogram of the differences."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        add_settings(parser, DifferenceConfig, "metric", "count")
        comet.add_model(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        comet.check(args)
        first, second, *more = load_systems(args, least=2)
        if more:
            raise ConfigError(f"--hypothesis: {2 + len(more)} systems, expected two; name two files")
        comet.add_scores([first, second], args)
        rows = largest_differences(first, second, parse_settings(DifferenceConfig, args))
        groups = difference_histogram(first, second, args.metric)

        def draw(paths: Sequence[Path]) -> None:
            unit = ", in hundredths" if args.metric == "comet" else ""
            title = args.title or f"{args.metric} of {second.name} minus {args.metric} of {first.name}{unit}"
            plots.bars(list(groups), {"sentences": list(groups.values())}, {}, "sentences", title, paths)

        counts = [f"{name}: {count:,} sentences" for name, count in groups.items()]
        digits = ".4f" if args.metric == "comet" else ".2f"
        table = record_table(SentenceDifference, rows, difference=digits, first=digits, second=digits)
        return Findings(table, [*score_summary([first, second]), *counts], draw)
