"""Dictionaries of multi-symbol tokens by adapted byte-pair encoding (van Merriënboer 2018, algorithm 3 of
chapter 8, as corrected).

The most frequent pair of adjacent tokens is merged into a new token, again and again. A token that has
become rarer than the new one is split again, so that `abcabcabc...` keeps abc and drops ab. Single symbols
always stay. Ties go to the pair whose left token is older, then to the one whose right token is.

`parts` considers the two tokens that were merged. `all` considers every token, as the algorithm is printed;
on English text that goes in circles (Penn Treebank: 129 tokens, then the same 400 merges over and over),
since splitting a token makes other pairs more frequent, whose merges remove more. `none` is plain byte-pair
encoding.

The text is an array of token numbers, four bytes per token, with a separator between lines. A merge is one
pass over it; the counts of pairs change only around the merged positions.
"""

import heapq
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.io.numbers import shown
from nmt.io.progress import Progress

log = logging.getLogger(__name__)

FILE = "dictionary"  # its name in a run directory
HEADER = "#version: 1 dictionary"
REMOVALS = ("parts", "all", "none")
STALL = 1000  # merges without a larger dictionary: tokens are merged and split in circles
SHIFT = 1 << 32

Ids = NDArray[np.int32]
Keys = NDArray[np.int64]


class DictionarySettings(Protocol):
    """The settings of a dictionary, of the section `lm`."""

    dictionary: int
    removals: str


@dataclass
class Dictionary:
    """Tokens as tuples of symbols: single symbols first, then longer ones in the order of their creation."""

    tokens: list[tuple[str, ...]]
    counts: list[int]  # occurrences in the segmented training text

    def __post_init__(self) -> None:
        self.known = frozenset(self.tokens)
        self.symbols = [token[0] for token in self.tokens if len(token) == 1]
        self.longest = max((len(token) for token in self.tokens), default=0)

    def __len__(self) -> int:
        return len(self.tokens)

    def lines(self) -> list[str]:
        """The lines of the file that `load` reads."""
        lines = (f"{' '.join(token)}\t{count}" for token, count in zip(self.tokens, self.counts, strict=True))
        return [f"{HEADER} size={len(self.tokens)}", *lines]

    def save(self, path: str | Path) -> None:
        files.write_text(path, self.lines())

    @classmethod
    def learn(cls, config: DictionarySettings, lines: Iterable[Sequence[str]], show_bar: bool) -> Self:
        """Learn the tokens of a training text, with a progress bar if `show_bar`, and log how many there are.
        DataError for a text without symbols."""
        size = config.dictionary
        with Progress(None, "tokens", show_bar, "learning the dictionary") as progress:
            learned = learn(lines, size, config.removals, lambda tokens: progress.reach(tokens, size))
        log.info("dictionary: %s tokens, the longest of %d symbols", f"{len(learned):,}", learned.longest)
        return cls(learned.tokens, learned.counts)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a dictionary. DataError for a file that is truncated, of another version, or no dictionary."""
        lines = files.read_lines(path)
        size = files.promised_size(next(lines, ""), HEADER, path)
        tokens, counts = [], []
        for number, line in enumerate(lines, 2):
            text, _, count = line.rpartition("\t")
            try:
                counts.append(numbers.count(count))
                if not all(text.split(" ")):
                    raise ValueError
            except ValueError as error:
                raise DataError(
                    f"{path}:{number}: expected symbols separated by blanks, a tab and a count, found "
                    f"{shown(line)}"
                ) from error
            tokens.append(tuple(text.split(" ")))
        if len(tokens) != size:
            raise DataError(
                f"{path}: {len(tokens)} tokens, but its first line promises {size}; was it copied whole?"
            )
        dictionary = cls(tokens=tokens, counts=counts)
        symbols = {symbol for token in tokens for symbol in token}
        if len(dictionary.known) != len(tokens) or not symbols <= set(dictionary.symbols):
            raise DataError(f"{path}: a token is repeated, or has a symbol that is not a token itself")
        return dictionary


class Learner:
    """Learns a dictionary: `best` finds a pair, `merge` and `remove_rarer` update text and tokens, and
    `result` returns the dictionary; see `learn`."""

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        self.tokens: list[tuple[str, ...]] = []
        self.numbers: dict[tuple[str, ...], int] = {}
        # The tokens that each token was first merged from; (-1, -1) for a symbol.
        self.parts: list[tuple[int, int]] = []
        text: list[int] = []
        for line in lines:
            text += [self.number((symbol,), (-1, -1)) for symbol in line]
            text.append(-1)
        self.text = np.array(text or [-1], np.int32)
        self.alive = np.ones(len(self.tokens), bool)  # (numbers,) whether the token is in the dictionary
        self.counts = np.bincount(self.text[self.text >= 0], minlength=len(self.tokens))
        self.pairs: dict[int, int] = {}  # key of a pair -> its count, overlaps included
        self.heap: list[tuple[int, int]] = []  # (-count, key), outdated entries among them
        self.change(np.zeros(0, np.int64), self.keys(np.arange(len(self.text) - 1)))

    def number(self, token: tuple[str, ...], parts: tuple[int, int]) -> int:
        """Look up the number of a token; a new token is assigned the next one, and stored with the `parts`
        that it is merged from."""
        token_number = self.numbers.setdefault(token, len(self.tokens))
        if token_number == len(self.tokens):
            self.tokens.append(token)
            self.parts.append(parts)
        return token_number

    def keys(self, edges: Keys) -> Keys:
        """The pairs text[edge], text[edge + 1], each as one number, its key. Edges outside the text and pairs
        across the end of a line are left out."""
        edges = edges[(edges >= 0) & (edges < len(self.text) - 1)]
        left, right = self.text[edges].astype(np.int64), self.text[edges + 1].astype(np.int64)
        return (left * SHIFT + right)[(left >= 0) & (right >= 0)]

    def change(self, removed: Keys, added: Keys) -> None:
        """Update the counts of pairs: one key for each occurrence that was removed or added. Overlapping
        pairs of equal tokens all count: two in `a a a`."""
        keys, index = np.unique(np.concatenate([removed, added]), return_inverse=True)
        changes = np.repeat([-1, 1], [len(removed), len(added)])
        delta = np.bincount(index, changes, len(keys)).astype(np.int64)
        for key, difference in zip(keys[delta != 0].tolist(), delta[delta != 0].tolist(), strict=True):
            now = self.pairs.get(key, 0) + difference
            if now:
                self.pairs[key] = now
                heapq.heappush(self.heap, (-now, key))
            else:
                del self.pairs[key]

    def best(self) -> tuple[int, Keys] | None:
        """The key of the most frequent pair, and its positions without overlaps; None when no pair occurs
        twice.

        Outdated heap entries are dropped. For a pair of equal tokens the count is an upper bound; the exact
        count is computed here.
        """
        bounds: list[tuple[int, int]] = []
        best: tuple[int, int, Keys] | None = None
        while self.heap and (best is None or self.heap[0] < (-best[0], best[1])):
            minus, key = heapq.heappop(self.heap)
            if self.pairs.get(key) != -minus:
                continue
            if bounds and bounds[-1] == (minus, key):
                continue
            bounds.append((minus, key))
            left, right = divmod(key, SHIFT)
            if left == right or best is None:
                positions = self.pair_positions(left, right)
                if best is None or (-len(positions), key) < (-best[0], best[1]):
                    best = len(positions), key, positions
            elif (minus, key) < (-best[0], best[1]):
                best = -minus, key, self.pair_positions(left, right)
        for entry in bounds:
            heapq.heappush(self.heap, entry)
        return (best[1], best[2]) if best and best[0] > 1 else None

    def pair_positions(self, left: int, right: int) -> Keys:
        """Positions at which a pair occurs, without overlaps: in `a a a` only the first."""
        matches = np.flatnonzero((self.text[:-1] == left) & (self.text[1:] == right))
        if left != right or not len(matches):
            return matches
        begins = np.concatenate([[True], np.diff(matches) > 1])
        first = np.maximum.accumulate(np.where(begins, np.arange(len(matches)), 0))
        disjoint: Keys = matches[(np.arange(len(matches)) - first) % 2 == 0]
        return disjoint

    def merge(self, key: int, positions: Keys) -> int:
        """Replace the pair of a key by its token at these positions in the text, which must not overlap.
        Returns the number of the token; it may have been in the dictionary before."""
        left, right = divmod(key, SHIFT)
        token = self.number(self.tokens[left] + self.tokens[right], (left, right))
        if token == len(self.alive):
            self.alive = np.append(self.alive, True)
            self.counts = np.append(self.counts, 0)
        self.alive[token] = True
        removed = self.keys(np.unique(np.concatenate([positions - 1, positions, positions + 1])))
        self.text[positions] = token
        remaining = np.ones(len(self.text), bool)
        remaining[positions + 1] = False
        now = positions - np.arange(len(positions))  # each earlier position has lost one token
        self.text = self.text[remaining]
        self.change(removed, self.keys(np.unique(np.concatenate([now - 1, now]))))
        self.counts[token] += len(positions)
        self.counts[left] -= len(positions)
        self.counts[right] -= len(positions)
        return token

    def remove_rarer(self, token: int, among: Sequence[int]) -> None:
        """Split those tokens of `among` that are rarer than `token`, except single symbols."""
        rare = np.zeros(len(self.alive), bool)
        for number in among:
            is_rarer = self.counts[number] < self.counts[token]
            rare[number] = self.alive[number] and self.parts[number][0] >= 0 and is_rarer
        if not rare.any():
            return
        self.alive &= ~rare
        wholes = {number: self.expand(number) for number in np.flatnonzero(rare & (self.counts > 0)).tolist()}
        if not wholes:
            return
        lengths = np.ones(len(self.alive), np.int64)
        for number, parts in wholes.items():
            lengths[number] = len(parts)
        inside = self.text >= 0
        positions = np.flatnonzero(inside & np.isin(self.text, list(wholes)))
        removed = self.keys(np.unique(np.concatenate([positions - 1, positions])))
        width = np.ones(len(self.text), np.int64)
        width[positions] = lengths[self.text[positions]]
        starts = np.cumsum(width) - width
        old, self.text = self.text[positions], np.repeat(self.text, width)
        changed = []
        for number, parts in wholes.items():
            here = starts[positions[old == number]]
            for offset, part in enumerate(parts):
                self.text[here + offset] = part
                changed.append(here + offset)
                self.counts[part] += len(here)
            self.counts[number] = 0
        new = np.concatenate(changed)
        self.change(removed, self.keys(np.unique(np.concatenate([new - 1, new]))))

    def expand(self, token: int) -> list[int]:
        """Split a token into tokens that are still in the dictionary."""
        if self.alive[token]:
            return [token]
        left, right = self.parts[token]
        return self.expand(left) + self.expand(right)

    def result(self) -> Dictionary:
        """The dictionary of the remaining tokens."""
        alive = np.flatnonzero(self.alive).tolist()
        return Dictionary(
            tokens=[self.tokens[number] for number in alive], counts=self.counts[alive].tolist()
        )


def learn(
    lines: Iterable[Sequence[str]],
    size: int,
    removals: str = "parts",
    progress: Callable[[int], None] = lambda tokens: None,
) -> Dictionary:
    """Learn a dictionary of `size` tokens: more if the text has more symbols, fewer if no pair occurs twice
    or STALL merges in a row make it no larger. `removals`: one of REMOVALS; `progress`: called with the
    number of tokens after each merge. DataError for a text without symbols."""
    work = Learner(lines)
    if not work.tokens:
        raise DataError("no symbols to learn a dictionary from")
    largest, stalled = int(work.alive.sum()), 0
    while int(work.alive.sum()) < size and stalled < STALL and (best := work.best()):
        token = work.merge(*best)
        if removals != "none":
            work.remove_rarer(
                token, divmod(best[0], SHIFT) if removals == "parts" else range(len(work.tokens))
            )
        now = int(work.alive.sum())
        largest, stalled = max(largest, now), 0 if now > largest else stalled + 1
        progress(now)
    return work.result()


def segment(dictionary: Dictionary, symbols: Sequence[str]) -> list[tuple[str, ...]]:
    """Cut a text into as few tokens as possible; on ties, into those that begin with the longest token. A
    symbol that the dictionary lacks is a token of its own."""
    longest, size = max(1, dictionary.longest), len(symbols)

    def is_token(start: int, end: int) -> bool:
        return end == start + 1 or tuple(symbols[start:end]) in dictionary.known

    fewest = [0] * (size + 1)  # tokens from each position to the end
    for start in range(size - 1, -1, -1):
        ends = range(start + 1, min(start + longest, size) + 1)
        fewest[start] = 1 + min(fewest[end] for end in ends if is_token(start, end))
    segments, start = [], 0
    while start < size:
        ends = range(min(start + longest, size), start, -1)
        end = next(end for end in ends if fewest[end] == fewest[start] - 1 and is_token(start, end))
        segments.append(tuple(symbols[start:end]))
        start = end
    return segments


def table(dictionary: Dictionary) -> list[tuple[int, str, int]]:
    """Rank (from 1), text and count of tokens, the most frequent first (van Merriënboer 2018, table 8.1)."""
    ranked = sorted(zip(dictionary.tokens, dictionary.counts, strict=True), key=lambda entry: -entry[1])
    return [(rank, "".join(token), count) for rank, (token, count) in enumerate(ranked, 1)]
