"""Truecasing by Moses' rules: a word at the start of a sentence gets the case that it has elsewhere; and its
inverse.

Follows train-truecaser.perl, truecase.perl and detruecase.perl of Moses rule by rule, so that models are
interchangeable. (sacremoses differs: it also changes known words inside a sentence.) Text is tokenized, with
or without Moses' escapes.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.io.numbers import shown

SENTENCE_END = frozenset(".:?!")
# A sentence starts at the word that follows.
DELAYED_START = frozenset(("(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"))

ROUNDED = 1e-6  # Moses writes 15 digits of its sums
# A word of one form with whole counts: most lines, which are read at once.
ONE_FORM = re.compile(r"([^ \t]+) \(([1-9][0-9]{0,14})/([1-9][0-9]{0,14})\)")

Forms = Mapping[str, float]  # a word in its different cases -> how often it was seen, the most frequent first


class Truecaser:
    """Restores the most frequent form of words at the start of a sentence and of unknown words."""

    def __init__(self, forms: Iterable[Forms] = ()) -> None:
        self.forms = [options for options in forms if options]

    @cached_property
    def best(self) -> dict[str, str]:
        """The most frequent form of each word in small letters."""
        return {first.lower(): first for first in map(next, map(iter, self.forms))}

    @cached_property
    def all_forms(self) -> frozenset[str]:
        return frozenset(word for options in self.forms for word in options)

    def apply(self, words: list[str]) -> list[str]:
        """`The man : The End .` -> `the man : the End .`"""
        return [
            word if word in self.all_forms and not first else self.best.get(word.lower(), word)
            for word, first in zip(words, sentence_starts(words), strict=True)
        ]

    def undo(self, words: list[str]) -> list[str]:
        """`" the man . he sleeps` -> `" The man . He sleeps`"""
        return [
            capital(word) if first else word
            for word, first in zip(words, sentence_starts(words), strict=True)
        ]

    def lines(self) -> Iterator[str]:
        """Format the model: `the (1234/1300) The (66)` lists the best form with its count and the count of
        all forms, then the other forms."""
        for options in sorted(self.forms, key=lambda options: next(iter(options)).lower()):
            best, *others = options
            total = sum(options.values())
            line = [f"{best} ({options[best]:.15g}/{total:.15g})"]
            yield " ".join([*line, *(f"{word} ({options[word]:.15g})" for word in others)])


class StoredTruecaser(Truecaser):
    """A model as the lines of its file, which are parsed when they are first needed; `undo` does not need
    them. DataError, when they are parsed, for a line that does not belong to a truecase model."""

    def __init__(self, lines: list[str], path: str | Path) -> None:
        self.stored, self.path = lines, path

    @cached_property
    def forms(self) -> list[Forms]:  # type: ignore[override]
        return [
            {match[1]: count}
            if (match := ONE_FORM.fullmatch(line)) and (count := float(match[2])) <= float(match[3])
            else parse_forms(line, f"{self.path}:{row}")
            for row, line in enumerate(self.stored, 1)
        ]


def capital(word: str) -> str:
    """Capitalize the first letter: `été` -> `Été`"""
    return word[:1].upper() + word[1:]


def sentence_starts(words: Iterable[str]) -> Iterator[bool]:
    """For each word, whether a sentence starts with it. After brackets and quotes at the start, the next word
    is still the start."""
    first = True
    for word in words:
        yield first
        first = word in SENTENCE_END or (first and word in DELAYED_START)


def learn(sentences: Iterable[list[str]]) -> Truecaser:
    """Learn a model from tokenized sentences. Words at the start of a sentence are no evidence and are not
    counted; of equally frequent forms the smaller string comes first."""
    counts: dict[str, Counter[str]] = {}
    for words in sentences:
        first = next((index for index, word in enumerate(words) if word not in DELAYED_START), len(words))
        for previous, word in zip(words[first:], words[first + 1 :], strict=False):
            if previous not in SENTENCE_END:
                counts.setdefault(word.lower(), Counter())[word] += 1
    return Truecaser(
        [dict(sorted(forms.items(), key=lambda item: (-item[1], item[0]))) for forms in counts.values()]
    )


def load(path: str | Path, may_be_empty: bool = False) -> Truecaser:
    """Load a truecase model of nmt or of Moses. DataError for any other file. `may_be_empty`: for the model
    of a run, whose text may have no word inside a sentence; its lines, whose checksum is known, are parsed
    when they are first needed, and only then is a malformed one a DataError."""
    model = StoredTruecaser(list(files.read_lines(path)), path)
    if not may_be_empty and not model.best:
        raise DataError(f"{path}: has no words; expected a truecase model, as nmt-truecase train writes it")
    return model


def parse_forms(line: str, location: str) -> dict[str, float]:
    """Parse a line of Moses' format into the count of each form. `location`: `file:line` for messages.
    DataError unless it lists forms of one word with their counts, which must not exceed the total."""
    fields = files.split_words(line)
    words, counts = fields[::2], fields[1::2]
    try:
        if not words or len(words) != len(counts):
            raise ValueError
        values = [parse_count(count) for count in counts]
    except ValueError as error:
        raise DataError(
            f"{location}: expected forms of a word with their counts, such as 'the (12/13) The (1)', found "
            f"{shown(line)}; is this a truecase model?"
        ) from error
    seen = sum(count for count, _ in values)
    if len(set(words)) < len(words) or seen > min(total for _, total in values) * (1 + ROUNDED):
        raise DataError(
            f"{location}: impossible counts: {shown(line)} has a form twice, or counts that exceed the "
            "total after the slash; is this a truecase model?"
        )
    return {word: count for word, (count, _) in zip(words, values, strict=True)}


def parse_count(field: str) -> tuple[float, float]:
    """Parse `(12/13)` as the count 12 and the total 13, and `(12)` as 12 and infinity. Counts may be
    fractions: the first word of a sentence may count as a tenth (--possiblyUseFirstToken). ValueError for
    anything else."""
    if not (field.startswith("(") and field.endswith(")")):
        raise ValueError
    count, slash, total = field[1:-1].partition("/")
    value = numbers.real(count), numbers.real(total) if slash else math.inf
    if value[0] <= 0:
        raise ValueError
    return value


def save(truecaser: Truecaser, path: str | Path) -> None:
    """Write the file that `load` reads. UserError if that fails."""
    files.write_text(path, truecaser.lines())


# ---- lines of files ----------------------------------------------------------------------------------------

MARKUP = re.compile(r"(<[^ \t][^>]*>)")


def pieces(line: str) -> list[str]:
    """Split a line into text, tag, text ...; tags are the markup of smt-decode's --xml-input."""
    end = line.rfind(">") + 1  # after it there is no tag to search for
    parts = MARKUP.split(line[:end])
    parts[-1] += line[end:]
    return parts


def plain_words(line: str) -> list[str]:
    """The words of a line without its tags."""
    return [word for text in pieces(line)[::2] for word in files.split_words(text)]


def apply_to_line(truecaser: Truecaser, line: str) -> str:
    """Truecase a line; tags, factors after a `|` and blanks stay as they are."""
    cased = iter(truecaser.apply([surface_form(word) for word in plain_words(line)]))
    parts = pieces(line)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(
            r"[^ \t]+", lambda match: next(cased) + match[0][len(surface_form(match[0])) :], parts[index]
        )
    return "".join(parts)


def surface_form(word: str) -> str:
    """A word without its factors: `haus|NN` -> `haus`"""
    return word.partition("|")[0] or word
