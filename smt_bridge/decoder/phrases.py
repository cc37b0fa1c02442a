"""Words and phrases of a phrase table as arrays.

Words are sorted by their UTF-8 bytes and numbered in that order. Phrases are the paths of a trie: node 0 is
the empty phrase, every other node adds a word to its parent. Nodes are numbered level by level, so all
phrases of k words stand together, sorted by their word ids, and the children of a node too.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import count, pairwise, repeat
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.io.mapped import MEMORY, ArrayStorage, blocks

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Ints = NDArray[np.integer]
FIRST_NODES = 1 << 12  # for which a growing trie has space at first
MOST_FULL = 0.75  # share of the slots of a hash table that are in use, at most

# ---- words -------------------------------------------------------------------------------------------------


class WordPool(Sequence[str]):
    """The words with ids 0 to V - 1. Decoded when first used, so that opening a large pool costs nothing."""

    def __init__(self, text: Bytes, cut: Ints) -> None:
        """`text`: UTF-8 of the sorted words, joined; `cut` (V + 1,): word i is text[cut[i] : cut[i + 1]]."""
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
    """Join N texts into one array of bytes, with offsets (N + 1,): text i is text[cut[i] : cut[i + 1]]."""
    cut = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), cut


def new_vocabulary() -> defaultdict[bytes, int]:
    """An empty vocabulary: looking up a new word adds it with the next id."""
    return defaultdict(count().__next__)


def word_ids(phrases: Sequence[bytes], vocabulary: defaultdict[bytes, int]) -> tuple[Int32s, Int64s]:
    """The ids of the words of phrases, whose words are separated by single blanks, and the offset of each
    phrase in them: (W,), (P + 1,). New words are added to `vocabulary`."""
    words = b" ".join(phrases).split(b" ") if phrases else []
    ids = np.fromiter(map(vocabulary.__getitem__, words), np.int32, len(words))
    cut = np.zeros(len(phrases) + 1, np.int64)
    blanks = np.fromiter(map(bytes.count, phrases, repeat(b" ")), np.int64, len(phrases))
    np.cumsum(blanks + 1, out=cut[1:])
    return ids, cut


# ---- trie --------------------------------------------------------------------------------------------------


class PhraseTrie(NamedTuple):
    """A trie of N phrases and the empty one."""

    parent: Int32s  # (N + 1,) the node of the phrase without its last word
    word: Ints  # (N + 1,) the last word of the phrase
    levels: Int64s  # (L + 2,) phrases of k words are the nodes levels[k] to levels[k + 1] - 1

    def children(self, storage: ArrayStorage = MEMORY) -> Int32s:
        """(N + 2,): the children of node i are the nodes children[i] to children[i + 1] - 1"""
        nodes = len(self.parent)
        children = storage.empty(nodes + 1, np.int32)
        for rows in blocks(nodes + 1):
            sought = np.arange(rows.start, rows.stop, dtype=np.int32)
            children[rows] = 1 + np.searchsorted(self.parent[1:], sought)
        return children


class GrowingTrie:
    """A trie to which phrases are added. Its nodes are numbered in the order in which they are added, until
    `sort` numbers them anew.

    A hash table with open addressing leads from parent and word to a node."""

    def __init__(self, storage: ArrayStorage = MEMORY) -> None:
        """`storage`: of the nodes, 8 bytes each; their hash table, 5 to 11 bytes each, is in memory."""
        self.storage = storage
        self.size = 1
        self.nodes = storage.empty((FIRST_NODES, 2), np.int32)  # parent and last word of each node
        self.nodes[0] = 0
        self.slots = np.zeros(2 * FIRST_NODES, np.int32)  # nodes by their hashes; 0 is a free slot

    def add(self, ids: Int32s, cut: Int64s) -> Int32s:
        """Add P phrases and return the node of each: (P,). The word ids of phrase i are ids[cut[i] :
        cut[i + 1]]."""
        self.reserve(self.size + len(ids))
        phrase_nodes = np.empty(len(cut) - 1, np.int32)
        self.size = insert_phrases(ids, cut, self.nodes, self.slots, self.size, phrase_nodes)
        return phrase_nodes

    def reserve(self, size: int) -> None:
        """Make space for `size` nodes. OSError if the disk is full."""
        if size > len(self.nodes):
            self.nodes = self.storage.enlarge(self.nodes, self.size, size)
        slots = len(self.slots)
        while size > MOST_FULL * slots:
            slots *= 2
        if slots > len(self.slots):
            del self.slots  # before there is another
            self.slots = np.zeros(slots, np.int32)
            fill_slots(self.nodes, self.size, self.slots)

    def sort(self, rank: Int32s) -> tuple[PhraseTrie, Int32s]:
        """Number the nodes level by level, those of a level by their parents and words. Returns the trie,
        and the new number of each node: (N + 1,). `rank` (V,): the word ids in the trie. Nothing can be added
        after that."""
        self.slots = np.zeros(0, np.int32)
        nodes, words = self.nodes[: self.size], len(rank)
        order, number, parent, word = (self.storage.empty(self.size, np.int32) for _ in range(4))
        levels = order_by_depth(nodes, number, order)
        number[0] = parent[0] = word[0] = 0
        for first, last in pairwise(levels[1:].tolist()):
            level = order[first:last]
            keys = np.empty(len(level), np.int64)
            for rows in blocks(len(level)):
                here = nodes[level[rows]]
                keys[rows] = number[here[:, 0]].astype(np.int64) * words + rank[here[:, 1]]
            ranked = np.argsort(keys)
            for rows in blocks(len(level)):
                new = slice(first + rows.start, first + rows.stop)
                number[level[ranked[rows]]] = np.arange(new.start, new.stop)
                parent[new], word[new] = np.divmod(keys[ranked[rows]], words)
        return PhraseTrie(parent, word, levels), number


@njit
def first_slot(parent: int, word: int, mask: int) -> int:
    """The slot of a hash table at which the search for a node begins. `mask`: number of slots - 1. Sums that
    overflow have the same lowest bits in Python."""
    mixed = parent * 0x1E3779B97F4A7C15 + word * 0x2545F4914F6CDD1D
    return (mixed ^ (mixed >> 29)) & mask


@njit
def insert_phrases(
    ids: Int32s, cut: Int64s, nodes: Int32s, slots: Int32s, size: int, phrase_nodes: Int32s
) -> int:
    """Add phrases to the `size` nodes of a growing trie, which has space for them; returns the number of
    nodes. `ids`, `cut`: as in GrowingTrie.add; `phrase_nodes` (P,) is set to the node of each phrase."""
    mask = len(slots) - 1
    for i in range(len(cut) - 1):
        node = 0
        for at in range(cut[i], cut[i + 1]):
            word = int(ids[at])
            slot = first_slot(node, word, mask)
            child = int(slots[slot])
            while child and (nodes[child, 0] != node or nodes[child, 1] != word):
                slot = (slot + 1) & mask
                child = int(slots[slot])
            if not child:
                child = size
                slots[slot], nodes[child, 0], nodes[child, 1] = child, node, word
                size += 1
            node = child
        phrase_nodes[i] = node
    return size


@njit
def fill_slots(nodes: Int32s, size: int, slots: Int32s) -> None:
    """Enter all nodes of a growing trie in an empty hash table."""
    mask = len(slots) - 1
    for node in range(1, size):
        slot = first_slot(int(nodes[node, 0]), int(nodes[node, 1]), mask)
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = node


@njit
def order_by_depth(nodes: Int32s, depth: Int32s, order: Int32s) -> Int64s:
    """Sort the nodes of a growing trie by depth: sets `depth` (N + 1,), and `order` (N + 1,) to the nodes of
    each level, one level after the other. Returns the levels as in PhraseTrie."""
    depth[0] = longest = 0
    for node in range(1, len(nodes)):
        depth[node] = depth[nodes[node, 0]] + 1
        longest = max(longest, depth[node])
    levels = np.zeros(longest + 2, np.int64)
    for node in range(len(nodes)):
        levels[depth[node] + 1] += 1
    levels = np.cumsum(levels)
    ends = levels.copy()
    for node in range(len(nodes)):
        order[ends[depth[node]]] = node
        ends[depth[node]] += 1
    return levels


def is_trie(trie: PhraseTrie, words: int) -> bool:
    """Whether all indices of a trie are within bounds, all its paths end at the empty phrase, and the
    children of a node stand together. `words`: size of the vocabulary."""
    parent, _, levels = trie
    if not are_levels(levels, trie.word, words) or len(parent) != levels[-1] or parent[0]:
        return False
    return is_increasing(parent) and all(
        above <= parent[first] and parent[last - 1] < first
        for above, first, last in zip(levels, levels[1:], levels[2:], strict=False)
    )


def are_levels(levels: Int64s, word: Ints, words: int) -> bool:
    """Whether the levels of a trie, see PhraseTrie, contain all nodes, and `word` (N + 1,) is within the
    vocabulary of `words` words."""
    return bool(
        len(levels) > 1
        and (levels[0], levels[1], levels[-1]) == (0, 1, len(word))
        and (np.diff(levels) > 0).all()
        and word.min() >= 0
        and (len(word) == 1 or word[1:].max() < words)
    )


def are_children(children: Int32s, levels: Int64s) -> bool:
    """Whether each node of a trie but the empty phrase is the child of a node on the level above: (N + 2,).
    `levels`: see PhraseTrie."""
    return bool(
        len(children) == levels[-1] + 1
        and (children[levels] == [*levels[1:], levels[-1]]).all()
        and is_increasing(children)
    )


def is_increasing(values: Ints) -> bool:
    """Whether no value is smaller than the one before: (N,)"""
    return all(
        bool((values[rows.start + 1 : rows.stop + 1] >= values[rows][: len(values) - rows.start - 1]).all())
        for rows in blocks(len(values))
    )


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
