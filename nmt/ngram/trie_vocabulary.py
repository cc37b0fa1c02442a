"""The words of a mapped n-gram model: their bytes in one pool, in the order of their hashes, by which they
are looked up. V words."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.io.manifest import digest64
from nmt.ngram.texts import Ints

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
    """The ids of words, looked up in a pool; up to REMEMBERED of them are kept in memory. A word outside the
    pool has the id of <unk>."""

    def __init__(self, pool: HashedWords, unknown: int) -> None:
        super().__init__()
        self.pool, self.unknown = pool, unknown

    def __missing__(self, word: str) -> int:
        number = self.pool.find(word)
        number = self.unknown if number < 0 else number
        if len(self) < REMEMBERED:
            self[word] = number
        return number
