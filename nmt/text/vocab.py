"""Vocabularies: words with ids by frequency. The file keeps the counts of all training words, also of those
without an id."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.io.numbers import shown

# <s> means "no previous word"; </s> ends a sentence. Text never yields either of them.
BOS, EOS, UNK = 0, 1, 2
SPECIALS = ["<s>", "</s>", "<unk>"]
HEADER = "#version: 1 vocabulary"


class Vocab:
    """The `size` most frequent words of `counts` that occur at least `min_count` times. Ties go to the
    smaller string, so that the same text gives the same ids. The ids of SPECIALS come first, then those of
    tags, which are not stored in the file, then those of words."""

    def __init__(
        self, counts: dict[str, int], size: int, min_count: int = 1, tags: Sequence[str] = ()
    ) -> None:
        self.first = len(SPECIALS) + len(tags)  # id of the first word
        usable = {word: count for word, count in counts.items() if word not in SPECIALS and word not in tags}
        self.counts = dict(sorted(usable.items(), key=lambda item: (-item[1], item[0])))
        frequent = [word for word, count in self.counts.items() if count >= min_count][:size]
        self.words = [*SPECIALS, *tags, *frequent]
        self.ids = {word: rank for rank, word in enumerate(self.words) if rank >= len(SPECIALS)}

    def __len__(self) -> int:
        """Number of ids, the three specials and the tags included."""
        return len(self.words)

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Vocab) and self.words == value.words and self.counts == value.counts

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def count(lines: Iterable[list[str]], size: int, min_count: int = 1) -> "Vocab":
        """Build the vocabulary of a text, given as the words of each line: the `size` most frequent words
        that occur at least `min_count` times."""
        return Vocab(Counter(itertools.chain.from_iterable(lines)), size, min_count)

    def encode(self, words: Sequence[str]) -> list[int]:
        """Map words to ids; words without an id become UNK."""
        get = self.ids.get
        return [get(word, UNK) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Map ids back to words, tags and SPECIALS."""
        return [self.words[index] for index in ids]

    @property
    def word_count(self) -> int:
        """Number of words that have an id, without the specials and the tags."""
        return len(self.words) - self.first

    def with_tags(self, tags: Sequence[str]) -> "Vocab":
        """A vocabulary of the same words plus tags, which get ids of their own."""
        return Vocab(self.counts, self.word_count, 0, tags) if tags else self

    def coverage(self) -> float:
        """Share of the running words of the training text that have an id; 0 without words."""
        total = sum(self.counts.values())
        return sum(self.counts[word] for word in self.words[self.first :]) / total if total else 0.0

    def save(self, path: str | Path) -> None:
        """Write all words with their counts, `word<TAB>count`, below a header with the number of those that
        have an id. UserError if that fails."""
        lines = (f"{word}\t{count}" for word, count in self.counts.items())
        files.write_text(path, [f"{HEADER} size={self.word_count}", *lines])

    @staticmethod
    def load(path: str | Path) -> "Vocab":
        """Load a vocabulary written by `save`, or by subword-nmt (`--write-vocabulary`), of which each unit
        gets an id. DataError for a file that cannot be read, is damaged, or of another kind."""
        lines = files.read_lines(path)
        first_line = next(lines, "")
        if parse_entry(first_line, " "):
            counts = read_counts(itertools.chain([first_line], lines), path, 1, " ", "'unit count'")
            return Vocab(counts, len(counts), 0)
        if first_line.split("\t")[0] in SPECIALS:
            raise DataError(
                f"{path}: is a list of SentencePiece's units, without counts; give its model as codes, which "
                "makes the vocabulary"
            )
        size = files.promised_size(first_line, HEADER, path)
        counts = read_counts(lines, path, 2, "\t", "'word<TAB>count'")
        if size > len(counts):
            raise DataError(
                f"{path}: {numbers.counted(len(counts), 'word')}, but its first line promises {size:,}; "
                "was it copied whole?"
            )
        return Vocab(counts, size, 0)


def read_counts(
    lines: Iterable[str], path: str | Path, first: int, separator: str, form: str
) -> dict[str, int]:
    """Parse words and their counts from the lines of a file. `first`: the number of the first line;
    `separator`: between word and count; `form`: what messages say is expected. DataError, which names `path`,
    for a malformed line, and for a word that occurs twice."""
    counts: dict[str, int] = {}
    for number, line in enumerate(lines, first):
        entry = parse_entry(line, separator)
        if entry is None:
            raise DataError(f"{path}:{number}: expected {form}, found {shown(line)}")
        word, count = entry
        if word in counts:
            raise DataError(f"{path}:{number}: {shown(word)} occurs twice; remove one of the lines")
        counts[word] = count
    return counts


def parse_entry(line: str, separator: str) -> tuple[str, int] | None:
    """Parse a line into word and count; None if it is malformed. With a blank as `separator` the word may
    contain no other blank."""
    word, matched_separator, count = line.rpartition(separator)
    if not matched_separator or (separator == " " and " " in word):
        return None
    try:
        return word, numbers.count(count)
    except ValueError:
        return None
