"""Where systems differ: sentences, n-grams, words by their frequency."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.statistics import Floats, bleu_of
from nmt.analysis.systems import System, TestSet
from nmt.analysis.table import Table, fields_of, one_field
from nmt.config.settings import choice, number

# ---- differences -------------------------------------------------------------------------------------------


BAR_WIDTH = 10  # points of BLEU or chrF, the width of a bar of the histogram


@dataclass
class DifferenceConfig:
    """What is compared, and how much of it is listed."""

    metric: str = choice("chrf", "bleu", help="score of single sentences: chrF, or BLEU of effective order")
    count: int = number(10, least=1, help="sentences of each direction")


@dataclass
class SentenceDifference:
    """A sentence that two systems translate differently well."""

    line: int  # from 1
    difference: float  # score of the second minus score of the first
    first: float  # 0 to 100
    second: float  # 0 to 100
    source: str
    reference: str
    first_text: str
    second_text: str


def sentence_scores(system: System, metric: str) -> Floats:
    """chrF, or BLEU of effective order, of each sentence alone, 0 to 100; both equal sacreBLEU's."""
    if metric == "bleu":
        return bleu_of(system.bleu_statistics.rows, effective_order=True)
    return np.array(system.chrf_statistics.by_sentence())


def largest_differences(first: System, second: System, config: DifferenceConfig) -> list[SentenceDifference]:
    """The sentences that the second system translates best compared with the first, the largest difference
    first, then those that the first translates best; equal ones in the order of the text."""
    scores = [sentence_scores(system, config.metric) for system in (first, second)]
    gains = (scores[1] - scores[0]).round(9)
    order = np.argsort(-gains, kind="stable")
    better = order[gains[order] > 0][: config.count]
    order = np.argsort(gains, kind="stable")
    worse = order[gains[order] < 0][: config.count]
    test = first.test
    return [
        SentenceDifference(
            line=row + 1,
            difference=float(gains[row]),
            first=float(scores[0][row]),
            second=float(scores[1][row]),
            source=one_field(test.sources[row]),
            reference=one_field(test.references[0][row]),
            first_text=one_field(first.hypotheses[row]),
            second_text=one_field(second.hypotheses[row]),
        )
        for row in [*better.tolist(), *worse.tolist()]
    ]


def difference_histogram(first: System, second: System, metric: str) -> dict[str, int]:
    """How many sentences have a difference (second minus first) of each size: groups of `STEP` points, and
    one of equal scores; from the smallest that occurs to the largest, equal ones always."""
    gains = (sentence_scores(second, metric) - sentence_scores(first, metric)).round(9)
    groups = (np.sign(gains) * np.ceil(np.abs(gains) / BAR_WIDTH)).astype(np.int64)
    return {
        group_name(group): int((groups == group).sum())
        for group in range(min(groups.min(initial=0), 0), max(groups.max(initial=0), 0) + 1)
    }


def group_name(group: int) -> str:
    """The differences of a group: -20 to -10, equal, 0 to 10."""
    if not group:
        return "equal"
    low, high = sorted((group * BAR_WIDTH, (group - (1 if group > 0 else -1)) * BAR_WIDTH))
    return f"{low} to {high}"


def differences_table(found: Iterable[SentenceDifference]) -> Table:
    columns = {"line": "", "difference": ".2f", "first": ".2f", "second": ".2f"}
    texts = {"source": "", "reference": "", "first_text": "", "second_text": ""}
    return Table(columns | texts, fields_of(found))


# ---- ngrams ------------------------------------------------------------------------------------------------
# N-grams that one system gets right and another does not, as in compare-mt (Neubig et al. 2019).


Ngram = tuple[str, ...]


@dataclass
class NgramConfig:
    """Which n-grams are listed."""

    max_words: int = number(4, least=1, most=20, help="longest n-grams, in words")
    count: int = number(20, least=1, help="n-grams of each direction")


@dataclass
class NgramDifference:
    """An n-gram of the references that one system has right more often than the other."""

    better: str  # the system
    worse: str
    ngram: str
    words: int
    reference: int  # how often the references have it; of several, each sentence's largest count
    matches: int  # how often it is right in the better system's translations
    others: int  # and in the other's
    score: float  # 0.5 to 1: (matches + 1) / (matches + others + 2)


def ngrams(words: Sequence[str], longest: int) -> Counter[Ngram]:
    """How often a sentence has each n-gram of up to `longest` words."""
    return Counter(
        tuple(words[start : start + size])
        for size in range(1, longest + 1)
        for start in range(len(words) - size + 1)
    )


def reference_ngrams(systems: Sequence[System], longest: int) -> list[Counter[Ngram]]:
    """The n-grams of each sentence's references; of several references the largest count."""
    found = []
    for references in zip(*systems[0].test.reference_words, strict=True):
        first, *others = (ngrams(words, longest) for words in references)
        for other in others:
            first |= other
        found.append(first)
    return found


def matches(system: System, references: Sequence[Counter[Ngram]], longest: int) -> Counter[Ngram]:
    """How often each n-gram is right, as BLEU counts matches."""
    found: Counter[Ngram] = Counter()
    for words, reference in zip(system.words, references, strict=True):
        found.update(ngrams(words, longest) & reference)
    return found


def different_ngrams(systems: Sequence[System], config: NgramConfig) -> list[NgramDifference]:
    """The n-grams that tell the first system most from each other one: those that the first has right, then
    those that the other has. A part of a listed n-gram that is right as often is not listed."""
    references = reference_ngrams(systems, config.max_words)
    total: Counter[Ngram] = Counter()
    for reference in references:
        total.update(reference)
    right = [matches(system, references, config.max_words) for system in systems]
    first, *others = zip(systems, right, strict=True)
    return [
        found
        for other in others
        for better, worse in ((first, other), (other, first))
        for found in most_different(better, worse, total, config.count)
    ]


def most_different(
    better: tuple[System, Counter[Ngram]],
    worse: tuple[System, Counter[Ngram]],
    total: Counter[Ngram],
    count: int,
) -> list[NgramDifference]:
    (system, ours), (other, theirs) = better, worse

    def score(ngram: Ngram) -> float:
        return (ours[ngram] + 1) / (ours[ngram] + theirs[ngram] + 2)

    wins = [ngram for ngram, matched in ours.items() if matched > theirs[ngram]]
    order = sorted(wins, key=lambda ngram: (-score(ngram), -ours[ngram], -len(ngram), ngram))
    return [
        NgramDifference(
            better=system.name,
            worse=other.name,
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
    """N-grams without those that are a part of an earlier one and have the same counts."""
    parts: set[tuple[Ngram, int, int]] = set()
    for ngram in order:
        counts = ours[ngram], theirs[ngram]
        if (ngram, *counts) not in parts:
            yield ngram
            parts |= {(part, *counts) for part in ngrams(ngram, len(ngram))}


def ngrams_table(found: Iterable[NgramDifference]) -> Table:
    columns = {"better": "", "worse": "", "ngram": "", "words": "", "reference": "", "matches": ""}
    return Table(columns | {"others": "", "score": ".4f"}, fields_of(found))


# ---- frequency ---------------------------------------------------------------------------------------------
# How well are frequent and rare words translated? Precision, recall and F1 of words by their frequency, as
# in compare-mt (Neubig et al. 2019).


FREQUENCY_EDGES = (0, 1, 2, 5, 10, 100, 1000)  # the smallest frequency of each group

Ints = NDArray[np.int64]


@dataclass
class WordAccuracy:
    """One system's translation of the words of one group. A word is right as often as both the translation
    and the first reference have it."""

    system: str
    first: int  # frequencies of the group
    last: int | None  # None: no bound
    reference: int  # words of the group in the first reference
    hypothesis: int  # and in the translations
    matches: int
    precision: float  # 0 to 100
    recall: float  # 0 to 100
    f1: float  # 0 to 100


def reference_counts(test: TestSet) -> Counter[str]:
    """How often the first reference has each word: where nothing is known of the training text."""
    return Counter(word for words in test.reference_words[0] for word in words)


def word_statistics(system: System, counts: Mapping[str, int]) -> Ints:
    """Words in the reference, in the translation, and in both, by sentence and group: (sentences, groups,
    3)."""
    references = system.test.reference_words[0]
    found = np.zeros((len(references), len(FREQUENCY_EDGES), 3), np.int64)
    groups: dict[str, int] = {}
    for row, (hypothesis, reference) in enumerate(zip(system.words, references, strict=True)):
        ours, theirs = Counter(hypothesis), Counter(reference)
        for word in ours.keys() | theirs.keys():
            group = groups.get(word)
            if group is None:
                group = groups[word] = bisect_right(FREQUENCY_EDGES, counts.get(word, 0)) - 1
            found[row, group] += theirs[word], ours[word], min(ours[word], theirs[word])
    return found


def f1_of(sums: NDArray[np.generic]) -> Floats:
    """F1, 0 to 100, of sums (..., 3) of words in the reference, in the translation, and in both."""
    numbers = np.asarray(sums, np.float64)
    return 200 * numbers[..., 2] / np.maximum(numbers[..., 0] + numbers[..., 1], 1)


def by_frequency(systems: Sequence[System], counts: Mapping[str, int]) -> list[WordAccuracy]:
    """The accuracy of each system on the words of each group of frequencies in `counts`, which are those of
    the training text, or of the reference; groups without words in the reference are left out."""
    return [found for system in systems for found in accuracies(system.name, word_statistics(system, counts))]


def accuracies(name: str, statistics: Ints) -> Iterator[WordAccuracy]:
    sums = statistics.sum(0)
    lasts = [edge - 1 for edge in FREQUENCY_EDGES[1:]]
    for first, last, (reference, hypothesis, matches), f1 in zip(
        FREQUENCY_EDGES, [*lasts, None], sums.tolist(), f1_of(sums).tolist(), strict=True
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
    """The frequencies of a group: 5-9."""
    return f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"


def frequency_table(found: Iterable[WordAccuracy]) -> Table:
    columns = {"system": "", "first": "", "last": "", "reference": "", "hypothesis": "", "matches": ""}
    return Table(columns | {"precision": ".2f", "recall": ".2f", "f1": ".2f"}, fields_of(found))
