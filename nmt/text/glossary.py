"""Translations of words: a user's terms, which must be translated as the glossary says, and word translation
tables.

# source TAB target; lines that begin with # and empty lines are skipped
heat pump	pompe à chaleur
Acme Inc.	Acme Inc.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import shown
from nmt.text import truecase
from nmt.text.vocab import Vocab

# ---- glossary ----------------------------------------------------------------------------------------------

Words = tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """The translation of a term."""

    words: list[str]  # as the system writes them
    raw: str  # as the user wrote it
    location: str = field(default="", compare=False)  # file:line, for messages


@dataclass(frozen=True)
class Match:
    """A term in a sentence, from its first word to the one before `end`."""

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
        """The terms of a sentence, which do not overlap: the longest first, of equally long ones the first.
        `starts`: where sentences begin; there a capital letter matches a small one."""
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
        """The term that these words are, if they are one."""
        exact = self.terms.get(tuple(words))
        if exact or not start:
            return exact
        return self.terms.get((words[0][:1].lower() + words[0][1:], *words[1:]))


NOTHING = Glossary({})


def read(path: str, source: Callable[[str], list[Words]], target: Callable[[str], list[str]]) -> Glossary:
    """The glossary of a file. `source`: the ways in which a term may stand in a sentence; `target`: a
    translation as the system writes it.

    DataError with the line for one without a term or translation, and for a term with two translations.
    """
    return of_rows(rows_of(path), source, target)


def of_rows(
    rows: Iterable[tuple[str, str, str]],
    source: Callable[[str], list[Words]],
    target: Callable[[str], list[str]],
) -> Glossary:
    """Make a glossary of rows (file:line, term, translation). DataError for terms that contradict each
    other."""
    terms = dict[Words, Term]()
    for location, source_term, target_term in rows:
        term, ways = Term(target(target_term), target_term, location), source(source_term)
        if not term.words or not any(ways):
            raise DataError(f"{location}: {shown(source_term)}: one side has no words")
        for way in ways:
            earlier = terms.setdefault(way, term)
            if earlier.raw != term.raw:
                raise DataError(
                    f"{location}: {shown(source_term)} is {shown(term.raw)} here, but {shown(earlier.raw)} "
                    f"in {earlier.location}; leave one of them"
                )
    return Glossary(terms)


def rows_of(path: str) -> Iterator[tuple[str, str, str]]:
    """file:line, term and translation of the rows of a file. DataError for a line of another form."""
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


def of_words(path: str) -> Glossary:
    """A glossary of tokenized text."""
    return read(path, lambda term: [tuple(files.split_words(term))], files.split_words)


def starts_of(words: Sequence[str]) -> list[bool]:
    """Where sentences begin in tokenized text."""
    return list(truecase.sentence_starts(words))


def ways(term: str, split: Callable[[str], list[str]]) -> list[Words]:
    """The words of a term by itself, and inside of a sentence: a tokenizer looks at the words around it."""
    splits = {tuple(split(term))}
    if not term.replace(" ", "").isalnum():
        inside = split(f"x {term} x")
        if inside[:1] == inside[-1:] == ["x"]:
            splits.add(tuple(inside[1:-1]))
    return sorted(splits)


# ---- lexicon -----------------------------------------------------------------------------------------------
# Word translation tables: Moses' lex.f2e (`target source p(target | source)`), or a dictionary of lines
# `source target`.

NULL = "NULL"  # Moses' empty word


@dataclass
class Lexicon:
    """For each source word its translations, the likeliest first."""

    translations: dict[str, list[str]]

    @staticmethod
    def load(path: str | Path, most: int = 50) -> "Lexicon":
        """Read the `most` likeliest translations of each word. DataError for a line of another form."""
        entries_by_word: dict[str, list[tuple[float, str]]] = {}
        for number, line in enumerate(files.read_lines(path), 1):
            parts = files.split_words(line)
            try:
                if len(parts) == 3:
                    target, source, value = parts[0], parts[1], float(parts[2])
                elif len(parts) == 2:
                    source, target, value = parts[0], parts[1], 1.0
                else:
                    raise ValueError
            except ValueError as error:
                raise DataError(
                    f"{path}:{number}: expected 'target source probability' or 'source target', found "
                    f"{line[:60]!r}"
                ) from error
            if NULL not in (source, target):
                entries_by_word.setdefault(source, []).append((-value, target))
        if not entries_by_word:
            raise DataError(f"{path}: no entry; expected lines 'target source probability' (Moses' lex.f2e)")
        return Lexicon(
            {
                source: [target for _, target in sorted(entries)[:most]]
                for source, entries in entries_by_word.items()
            }
        )

    def best(self, word: str) -> str:
        """The likeliest translation, or the word itself."""
        return self.translations.get(word, [word])[0]

    def candidates(self, words: Iterable[str]) -> set[str]:
        """All translations of some words."""
        return {target for word in words for target in self.translations.get(word, [])}


def shortlist(lexicon: Lexicon, source: Sequence[str], vocab: Vocab, frequent: int) -> set[int]:
    """The ids of the words that may translate a sentence: the lexicon's, and the `frequent` most frequent
    words of the vocabulary."""
    candidates = {vocab.ids[word] for word in lexicon.candidates(source) if word in vocab.ids}
    return candidates | set(range(min(len(vocab), frequent + 3)))  # the specials are the first three
