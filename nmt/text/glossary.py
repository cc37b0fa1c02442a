"""Glossaries: a user's terms, which must be translated as the glossary says.

A file has a term, a tab and its translation on each line; empty lines and lines that begin with # are
skipped:

    # products
    heat pump	pompe à chaleur
    Acme Inc.	Acme Inc.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import shown
from nmt.text import truecase

Words = tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """The translation of a term, and where the user gave it."""

    words: list[str]  # split as the system writes words, or into units
    raw: str  # as the user wrote it
    location: str = field(default="", compare=False)  # file:line, for messages


@dataclass(frozen=True)
class Match:
    """An occurrence of a term in a sentence: from its first word to the word before `end`."""

    start: int
    end: int
    term: Term


class Glossary:
    """Terms by their source words."""

    def __init__(self, terms: dict[Words, Term]) -> None:
        self.terms = terms
        self.sizes = sorted({len(words) for words in terms}, reverse=True)
        self.longest = max(self.sizes, default=0)

    def find(self, words: Sequence[str], starts: Sequence[bool]) -> list[Match]:
        """Occurrences of terms in a sentence. They do not overlap: the longest wins, and of equally long ones
        the first. `starts`: whether a sentence begins at each word; there a capital letter also matches a
        lower-case term."""
        matches = [
            Match(start, start + size, term)
            for size in self.sizes
            for start in range(len(words) - size + 1)
            if (term := self.term(words[start : start + size], starts[start]))
        ]
        free, chosen = [True] * len(words), list[Match]()
        for match in matches:
            if all(free[match.start : match.end]):
                free[match.start : match.end] = [False] * (match.end - match.start)
                chosen.append(match)
        return sorted(chosen, key=lambda match: match.start)

    def term(self, words: Sequence[str], start: bool) -> Term | None:
        """The term that consists of exactly these words; None if there is none."""
        exact = self.terms.get(tuple(words))
        if exact or not start:
            return exact
        return self.terms.get((words[0][:1].lower() + words[0][1:], *words[1:]))


NOTHING = Glossary({})


def from_rows(
    rows: Iterable[tuple[str, str, str]],
    source: Callable[[str], list[Words]],
    target: Callable[[str], list[str]],
) -> Glossary:
    """Build a glossary from rows (file:line, term, translation). `source` returns the forms that a term may
    have inside a sentence, as words; `target` splits a translation into words of the system. DataError for a
    term or translation without words, and for a term with two translations."""
    terms = dict[Words, Term]()
    for location, source_term, target_term in rows:
        term, variants = Term(target(target_term), target_term, location), source(source_term)
        if not term.words or not any(variants):
            raise DataError(
                f"{location}: {shown(source_term)}: one side has no words; remove the line, or complete it"
            )
        for variant in variants:
            earlier = terms.setdefault(variant, term)
            if earlier.raw != term.raw:
                raise DataError(
                    f"{location}: {shown(source_term)} is {shown(term.raw)} here, but {shown(earlier.raw)} "
                    f"in {earlier.location}; leave one of them"
                )
    return Glossary(terms)


def read_rows(path: str) -> Iterator[tuple[str, str, str]]:
    """Yield file:line, term and translation of each entry. DataError for a malformed line."""
    for number, line in enumerate(files.read_lines(path), 1):
        location = f"{files.name_of(path)}:{number}"
        if not line.startswith("#") and line.strip():
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 2 or not all(columns):
                raise DataError(
                    f"{location}: {shown(line)}: expected a term, a tab and its translation; a comment "
                    "begins with #"
                )
            yield location, columns[0], columns[1]


def read_phrases(path: str) -> list[str]:
    """Read phrases, one a line; empty lines and lines that begin with # are skipped."""
    return [line for line in files.read_lines(path) if line.strip() and not line.startswith("#")]


def split_phrases(line: str) -> list[str]:
    """The phrases between the tabs of a line."""
    return [field for field in line.split("\t") if field.strip(" ")]


def read_tokenized(path: str) -> Glossary:
    """Read a glossary of tokenized text. DataError as from `read_rows` and `from_rows`."""
    return from_rows(read_rows(path), lambda term: [tuple(files.split_words(term))], files.split_words)


def sentence_starts(words: Sequence[str]) -> list[bool]:
    """For each word of tokenized text, whether a sentence begins with it."""
    return list(truecase.sentence_starts(words))


def tokenizations(term: str, split: Callable[[str], list[str]]) -> list[Words]:
    """The tokenizations of a term alone and inside a sentence; they can differ, because a tokenizer considers
    neighboring words. `split`: the tokenizer."""
    splits = {tuple(split(term))}
    if not term.replace(" ", "").isalnum():
        inside = split(f"x {term} x")
        if inside[:1] == inside[-1:] == ["x"]:
            splits.add(tuple(inside[1:-1]))
    return sorted(splits)
