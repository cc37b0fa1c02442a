"""An n-gram model in a trie, which may be mapped from files: its arrays, its words, the scores of texts."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.io import files, manifest, mapped
from nmt.io.manifest import digest64
from nmt.lazy import LazyPart
from nmt.ngram.text_scorer import BOS, EOS, UNK, Floats, Ints, NgramTextScorer
from nmt.ngram.trie import Trie, Words64

# ---- words -------------------------------------------------------------------------------------------------
# The bytes of the V words lie in one pool, in the order of the words' hashes, by which they are looked up.

REMEMBERED = 1_000_000  # words of texts whose numbers are kept in memory


def hash_word(word: str) -> int:
    """A hash of 64 bits, the same on every machine."""
    return int.from_bytes(digest64(word.encode("utf-8", "surrogatepass")), "big")


class HashedWords(NamedTuple):
    """The words in three arrays."""

    hashes: NDArray[np.uint64]  # (V,) increasing
    starts: Ints  # (V + 1,) of their bytes
    text: NDArray[np.uint8]

    @classmethod
    def of(cls, words: Iterable[str]) -> "HashedWords":
        """Make the pool of `words`, which must be in the order of their hashes."""
        encoded = [word.encode() for word in words]
        hashes = np.array([int.from_bytes(digest64(word), "big") for word in encoded], np.uint64)
        starts = np.concatenate([[0], np.cumsum([len(word) for word in encoded], dtype=np.int64)])
        return cls(hashes, starts.astype(np.int64), np.frombuffer(b"".join(encoded), np.uint8))

    def word(self, number: int) -> str:
        return self.text[self.starts[number] : self.starts[number + 1]].tobytes().decode()

    def words(self) -> list[str]:
        """All words by their numbers."""
        text, starts = self.text.tobytes(), self.starts.tolist()
        return [text[a:b].decode() for a, b in pairwise(starts)]

    def is_sound(self) -> bool:
        """Whether sizes agree, hashes are sorted, and all bytes are of words."""
        return (
            len(self.starts) == len(self.hashes) + 1
            and int(self.starts[0]) == 0
            and int(self.starts[-1]) == len(self.text)
            and not (self.starts[1:] < self.starts[:-1]).any()
            and not (self.hashes[1:] < self.hashes[:-1]).any()
        )

    def find(self, word: str) -> int:
        """The number of a word; -1 for a word that is not in the pool."""
        hashed = np.uint64(hash_word(word))
        number = int(np.searchsorted(self.hashes, hashed))
        while number < len(self.hashes) and self.hashes[number] == hashed:
            if self.word(number) == word:
                return number
            number += 1
        return -1


class WordIds(dict[str, int]):
    """The ids of words in a pool, that of <unk> for others; up to REMEMBERED of them are kept in memory."""

    def __init__(self, pool: HashedWords, unknown: int) -> None:
        super().__init__()
        self.pool, self.unknown = pool, unknown

    def __missing__(self, word: str) -> int:
        number = self.pool.find(word)
        number = self.unknown if number < 0 else number
        if len(self) < REMEMBERED:
            self[word] = number
        return number


# ---- model -------------------------------------------------------------------------------------------------

COMPILED_FROM = 2000  # call of flat_scores from which it is compiled: numba takes half a second to load
COMPILED_SCORE = LazyPart("nmt.ngram.trie_queries:compiled_score")

SPECIAL = UNK, BOS, EOS
SHAPES = [  # types and dimensions of the arrays of a model
    (np.dtype(kind), 2 if name == "layout" else 1)
    for name, kind in {
        "hashes": "u8", "starts": "i8", "text": "u1", "records": "u8", "books": "f8", "layout": "i8",
        "most": "f8",
    }.items()
]  # fmt: skip


class TrieModel(NamedTuple):
    """The arrays of an n-gram model of V words."""

    unknown: int  # number of <unk>
    begin: int  # number of <s>
    end: int  # number of </s>
    hashes: NDArray[np.uint64]  # (V,) see HashedWords
    starts: Ints  # (V + 1,)
    text: NDArray[np.uint8]
    records: Words64  # see Trie
    books: Floats
    layout: Ints
    most: Floats  # (V,) upper bound of each word's natural log p in any context

    @classmethod
    def of(cls, words: Sequence[str], trie: Trie, most: Floats) -> "TrieModel":
        """The model of a trie. `words`: in the order of their hashes; `most`: see the field. ValueError if
        <unk>, <s> or </s> is missing."""
        unknown, begin, end = (words.index(word) for word in SPECIAL)
        pool = HashedWords.of(words)
        return cls(
            unknown=unknown, begin=begin, end=end, hashes=pool.hashes, starts=pool.starts, text=pool.text,
            records=trie.records, books=trie.books, layout=trie.layout, most=most,
        )  # fmt: skip

    @property
    def pool(self) -> HashedWords:
        return HashedWords(self.hashes, self.starts, self.text)

    @property
    def trie(self) -> Trie:
        return Trie(self.records, self.books, self.layout)

    def is_sound(self) -> bool:
        """Whether all sizes agree and all indices are within bounds, which compiled code does not check."""
        V = len(self.hashes)
        arrays = (*self.pool, *self.trie, self.most)
        shapes = [(array.dtype, array.ndim) for array in arrays]
        return (
            shapes == SHAPES
            and V > 0
            and len(self.most) == V
            and all(0 <= word < V for word in (self.unknown, self.begin, self.end))
            and self.pool.is_sound()
            and self.trie.is_sound(V)
        )


class TrieScorer(NgramTextScorer):
    """Scores texts with an n-gram model in a trie."""

    def __init__(self, model: TrieModel) -> None:
        self.model, self.trie = model, model.trie
        self.unknown, self.begin, self.end = model.unknown, model.begin, model.end
        self.numbers = WordIds(model.pool, model.unknown)
        self.calls = 0  # of flat_scores
        self.compiled: object = None

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        return self.trie.order

    @property
    def vocab_size(self) -> int:
        """Words that the model knows, </s> included; <unk> and <s> are not."""
        return len(self.model.hashes) - 2

    def knows(self, word: str) -> bool:
        """Whether the word has a unigram of its own."""
        return self.numbers[word] != self.unknown

    def encode(self, words: Sequence[str]) -> list[int]:
        return list(map(self.numbers.__getitem__, words))

    def flat_scores(self, text: Ints, first: Ints) -> Floats:
        """Natural log p of each token; see `NgramTextScorer`. Computed by NumPy in the first calls, then by
        compiled code where numba is installed."""
        self.calls += 1
        if self.calls == COMPILED_FROM:
            self.compiled = COMPILED_SCORE.load()
        if not callable(self.compiled):
            return self.trie.flat_scores(text, first)
        scores = np.empty(len(text))
        self.compiled(self.trie, text, first, scores)
        return scores


# ---- folders -----------------------------------------------------------------------------------------------
# A mapped model is a folder of the arrays of a TrieModel (nmt/io/mapped.py).


def identity_file(path: str | Path) -> Path:
    """The file that changes whenever the content of a model does: that of an ARPA or KenLM model itself, the
    manifest of a folder."""
    return Path(path) / manifest.FILE if mapped.is_mapped(path) else Path(path)


def load_trie(folder: str | Path, verify: bool = False) -> TrieModel:
    """Map the model of a folder. Checksums and indices are verified once on a machine, with `verify` always.
    DataError for a folder that is damaged, or has something else."""
    return mapped.load_record(folder, TrieModel, "nmt-ngram compile", stamp_path(folder), verify)


def stamp_path(folder: str | Path) -> Path:
    """The path of the file in the user's cache which shows that a folder has been verified."""
    return mapped.stamp_file(files.cache_folder(), folder)
