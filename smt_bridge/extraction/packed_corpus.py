"""Texts and word alignments of millions of sentence pairs in arrays: 4 bytes a word, 4 bytes a link, and 8 a
sentence, instead of the 100 and more that Python's own objects take."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from nmt.formats.pharaoh import Links
from nmt.io import mapped

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

MOST_WORDS = 1 << 16  # of a sentence with links, whose word positions have 16 bits
LINK_ARRAYS = ("source", "target", "offsets")  # of PackedLinks, as its files are named
LINES = 10_000  # sentence pairs whose links are formatted at a time


class PackedText(Sequence[list[str]]):
    """Sentences. Sentence i has the words `words[k]` for k in ids[offsets[i] : offsets[i + 1]]."""

    def __init__(self, ids: Int32s, offsets: Int64s, words: Sequence[str]) -> None:
        self.ids, self.offsets, self.words = ids, offsets, words

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> list[str]: ...
    @overload
    def __getitem__(self, index: slice) -> "PackedText": ...
    def __getitem__(self, index: int | slice) -> "list[str] | PackedText":
        if isinstance(index, slice):
            return self.select(np.arange(len(self))[index])
        index = range(len(self))[index]
        words = self.words
        return [words[number] for number in self.ids[self.offsets[index] : self.offsets[index + 1]].tolist()]

    @property
    def lengths(self) -> Int64s:
        """Words of each sentence: (N,)"""
        return np.diff(self.offsets)

    def select(self, sentences: Int64s) -> "PackedText":
        """These sentences as a text of their own, whose word numbers are in order of appearance."""
        tokens, offsets = select_items(self.offsets, sentences)
        old_ids, first_positions, index = np.unique(self.ids[tokens], return_index=True, return_inverse=True)
        order = np.argsort(first_positions)
        new_ids = np.empty(len(old_ids), np.int32)
        new_ids[order] = np.arange(len(old_ids))
        return PackedText(new_ids[index], offsets, [self.words[old] for old in old_ids[order].tolist()])


def select_items(offsets: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Select rows of a table whose items are stored row after row: row i has the items from offsets[i] to
    offsets[i + 1] - 1. Returns the indices of the K items of the rows `rows`, (K,), and the offsets of these
    rows in the selection, (len(rows) + 1,)."""
    sizes = np.diff(offsets)[rows]
    cut = np.append(0, np.cumsum(sizes))
    return np.repeat(offsets[rows] - cut[:-1], sizes) + np.arange(cut[-1]), cut


class Packer:
    """Packs sentence after sentence; words are numbered in the order of the text."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.ids, self.offsets = array("i"), array("q", [0])

    def add(self, words: Iterable[str]) -> None:
        numbers = self.numbers
        self.ids.extend([numbers.setdefault(word, len(numbers)) for word in words])
        self.offsets.append(len(self.ids))

    def text(self) -> PackedText:
        return PackedText(
            np.frombuffer(self.ids, np.int32) if self.ids else np.zeros(0, np.int32),
            np.frombuffer(self.offsets, np.int64),
            list(self.numbers),
        )


def pack_text(texts: Iterable[Sequence[str]]) -> PackedText:
    """Pack sentences into arrays; a text that is packed already is returned as it is."""
    if isinstance(texts, PackedText):
        return texts
    packer = Packer()
    for words in texts:
        packer.add(words)
    return packer.text()


class PackedLinks(Sequence[Links]):
    """Links of sentence pairs. Pair i has the links (source[k], target[k]) of offsets[i] <= k < offsets[i +
    1], in any order. Slices have step 1."""

    def __init__(self, source: NDArray[np.uint16], target: NDArray[np.uint16], offsets: Int64s) -> None:
        self.source, self.target, self.offsets = source, target, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Links: ...
    @overload
    def __getitem__(self, index: slice) -> "PackedLinks": ...
    def __getitem__(self, index: int | slice) -> "Links | PackedLinks":
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            assert step == 1
            cut = self.offsets[start : max(start, stop) + 1]
            inside = slice(cut[0], cut[-1])
            return PackedLinks(self.source[inside], self.target[inside], cut - cut[0])
        index = range(len(self))[index]
        inside = slice(self.offsets[index], self.offsets[index + 1])
        return frozenset(zip(self.source[inside].tolist(), self.target[inside].tolist(), strict=True))

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Sequence) and list(self) == list(value)

    __hash__ = None  # type: ignore[assignment]

    def swap(self) -> "PackedLinks":
        return PackedLinks(self.target, self.source, self.offsets)

    def spread(self, pairs: Int64s, count: int) -> "PackedLinks":
        """Links of `count` pairs: pair `pairs[i]` has those of pair i of this object, and all others have
        none. `pairs` must increase."""
        sizes = np.zeros(count, np.int64)
        sizes[pairs] = np.diff(self.offsets)
        return PackedLinks(self.source, self.target, np.append(0, np.cumsum(sizes)))

    def lines(self) -> Iterator[str]:
        """Yield the links of each pair as a line, in the format of `pharaoh.format_links`."""
        for first in range(0, len(self), LINES):
            part = self[first : first + LINES]
            pair = np.repeat(np.arange(len(part)), np.diff(part.offsets))
            order = np.lexsort((part.target, part.source, pair))
            columns = part.source[order].tolist(), part.target[order].tolist()
            points = [f"{source}-{target}" for source, target in zip(*columns, strict=True)]
            cut = part.offsets.tolist()
            for start, end in pairwise(cut):
                yield " ".join(points[start:end])

    def save(self, prefix: str) -> None:
        """Write the arrays to .npy files, for `load_links`. `prefix`: of the paths. OSError if that fails."""
        for name in LINK_ARRAYS:
            mapped.save_array(f"{prefix}.{name}.npy", getattr(self, name))


def load_links(prefix: str) -> PackedLinks:
    """Map the arrays that `PackedLinks.save` wrote with this `prefix` into memory; the files may be removed
    afterwards. OSError or ValueError if one is missing or damaged."""
    return PackedLinks(
        *(np.load(f"{prefix}.{name}.npy", allow_pickle=False, mmap_mode="r") for name in LINK_ARRAYS)
    )


def pack_links(links: Iterable[Links]) -> PackedLinks:
    """Pack the links of sentence pairs into arrays; links that are packed already are returned as they are.
    OverflowError for a word position of MOST_WORDS or more."""
    if isinstance(links, PackedLinks):
        return links
    source, target, offsets = array("H"), array("H"), array("q", [0])
    for pair in links:
        for left, right in sorted(pair):
            source.append(left)
            target.append(right)
        offsets.append(len(source))
    sides = [np.frombuffer(side, np.uint16) if side else np.zeros(0, np.uint16) for side in (source, target)]
    return PackedLinks(sides[0], sides[1], np.frombuffer(offsets, np.int64))
