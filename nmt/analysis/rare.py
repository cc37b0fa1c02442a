"""BLEU by the number of words that the training text has rarely or never: also for systems with subwords,
to which no word is unknown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt import files
from nmt.analysis.buckets import LEAST, Curves, by_count, by_side
from nmt.analysis.systems import System, TestSet
from nmt.text.vocab import HEADER, Vocab

Counts = Mapping[str, int]  # how often the training text has each word


def read_counts(path: str | Path, test: TestSet) -> Counts:
    """How often each word occurs: in a text, whose words are counted as BLEU counts those of the test set, or
    by a file of nmt-vocab, which has words already."""
    if next(iter(files.preview(path)), "").startswith(HEADER):
        return cased(Vocab.load(path).counts, test)
    return Counter(word for line in files.read_lines(path) for word in test.split(line))


def cased(counts: Counts, test: TestSet) -> Counts:
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
