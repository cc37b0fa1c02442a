"""Words and phrases of a phrase table as arrays.

Words are sorted by their UTF-8 bytes and numbered in that order. Phrases are the paths of a trie: node 0 is
the empty phrase, every other node adds a word to its parent. Nodes are numbered level by level, so all
phrases of k words stand together, sorted by their word ids, and the children of a node too.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Ints = NDArray[np.integer]
CHUNK = 1 << 16  # phrases whose words are Python objects at the same time

# ---- words -------------------------------------------------------------------------------------------------


class WordPool(Sequence[str]):
    """The words with ids 0 to V - 1. Decoded when first used, so that opening a large pool costs nothing."""

    def __init__(self, text: Bytes, cut: Ints) -> None:
        """`text`: UTF-8 of all words, sorted and joined; `cut` (V + 1,): word i is text[cut[i] :
        cut[i + 1]]."""
        self.text, self.cut = text, cut
        self.decoded: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.cut) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(len(self)))]
        word = self.decoded.get(number)
        if word is None:
            if not 0 <= number < len(self):
                raise IndexError(number)
            word = self.decoded[number] = self.encoded(number).decode("utf-8")
        return word

    def encoded(self, number: int) -> bytes:
        """The UTF-8 of a word."""
        return self.text[self.cut[number] : self.cut[number + 1]].tobytes()

    def find(self, word: str) -> int:
        """The id of a word; -1 if the pool lacks it."""
        code = word.encode("utf-8")
        number = bisect_left(range(len(self)), code, key=self.encoded)
        return number if number < len(self) and self.encoded(number) == code else -1


def concatenate_texts(texts: Sequence[bytes]) -> tuple[Bytes, Int64s]:
    """Join N texts into one array of bytes; also returns offsets (N + 1,): text i is text[cut[i] : cut[i +
    1]]."""
    cut = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), cut


def new_vocabulary() -> defaultdict[bytes, int]:
    """An empty vocabulary: looking up a new word adds it with the next id."""
    return defaultdict(count().__next__)


def word_ids(phrases: Iterable[bytes], vocabulary: defaultdict[bytes, int]) -> tuple[Int32s, Int64s]:
    """The ids of the words of phrases, whose words are separated by single blanks, and the offset of each
    phrase in them: (W,), (P + 1,). New words are added to `vocabulary`."""
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
    waiting = iter(phrases)
    while chunk := list(islice(waiting, CHUNK)):
        words = b" ".join(chunk).split(b" ")
        ids.append(np.fromiter(map(vocabulary.__getitem__, words), np.int32, len(words)))
        lengths.append(np.fromiter((phrase.count(b" ") + 1 for phrase in chunk), np.int64, len(chunk)))
    return np.concatenate(ids), np.cumsum(np.concatenate(lengths))


# ---- trie --------------------------------------------------------------------------------------------------


class PhraseTrie(NamedTuple):
    """A trie of N phrases and the empty one."""

    parent: Int32s  # (N + 1,) the node of the phrase without its last word
    word: Ints  # (N + 1,) the last word of the phrase
    levels: Int64s  # (L + 2,) phrases of k words are the nodes levels[k] to levels[k + 1] - 1

    def children(self) -> Int32s:
        """(N + 2,): the children of node i are the nodes children[i] to children[i + 1] - 1"""
        nodes = len(self.parent)
        return (1 + np.searchsorted(self.parent[1:], np.arange(nodes + 1))).astype(np.int32)


def build_trie(ids: Int32s, cut: Int64s, words: int) -> tuple[PhraseTrie, Int64s]:
    """Build a trie of P phrases; also returns the node of each: (P,). The word ids of phrase i are ids[cut[i]
    : cut[i + 1]]. `words`: size of the vocabulary."""
    node, lengths = np.zeros(len(cut) - 1, np.int64), np.diff(cut)
    parent, word, levels = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [0, 1]
    for depth in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > depth)
        keys = node[longer] * words + ids[cut[longer] + depth]
        distinct, inverse = np.unique(keys, return_inverse=True)
        node[longer] = levels[-1] + inverse
        parent.append(distinct // words)
        word.append(distinct % words)
        levels.append(levels[-1] + len(distinct))
    return (
        PhraseTrie(
            parent=np.concatenate(parent).astype(np.int32),
            word=np.concatenate(word).astype(np.int32),
            levels=np.array(levels, np.int64),
        ),
        node,
    )


def is_trie(trie: PhraseTrie, words: int) -> bool:
    """Whether all indices of a trie are within bounds, all its paths end at the empty phrase, and the
    children of a node stand together. `words`: size of the vocabulary."""
    nodes = len(trie.parent)
    levels = trie.levels
    if (
        len(levels) < 2
        or (levels[0], levels[1], levels[-1]) != (0, 1, nodes)
        or (np.diff(levels) <= 0).any()
        or len(trie.word) != nodes
        or trie.word.min() < 0
        or (nodes > 1 and int(trie.word[1:].max()) >= words)
        or trie.parent[0]
    ):
        return False
    above = np.repeat(levels[:-2], np.diff(levels[1:]))  # first node of the level of each node's parent
    limit = np.repeat(levels[1:-1], np.diff(levels[1:]))
    parents = trie.parent[1:]
    return bool((parents >= above).all() and (parents < limit).all() and (np.diff(parents) >= 0).all())


@njit
def find_spans(ids: Int32s, children: Int32s, word: Ints, longest: int) -> Int32s:
    """Find the nodes of all spans of at most `longest` words of a sentence, 0 for a span that the trie lacks:
    (n,) -> (n * longest,). The span of k words from word i has the index i * longest + k - 1.

    `ids`: word ids, -1 for words outside the vocabulary; `children`, `word`: of the PhraseTrie."""
    n = len(ids)
    nodes = np.zeros(n * longest, np.int32)
    for start in range(n):
        node = 0
        for size in range(min(longest, n - start)):
            sought = ids[start + size]
            low, high = children[node], children[node + 1]
            end = high
            while low < high:
                middle = (low + high) // 2
                if word[middle] < sought:
                    low = middle + 1
                else:
                    high = middle
            if low == end or word[low] != sought:
                break
            node = low
            nodes[start * longest + size] = node
    return nodes


@njit
def path_words(nodes: Int32s, parent: Int32s, word: Ints, starts: Int64s) -> Int32s:
    """Word ids of the phrases that end at given nodes of a trie, one phrase after the other: (O,) -> (W,).

    `parent`, `word`: see PhraseTrie; the words of phrase i go to text[starts[i] : starts[i + 1]], starts
    (O + 1,)."""
    text = np.empty(starts[-1], np.int32)
    for i in range(len(nodes)):
        node = nodes[i]
        for at in range(starts[i + 1] - 1, starts[i] - 1, -1):
            text[at] = word[node]
            node = parent[node]
    return text
