"""Scores of sentences by their number of hard words, and of sentences without any. Words are hard if they are
unknown to a vocabulary, rare in the training text, or split into several subword units."""

import argparse
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis import plots
from nmt.analysis.actions import Findings, ResultTable, add_title, field_values
from nmt.analysis.buckets import MIN_SENTENCES, Curves, add_curves, by_count, by_side, curve_findings, lengths
from nmt.analysis.systems import SystemOutput, TestSet, add_systems, load_systems, score_summary
from nmt.cli.arguments import InputPath, integer, positive
from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.io import files
from nmt.runs import directory as run_directory
from nmt.text import subwords
from nmt.text.subwords.bpe import SEPARATOR
from nmt.text.vocab import HEADER, Vocab

log = logging.getLogger(__name__)

WORD_START = "\u2581"  # begins the first unit of a word in SentencePiece
TrainingCounts = Mapping[str, int]  # how often each word occurs in the training text
Counts = dict[str, list[int]]  # source, reference, both -> a number for each sentence


# ---- vocabularies ------------------------------------------------------------------------------------------


def add_vocabularies(parser: Parser, required: bool) -> None:
    parser.add_argument(
        "--vocabulary",
        type=InputPath,
        nargs="+",
        required=required,
        metavar="RUN_OR_FILE",
        help="a run directory, or two files of nmt-vocab: source, target",
    )


def read_vocabularies(paths: Sequence[str]) -> tuple[Vocab, Vocab]:
    """Load the vocabularies of source and target from the paths of --vocabulary.

    ConfigError for other paths, and for a run with subwords, which has no unknown words; CheckpointError for
    a directory that is not a run or is damaged, DataError for a file that is not a vocabulary.
    """
    if len(paths) == 2:
        return Vocab.load(paths[0]), Vocab.load(paths[1])
    run = Path(paths[0])
    if len(paths) > 2 or not run.is_dir():
        raise ConfigError(
            "--vocabulary: expected a run directory, or a source and a target vocabulary, found "
            f"{' '.join(paths)}"
        )
    run_directory.verify(run)
    if any(subwords.side_file(run, side) for side in ("source", "target")):
        raise ConfigError(
            f"{run}: its vocabularies hold subword units, which are never unknown; take --train for words "
            "unseen in training, by-segmented for words of several units, or word vocabularies of nmt-vocab"
        )
    return Vocab.load(run / "source.vocab"), Vocab.load(run / "target.vocab")


def check_vocabularies(paths: Sequence[str], vocabs: tuple[Vocab, Vocab], test: TestSet) -> None:
    """Check that vocabularies (source, target) and test set are tokenized and cased alike; see
    `check_coverage` for errors and warnings. `paths`: those of --vocabulary."""
    source, target = vocabs[0].ids, vocabs[1].ids
    names = paths if len(paths) == 2 else [f"{paths[0]}/{side}.vocab" for side in ("source", "target")]
    check_coverage(map(files.split_words, test.sources), source, target, names[0])
    check_coverage(map(files.split_words, test.references[0]), target, source, names[1])


# ---- training text -----------------------------------------------------------------------------------------


def add_training(parser: Parser, required: bool) -> None:
    parser.add_argument(
        "--train",
        type=InputPath,
        nargs=2,
        required=required,
        metavar="FILE",
        help="the training text, source and target, in the form of the test set; or files of nmt-vocab",
    )
    parser.add_argument(
        "--rare",
        type=integer(0),
        default=0,
        metavar="N",
        help="a word is rare if it occurs at most N times in the training text; 0: only unseen words",
    )


def read_training(paths: Sequence[str], test: TestSet) -> tuple[TrainingCounts, TrainingCounts]:
    """Count the words of the training text, source and target, and check that they match the test set; see
    `check_coverage` for errors and warnings. `paths`: those of --train."""
    source, target = (read_counts(path, test) for path in paths)
    check_coverage(test.source_words, source, target, paths[0])
    check_coverage(test.reference_words[0], target, source, paths[1])
    return source, target


def read_target_counts(path: str, test: TestSet) -> TrainingCounts:
    """Count the words of the training text's target side, and check that they match the references; see
    `check_coverage` for errors and warnings."""
    counts = read_counts(path, test)
    check_coverage(test.reference_words[0], counts, (), path)
    return counts


def read_counts(path: str | Path, test: TestSet) -> TrainingCounts:
    """Count the words of the text at `path`, split and cased as BLEU reads the test set; or load the counts
    if it is a vocabulary of nmt-vocab. DataError for a file that cannot be read."""
    if next(iter(files.preview(path)), "").startswith(HEADER):
        return match_case(Vocab.load(path).counts, test)
    return Counter(word for line in files.read_lines(path) for word in test.split(line))


def match_case(counts: TrainingCounts, test: TestSet) -> TrainingCounts:
    """If the test set is scored without case, lower-case the words and add up their counts."""
    if not test.lowercase:
        return counts
    lower_case: Counter[str] = Counter()
    for word, count in counts.items():
        lower_case[word.lower()] += count
    return lower_case


def rare_name(most: int) -> str:
    """The label of words that occur at most `most` times in the training text."""
    return f"seen at most {most} times" if most else "unseen"


# ---- coverage ----------------------------------------------------------------------------------------------
# Looking up the words of a text in a vocabulary means little unless both are tokenized and cased alike.


MIN_RUNNING_WORDS = 20  # a shorter text is not checked
SUSPICIOUS_SHARE = 0.02  # missing share of running words above which we look for the reason
MAX_MISSING_SHARE = 0.5  # missing share above which the text is refused if there is a likely reason
SUBWORD_SHARE = 0.05  # share of entries marked as subword units

WordCounts = Mapping[str, int]  # words of a text and how often each occurs


def word_parts(word: str) -> list[str]:
    """Split punctuation off both ends of a word."""
    return re.findall(r"^\W+|\w(?:.*\w)?|\W+$", word) or [word]


def missing_words(
    text: WordCounts, vocabulary: Collection[str], split: Callable[[str], Sequence[str]]
) -> float:
    """Count the running words outside the vocabulary, after `split`: word -> its parts. A missing part of a
    word counts as a fraction."""
    return sum(
        count * sum(part not in vocabulary for part in parts) / len(parts)
        for word, count in text.items()
        if (parts := split(word))
    )


def mismatch_reasons(
    text: WordCounts, vocabulary: Collection[str], other_side: Collection[str]
) -> dict[str, float]:
    """Possible reasons why words of a text are missing from `vocabulary` -> the number of running words that
    would still be missing without it. `other_side`: the vocabulary of the other language."""

    def missing(split: Callable[[str], Sequence[str]], words: Collection[str] = vocabulary) -> float:
        return missing_words(text, words, split)

    def whole(word: str) -> list[str]:
        return [word]

    lower_case = {word.lower() for word in vocabulary}
    return {
        "its words are lower-cased and the text is not: lower-case the text":
            missing(lambda word: [word.lower()]),
        "the text is lower-cased and its words are not: give the text as it was": missing(whole, lower_case),
        "the text is not tokenized as its words are: give it as nmt-tokenize writes it": missing(word_parts),
        "the text is neither tokenized nor lower-cased as its words are: see nmt-tokenize --lower":
            missing(lambda word: word_parts(word.lower())),
        "source and target are swapped": missing(whole, other_side),
    }  # fmt: skip


def likely_mismatch(
    text: WordCounts, vocabulary: Collection[str], other_side: Collection[str]
) -> tuple[float, str]:
    """Return the share of running words that are missing, and the likely reason; empty if there is none, or
    the share is below SUSPICIOUS_SHARE. Arguments as in `mismatch_reasons`.

    The best reason must explain half of the missing words. The likely reason is the first that explains
    nearly as many as the best one.
    """
    total, missing = sum(text.values()), missing_words(text, vocabulary, lambda word: [word])
    if missing < SUSPICIOUS_SHARE * total or not missing:
        return missing / total if total else 0.0, ""
    reasons = mismatch_reasons(text, vocabulary, other_side)
    fewest = min(reasons.values())
    if fewest > missing / 2:
        return missing / total, ""
    threshold = fewest + (missing - fewest) / 10
    return missing / total, next(reason for reason, number in reasons.items() if number <= threshold)


def is_subwords(words: Collection[str]) -> bool:
    """Whether these are subword units of BPE (`lower@@`) or SentencePiece (`\u2581case`)."""
    marked = sum(word.endswith(SEPARATOR) or word.startswith(WORD_START) for word in words)
    return marked > SUBWORD_SHARE * len(words)


def check_coverage(
    lines: Iterable[list[str]], vocabulary: Collection[str], other_side: Collection[str], name: str
) -> None:
    """Check that `lines`, split into words, are tokenized and cased like `vocabulary`, called `name` in
    messages. `other_side`: the vocabulary of the other language.

    ConfigError for subword units, and if most words of the text are missing for a reason that we recognize.
    If fewer are missing for such a reason, or most for none, log a warning. A text of fewer than
    MIN_RUNNING_WORDS words is not compared.
    """
    if is_subwords(vocabulary):
        raise ConfigError(
            f"{name}: holds subword units, but the text has words; make word vocabularies with nmt-vocab, or "
            "take by-rare or by-segmented"
        )
    text = Counter(word for words in lines for word in words)
    if text.total() < MIN_RUNNING_WORDS:
        return
    share, reason = likely_mismatch(text, vocabulary, other_side)
    problem = f"{name}: {share:.0%} of the running words of the text are not in it"
    if reason and share > MAX_MISSING_SHARE:
        raise ConfigError(f"{problem}; probably {reason}")
    if reason:
        log.warning("%s; probably %s", problem, reason)
    elif share > MAX_MISSING_SHARE:
        log.warning("%s: are both in one language, with the same tokenization and case?", problem)


# ---- unknown words -----------------------------------------------------------------------------------------


def unknown_words(test: TestSet, source: Vocab, target: Vocab) -> Counts:
    """Count the words outside the vocabularies in each source and its first reference; see `by_side`."""

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


MIN_LENGTH, MAX_LENGTH = 10, 20  # words of both sides, in the second half of van Merriënboer 2018, table 6.1


@dataclass
class SubsetScore:
    """The scores of a system on a subset of the test set."""

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
    """Select subsets like `subsets`, for any kind of hard words. `kind`: its name, for the names of subsets;
    `counts`: the number of hard words by side and sentence."""
    easy = np.array(counts["both"]) == 0
    sizes = lengths(test)
    shorter, longer = np.minimum(sizes["source"], sizes["reference"]), np.array(sizes["both"])
    medium = (shorter >= min_length) & (longer <= max_length)
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
    """Score each system on each subset, None for an empty one. `masks`: name -> which sentences are in it."""
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
    """Build a table with one row per subset and system."""
    columns = {"subset": "", "system": "", "sentences": "", "bleu": ".4f", "chrf": ".4f"}
    return ResultTable(columns | {"length_ratio": ".4f"}, field_values(scores))


# ---- rare words --------------------------------------------------------------------------------------------
# Unlike unknown words, rare words are defined for systems with subwords, too.


def rare_words(test: TestSet, source: TrainingCounts, target: TrainingCounts, most: int = 0) -> Counts:
    """Count the words that occur at most `most` times in training, by side and sentence; see `by_side`."""

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


def read_units(path: str, test: TestSet, tokenized: bool) -> tuple[list[list[str]], list[list[str]]] | None:
    """Split the sources and first references of a test set into the units of the run at `path`. `tokenized`:
    they are tokenized like its training text.

    None if the run does not split words: both vocabularies are of words, or its source language has no blanks
    between them. CheckpointError for a path that is not a run, or is damaged.
    """
    from nmt.runs.text import load_side, read_data

    run = Path(path)
    data = read_data(run)
    source, target = (load_side(run, side, data)[0] for side in ("source", "target"))
    if source.spaceless or not (source.subwords or target.subwords):
        return None
    return (
        list(map(source.for_text(tokenized).units, test.sources)),
        list(map(target.for_text(tokenized).units, test.references[0])),
    )


def segmented_words(units: Sequence[str]) -> int:
    """Count the words of a sentence that are split into several units.

    The units are those of BPE (`lower@@ case`) or of SentencePiece (`\u2581lower case`), where punctuation
    beside a word does not make it a split word.
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
    """Count, by side and sentence, the words split into several units, given the units of the sentences."""
    return by_side(list(map(segmented_words, source)), list(map(segmented_words, reference)))


# ---- actions -----------------------------------------------------------------------------------------------


def count_hard_words(
    args: argparse.Namespace, vocabs: tuple[Vocab, Vocab] | None, test: TestSet
) -> tuple[dict[str, Counts], TrainingCounts | None]:
    """Count each kind of hard words that --vocabulary and --train define, by side and sentence; see
    `check_coverage` for errors and warnings. `vocabs`: what --vocabulary names.

    Also returns the counts of the target words in the training text; None if no option provides them.
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
        for name, default in (("minimum", MIN_LENGTH), ("maximum", MAX_LENGTH)):
            parser.add_argument(
                f"--{name[:3]}-length",
                type=positive,
                default=default,
                metavar="N",
                help=f"middle group: {name} length of either side in words",
            )
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        if not args.vocabulary and not args.train:
            raise ConfigError("which words are hard? Give --vocabulary, or --train for systems with subwords")
        if args.min_length > args.max_length:
            raise ConfigError(
                f"--min-length: {args.min_length} is more than --max-length {args.max_length}; lower it"
            )
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
        add_curves(parser, "side whose unknown words are counted in a figure of several systems")

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
        add_curves(parser, "side whose rare words are counted in a figure of several systems")

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
        parser.add_argument(
            "--tokenized", action="store_true", help="the text is tokenized like the training text of the run"
        )
        add_curves(parser, "side whose words are counted in a figure of several systems")

    def run(self, args: argparse.Namespace) -> Findings:
        systems = load_systems(args)
        units = read_units(args.run, systems[0].test, args.tokenized)
        if units is None:
            raise ConfigError(f"{args.run}: does not split words; use by-unknown or by-rare")
        curves = by_segmented(systems, *units, args.least)
        x_label = "at most this many words of several units"
        return curve_findings(args, systems, curves, "segmented", x_label, "the side with more")
