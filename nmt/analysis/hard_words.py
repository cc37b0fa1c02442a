"""Words that are hard to translate: unknown to a vocabulary, rare in the training text, or cut into several
units; BLEU by their number, and sentences without any."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.buckets import LEAST, Curves, by_count, by_side, lengths
from nmt.analysis.systems import System, TestSet
from nmt.analysis.table import Table, fields_of, one_field
from nmt.config.settings import number
from nmt.errors import ConfigError
from nmt.io import files
from nmt.text.subwords.bpe import SEPARATOR
from nmt.text.vocab import HEADER, Vocab

# ---- unknown -----------------------------------------------------------------------------------------------
# BLEU by the number of unknown words (Fig. 6.4c), and of the subsets of Table 6.1.


MIN_LENGTH, MAX_LENGTH = 10, 20  # words of both sides in the second half of Table 6.1


def unknown_words(test: TestSet, source: Vocab, target: Vocab) -> dict[str, list[int]]:
    """Words outside the vocabularies in the source, in the first reference, and the larger of the two."""

    def missing(lines: Sequence[str], vocab: Vocab) -> list[int]:
        return [sum(word not in vocab.ids for word in files.split_words(line)) for line in lines]

    return by_side(missing(test.sources, source), missing(test.references[0], target))


def by_unknown(systems: Sequence[System], source: Vocab, target: Vocab, least: int = LEAST) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... unknown words:
    system -> source, reference, both -> buckets.

    `source` and `target` say which words are known. Buckets of fewer than `least` sentences are left out.
    """
    return by_count(systems, unknown_words(systems[0].test, source, target), least)


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
    """The rows of Table 6.1, as masks over the sentences: all; no unknown word in source and reference;
    `min_length` to `max_length` words on both sides; both conditions together."""
    return subsets_without("unknown", unknown_words(test, source, target), test, min_length, max_length)


def subsets_without(
    kind: str,
    counts: Mapping[str, Sequence[int]],
    test: TestSet,
    min_length: int = MIN_LENGTH,
    max_length: int = MAX_LENGTH,
) -> dict[str, NDArray[np.bool_]]:
    """As `subsets`, without words of any kind, counted by side and sentence."""
    known = np.array(counts["both"]) == 0
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
        "all": np.ones(len(known), bool),
        f"no {kind}": known,
        band: medium,
        f"{band}, no {kind}": known & medium,
    }


def score_subsets(systems: Sequence[System], masks: Mapping[str, NDArray[np.bool_]]) -> list[SubsetScore]:
    """One entry per subset and system; a subset without sentences has no scores."""
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


def subsets_table(scores: Iterable[SubsetScore]) -> Table:
    columns = {"subset": "", "system": "", "sentences": "", "bleu": ".4f", "chrf": ".4f"}
    return Table(columns | {"length_ratio": ".4f"}, fields_of(scores))


# ---- rare --------------------------------------------------------------------------------------------------
# BLEU by the number of words that the training text has rarely or never: also for systems with subwords,
# to which no word is unknown.


Counts = Mapping[str, int]  # how often the training text has each word


def read_counts(path: str | Path, test: TestSet) -> Counts:
    """How often each word occurs: in a text, whose words are counted as BLEU counts those of the test set, or
    by a file of nmt-vocab, which has words already."""
    if next(iter(files.preview(path)), "").startswith(HEADER):
        return cased_counts(Vocab.load(path).counts, test)
    return Counter(word for line in files.read_lines(path) for word in test.split(line))


def cased_counts(counts: Counts, test: TestSet) -> Counts:
    """Counts of words as the test set has them, which may not regard case."""
    if not test.lowercase:
        return counts
    lowered: Counter[str] = Counter()
    for word, count in counts.items():
        lowered[word.lower()] += count
    return lowered


def rare_words(test: TestSet, source: Counts, target: Counts, most: int = 0) -> dict[str, list[int]]:
    """Words that training has at most `most` times, in the source, in the first reference, and the larger of
    the two; sentence by sentence. 0: words that it never has."""

    def rare(lines: Sequence[Sequence[str]], counts: Counts) -> list[int]:
        return [sum(counts.get(word, 0) <= most for word in words) for words in lines]

    return by_side(rare(test.source_words, source), rare(test.reference_words[0], target))


def by_rare(
    systems: Sequence[System], source: Counts, target: Counts, most: int = 0, least: int = LEAST
) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... words that training has at most `most` times:
    system -> source, reference, both -> buckets.

    `source` and `target` are the counts of the training text. Buckets of fewer than `least` sentences are
    left out.
    """
    return by_count(systems, rare_words(systems[0].test, source, target, most), least)


# ---- segmented ---------------------------------------------------------------------------------------------
# BLEU by the number of words that a system's subwords cut into several units.


SPACE = "\u2581"  # before the first unit of a word, in SentencePiece's units


def segmented_words(units: Sequence[str]) -> int:
    """How many words of a sentence are cut into several units, of BPE (`lower@@ case`) or of SentencePiece
    (`\u2581lower case`), where the punctuation beside a word does not count."""
    if any(unit.startswith(SPACE) for unit in units):
        numbers = accumulate(unit.startswith(SPACE) for unit in units)
        sizes = Counter(n for n, unit in zip(numbers, units, strict=True) if any(map(str.isalnum, unit)))
    else:
        sizes = Counter(accumulate([False, *(not unit.endswith(SEPARATOR) for unit in units[:-1])]))
    return sum(size > 1 for size in sizes.values())


def by_segmented(
    systems: Sequence[System],
    source: Sequence[Sequence[str]],
    reference: Sequence[Sequence[str]],
    least: int = LEAST,
) -> Curves:
    """BLEU and chrF of all sentences with at most 0, 1, 2 ... words of several units: system -> source,
    reference, both -> buckets.

    `source` and `reference` hold the units of each sentence. Buckets of fewer than `least` sentences are left
    out.
    """
    return by_count(systems, segmented_sides(source, reference), least)


def segmented_sides(
    source: Sequence[Sequence[str]], reference: Sequence[Sequence[str]]
) -> dict[str, list[int]]:
    """Words of several units in the source, in the reference, and the larger of the two."""
    return by_side(list(map(segmented_words, source)), list(map(segmented_words, reference)))


# ---- samples -----------------------------------------------------------------------------------------------
# Translations to read (Table 6.2): long and short sentences without unknown words, with their reference, as
# each system translates them.


@dataclass
class SampleConfig:
    """Which sentences are shown."""

    count: int = number(5, least=1, help="sentences of each kind")
    long: int = number(30, least=1, help="long: more than N words on both sides")
    short: int = number(10, least=1, help="short: fewer than N words on both sides")
    seed: int = number(1, least=0, help="random seed of the choice")


@dataclass
class Sample:
    """One sentence of the test set, as every system translates it."""

    kind: str  # long | short
    line: int  # from 1
    words: int  # of the source
    source: str
    reference: str
    hypotheses: dict[str, str]  # by system
    chrf: dict[str, float]  # by system, 0 to 100, of this sentence alone


def sample_sentences(
    systems: Sequence[System], vocabs: tuple[Vocab, Vocab] | None, config: SampleConfig
) -> list[Sample]:
    """Random sentences of each kind, in the order of the text; the same `config.seed` draws the same ones.

    With vocabularies (source, target), only sentences without an unknown word.
    """
    test = systems[0].test
    by = lengths(test)
    shorter, longer = np.minimum(by["source"], by["reference"]), np.array(by["both"])
    usable = shorter > 0
    if vocabs:
        usable &= np.array(unknown_words(test, *vocabs)["both"]) == 0
    rng, found = np.random.default_rng(config.seed), []
    for kind, mask in (("long", shorter > config.long), ("short", longer < config.short)):
        rows = np.flatnonzero(usable & mask)
        for row in sorted(rng.permutation(rows)[: config.count].tolist()):
            alone = np.arange(len(usable)) == row
            found.append(
                Sample(
                    kind=kind,
                    line=row + 1,
                    words=by["source"][row],
                    source=test.sources[row],
                    reference=test.references[0][row],
                    hypotheses={system.name: system.hypotheses[row] for system in systems},
                    chrf={system.name: system.chrf(alone).score for system in systems},
                )
            )
    return found


def samples_table(found: Sequence[Sample]) -> Table:
    """For each sample the source, the reference, and each system's translation with its chrF."""
    columns = {"kind": "", "line": "", "words": "", "of": "", "chrf": ".2f", "text": ""}
    return Table(columns, (row for sample in found for row in sample_rows(sample)))


def sample_rows(sample: Sample) -> Iterator[list[object]]:
    head = [sample.kind, sample.line, sample.words]
    yield [*head, "source", None, one_field(sample.source)]
    yield [*head, "reference", None, one_field(sample.reference)]
    for name, text in sample.hypotheses.items():
        yield [*head, name, sample.chrf[name], one_field(text)]


# ---- coverage ----------------------------------------------------------------------------------------------
# Do a text and a list of words have the same form? Counting the words of one in the other means little
# otherwise.


log = logging.getLogger(__name__)

TOO_FEW_WORDS = 20  # running words: too few to judge by
SUSPICIOUS_SHARE = 0.02  # share of words that are missing
MOST_MISSING = 0.5  # with a larger share missing and a known reason, the words are refused
SUBWORD_SHARE = 0.05  # share of entries that are marked as subword units

WordCounts = Mapping[str, int]  # words of a text and how often each occurs


def lowercased(words: Iterable[str]) -> set[str]:
    return {word.lower() for word in words}


def word_parts(word: str) -> list[str]:
    """The word without the punctuation around it."""
    return re.findall(r"^\W+|\w(?:.*\w)?|\W+$", word) or [word]


def missing_share(text: WordCounts, known: Collection[str], split: Callable[[str], list[str]]) -> float:
    """Running words of a text, each made other ones by `split`, that are not known, in units of words."""
    return sum(
        count * sum(part not in known for part in found) / len(found)
        for word, count in text.items()
        if (found := split(word))
    )


def mismatch_reasons(
    text: WordCounts, known: Collection[str], others: Collection[str]
) -> Iterator[tuple[str, float]]:
    """What may be wrong, and how many running words would still be missing if it were put right."""
    found: list[tuple[str, Collection[str], Callable[[str], list[str]]]] = [
        (
            "its words are lower-cased and the text is not: lower-case the text",
            known,
            lambda word: [word.lower()],
        ),
        (
            "the text is lower-cased and its words are not: give the text as it was",
            lowercased(known),
            lambda word: [word],
        ),
        ("the text is not tokenized as its words are: give it as nmt-tokenize writes it", known, word_parts),
        (
            "the text is neither tokenized nor lower-cased as its words are: see nmt-tokenize --lower",
            known,
            lambda word: word_parts(word.lower()),
        ),
        ("source and target are exchanged", others, lambda word: [word]),
    ]
    for reason, words, split in found:
        yield reason, missing_share(text, words, split)


def likely_mismatch(text: WordCounts, known: Collection[str], others: Collection[str]) -> tuple[float, str]:
    """The share of running words that are missing, and why: the first reason that explains most of the words
    that any reason explains, if that is half of them; "" for none."""
    total, absent = sum(text.values()), missing_share(text, known, lambda word: [word])
    if absent < SUSPICIOUS_SHARE * total or not absent:
        return absent / total if total else 0.0, ""
    found = list(mismatch_reasons(text, known, others))
    fewest = min(left for _, left in found)
    if fewest > absent / 2:
        return absent / total, ""
    nearly = fewest + (absent - fewest) / 10
    return absent / total, next(reason for reason, left in found if left <= nearly)


def is_subwords(known: Collection[str]) -> bool:
    """Are these units of BPE (`lower@@`) or SentencePiece (`\u2581case`)?"""
    marked = sum(word.endswith("@@") or word.startswith("\u2581") for word in known)
    return marked > SUBWORD_SHARE * len(known)


def check_coverage(
    lines: Iterable[list[str]], known: Collection[str], others: Collection[str], name: str
) -> None:
    """Are the words of these lines of the same form as `known`, which `name` names?

    ConfigError for subword units, and for words of which most are missing in the text for a reason that we
    see; a warning where it is a smaller part, or where we see none. `others`: the words of the other side.
    """
    if is_subwords(known):
        raise ConfigError(
            f"{name}: holds subword units, but the text has words; make word vocabularies with nmt-vocab, or "
            "take by-rare or by-segmented"
        )
    text = Counter(word for words in lines for word in words)
    if text.total() < TOO_FEW_WORDS:
        return
    share, reason = likely_mismatch(text, known, others)
    says = f"{name}: {share:.0%} of the running words of the text are not in it"
    if reason and share > MOST_MISSING:
        raise ConfigError(f"{says}; probably {reason}")
    if reason:
        log.warning("%s; probably %s", says, reason)
    elif share > MOST_MISSING:
        log.warning("%s: are both of one language and form?", says)
