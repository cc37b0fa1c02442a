"""N-grams that one system gets right and another does not, as in compare-mt (Neubig et al. 2019)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from nmt.analysis.systems import System
from nmt.analysis.table import Table, fields_of
from nmt.settings import number

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


def table(found: Iterable[NgramDifference]) -> Table:
    columns = {"better": "", "worse": "", "ngram": "", "words": "", "reference": "", "matches": ""}
    return Table(columns | {"others": "", "score": ".4f"}, fields_of(found))
