"""Read a word-aligned corpus in blocks of sentences, with words as numbers.

Numbers follow the byte order of word + blank, and the end of a phrase has the number of the word `|||`, so
that phrases sort like the lines of a table under LC_ALL=C. Number 0 is padding, or the word NULL of lexical
weights.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.io import files
from smt_bridge.extraction.packed_corpus import Int32s, Int64s

END = "|||"


class SideVocab:
    """Vocabulary of one side of the corpus. Word 0 is padding or NULL, and END is one of the words."""

    def __init__(self, words: set[str]) -> None:
        self.words = ["", *sorted((*words, END), key=lambda word: f"{word} ".encode())]
        self.ids = {word: number for number, word in enumerate(self.words)}
        self.end = self.ids[END]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def bits(self) -> int:
        """Bits of a word number in a packed key."""
        return max(4, len(self.words).bit_length())


@dataclass
class CorpusSurvey:
    """Vocabularies and sizes of the corpus, from a first reading."""

    source: SideVocab
    target: SideVocab
    pairs: int  # of sentences
    tokens: int  # of both sides


@dataclass
class SentenceBlock:
    """Concatenated sentence pairs.

    Pair i has the words source[source_cut[i] : source_cut[i + 1]] and the links points[point_cut[i] :
    point_cut[i + 1]].
    """

    source: Int32s
    source_cut: Int64s
    target: Int32s
    target_cut: Int64s
    points: Int32s  # (P, 2): positions of the source and the target word in their sentences
    point_cut: Int64s


@dataclass
class WordCounts:
    """Distinct words of both sides of some sentence pairs, and numbers of pairs and words."""

    sides: tuple[set[str], set[str]]
    pairs: int = 0
    tokens: int = 0

    def survey(self, names: Sequence[str]) -> CorpusSurvey:
        """Number the words. `names`: of the two texts. DataError if a side has no words."""
        if not all(self.sides):
            raise DataError(
                f"{names[0] if not self.sides[0] else names[1]}: no words, expected a parallel text"
            )
        return CorpusSurvey(SideVocab(self.sides[0]), SideVocab(self.sides[1]), self.pairs, self.tokens)


def count_words(lines: Iterable[tuple[str, ...]], names: Sequence[str], first: int = 1) -> WordCounts:
    """Count the words of sentence pairs and check them. `lines`: source, target and points of each pair;
    `names`: the files that they come from, for messages; `first`: line number of the first pair.

    DataError for malformed points, points outside sentences, or words that Moses' tables cannot hold.
    """
    counts = WordCounts((set(), set()))
    for number, (left, right, points) in enumerate(lines, first):
        pair = files.split_words(left), files.split_words(right)
        for side, words, path in zip(counts.sides, pair, names, strict=False):
            new_words = set(words) - side
            for word in new_words:
                check_word(word, f"{path}:{number}")
            side |= new_words
        location = f"{names[2]}:{number}"
        pharaoh.check_points(pharaoh.parse(points, location), len(pair[0]), len(pair[1]), location)
        counts.pairs += 1
        counts.tokens += len(pair[0]) + len(pair[1])
    return counts


def check_word(word: str, location: str) -> None:
    """DataError for a word that Moses' tables cannot hold."""
    if "|" in word:
        raise DataError(
            f"{location}: '|' in {word[:40]!r}: Moses' tables cannot hold it; escape the text (nmt-tokenize "
            "--escape), which writes &#124;"
        )
    if word[0] == "[" and word[-1] == "]":
        raise DataError(
            f"{location}: {word[:40]!r} would be a non-terminal for Moses; escape the text (nmt-tokenize "
            "--escape), which writes &#91; and &#93;"
        )


def blocks(lines: Iterable[tuple[str, ...]], words: CorpusSurvey, tokens: int) -> Iterator[SentenceBlock]:
    """Cut sentence pairs (source, target, points) into blocks of at least `tokens` words of both sides; the
    last one may have fewer. The points must be valid. KeyError for a word that is not in `words`."""
    rows: list[tuple[list[int], list[int], list[int]]] = []
    count = 0
    left_ids, right_ids = words.source.ids, words.target.ids
    for left, right, points in lines:
        source = [left_ids[word] for word in files.split_words(left)]
        target = [right_ids[word] for word in files.split_words(right)]
        rows.append((source, target, [int(number) for number in points.replace("-", " ").split()]))
        count += len(source) + len(target)
        if count >= tokens:
            yield make_block(rows)
            rows, count = [], 0
    if rows:
        yield make_block(rows)


def make_block(rows: list[tuple[list[int], list[int], list[int]]]) -> SentenceBlock:
    """Concatenate sentence pairs. A row has source word ids, target word ids, and the links as i j i j ..."""
    parts = []
    for column in zip(*rows, strict=True):
        numbers = np.array([number for row in column for number in row], np.int32)
        parts.append((numbers, np.cumsum([0, *map(len, column)])))
    (source, source_cut), (target, target_cut), (points, point_cut) = parts
    return SentenceBlock(source, source_cut, target, target_cut, points.reshape(-1, 2), point_cut // 2)
