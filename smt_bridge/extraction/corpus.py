"""A word-aligned corpus in blocks of sentences, words as numbers.

Numbers are in the order of the bytes of word + blank, and the end of a phrase has the number of the word
`|||`, so that phrases sort like the lines of a table under LC_ALL=C. Number 0 is padding, or the word NULL of
lexical weights.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.io import files

END = b"|||"
Int32s = NDArray[np.int32]


class SideVocab:
    """The vocabulary of one side of the corpus, and the number of each word."""

    def __init__(self, found: set[str]) -> None:
        coded = sorted((word.encode() for word in found), key=lambda word: word + b" ")
        coded.append(END)
        coded.sort(key=lambda word: word + b" ")
        self.words = [b"", *coded]
        self.ids = {word.decode(): number for number, word in enumerate(self.words)}
        self.end = self.ids[END.decode()]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def bits(self) -> int:
        """Bits of a number in a packed key."""
        return max(4, len(self.words).bit_length())


@dataclass
class Survey:
    """The result of a first reading."""

    source: SideVocab
    target: SideVocab
    pairs: int  # of sentences
    tokens: int  # of both sides


@dataclass
class Block:
    """Concatenated sentence pairs: pair i has the words source[source_cut[i] : source_cut[i + 1]] and the
    links points[point_cut[i] : point_cut[i + 1]]."""

    source: Int32s
    source_cut: NDArray[np.int64]
    target: Int32s
    target_cut: NDArray[np.int64]
    points: Int32s  # (P, 2)
    point_cut: NDArray[np.int64]


@dataclass
class Counted:
    """The words of both sides of some sentence pairs, and how many words and pairs there are."""

    sides: tuple[set[str], set[str]]
    pairs: int = 0
    tokens: int = 0

    def survey(self, names: Sequence[str]) -> Survey:
        """With the words numbered. `names`: of the two texts. DataError where a side has no words."""
        if not self.tokens or not all(self.sides):
            raise DataError(
                f"{names[0] if not self.sides[0] else names[1]}: no words, expected a parallel text"
            )
        return Survey(SideVocab(self.sides[0]), SideVocab(self.sides[1]), self.pairs, self.tokens)


def survey(source: str, target: str, aligned: str) -> Survey:
    """Read everything once. DataError for unequal files, points outside sentences, or words that tables
    cannot hold."""
    names = source, target, aligned
    return count(files.parallel(*names), names).survey(names)


def count(lines: Iterable[tuple[str, ...]], names: Sequence[str], first: int = 1) -> Counted:
    """Sentence pairs and their points, from line `first` of the files `names` on. DataError for points
    outside sentences, or words that tables cannot hold."""
    found = Counted((set(), set()))
    for number, (left, right, points) in enumerate(lines, first):
        pair = files.split_words(left), files.split_words(right)
        for side, words, path in zip(found.sides, pair, names, strict=False):
            fresh = set(words) - side
            for word in fresh:
                check_word(word, f"{path}:{number}")
            side |= fresh
        where = f"{names[2]}:{number}"
        pharaoh.check_points(pharaoh.parse(points, where), len(pair[0]), len(pair[1]), where)
        found.pairs += 1
        found.tokens += len(pair[0]) + len(pair[1])
    return found


def check_word(word: str, where: str) -> None:
    """DataError for a word that a table of Moses cannot hold."""
    if "|" in word:
        raise DataError(
            f"{where}: '|' in {word[:40]!r}: Moses' tables cannot hold it; escape the text (nmt-tokenize "
            "--escape), which writes &#124;"
        )
    if word[0] == "[" and word[-1] == "]":
        raise DataError(
            f"{where}: {word[:40]!r} would be a non-terminal for Moses; escape the text (nmt-tokenize "
            "--escape), which writes &#91; and &#93;"
        )


def blocks(lines: Iterable[tuple[str, ...]], words: Survey, tokens: int) -> Iterator[Block]:
    """Sentence pairs and their points in blocks of about this many words."""
    rows: list[tuple[list[int], list[int], list[int]]] = []
    held = 0
    left_ids, right_ids = words.source.ids, words.target.ids
    for left, right, points in lines:
        flat = [int(number) for number in points.replace("-", " ").split()]
        rows.append(
            (
                [left_ids[word] for word in files.split_words(left)],
                [right_ids[word] for word in files.split_words(right)],
                flat,
            )
        )
        held += len(rows[-1][0]) + len(rows[-1][1])
        if held >= tokens:
            yield block(rows)
            rows, held = [], 0
    if rows:
        yield block(rows)


def block(rows: list[tuple[list[int], list[int], list[int]]]) -> Block:
    """A block of sentence pairs: source words, target words, and links i j i j ..."""
    parts = []
    for column in zip(*rows, strict=True):
        numbers = np.array([number for row in column for number in row], np.int32)
        parts.append((numbers, np.cumsum([0, *map(len, column)])))
    (source, source_cut), (target, target_cut), (points, point_cut) = parts
    return Block(
        source=source,
        source_cut=source_cut,
        target=target,
        target_cut=target_cut,
        points=points.reshape(-1, 2),
        point_cut=point_cut // 2,
    )
