"""Count-based n-gram models: back-off models in arrays, which ARPA files are read into and written from;
KenLM's binary files, through the package kenlm; and mapped tries (nmt/ngram/trie.py). Arrays hold log10 as
ARPA files do; scores are natural logarithms.

An n-gram is a node of order n: its parent is the node of its first n - 1 words, its key parent * V + last
word. The keys of an order are sorted, so that one searchsorted per order finds the nodes of a whole text:

    node of the n-gram that ends at word i  =  find(V * node of the (n-1)-gram that ends at word i - 1, plus
    word i)

p(w | h) is the probability of the longest n-gram h'w in the model, times the back-off weights of the longer
contexts in the model.
"""

import math
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError
from nmt.io import files, mapped, numbers
from nmt.io.mapped import MEMORY, ArrayStorage, GrowingArray, blocks
from nmt.io.numbers import shown
from nmt.ngram import compiled_queries, trie
from nmt.ngram.arpa_columns import (
    NUMBER_BYTES,
    NgramRows,
    WordLookup,
    format_numbers,
    join_pieces,
    parse_logarithm,
    parse_rows,
    round_numbers,
)  # fmt: skip
from nmt.ngram.compiled_queries import CompiledModel
from nmt.ngram.text_scorer import BOS, EOS, LN10, MINUS_ALL, UNK, Floats, Ints, NgramTextScorer
from nmt.ngram.trie import TrieScorer

COMPILED_FROM = 2000  # calls of flat_scores before it is compiled: numba takes half a second to load
COMPILED_NGRAMS = 20_000_000  # at most, since their hash table takes 24 to 48 bytes for each
BLOCK = 4096  # n-grams formatted together
SORTED_SEARCH = 10_000  # keys that are sorted before a search for them


@dataclass
class NgramOrder:
    """The M n-grams of one length. Order 1 is numbered by word and has keys 0 .. V-1."""

    keys: Ints  # (M,) sorted
    log10: Floats  # (M,) log10 p
    backoff: Floats  # (M,) log10; all 0 for the highest order


@dataclass
class NgramModel(NgramTextScorer):
    """A count model over V words, <unk>, <s> and </s> included; levels[n - 1] has the n-grams of order n."""

    words: list[str]
    levels: list[NgramOrder]

    def __post_init__(self) -> None:
        self.ids = {word: number for number, word in enumerate(self.words)}
        self.unknown, self.begin, self.end = (self.ids.get(word, -1) for word in (UNK, BOS, EOS))
        self.calls = 0  # of flat_scores
        self.compiled: CompiledModel | None = None

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        return len(self.levels)

    @property
    def vocab_size(self) -> int:
        """Words that the model knows, </s> included; <unk> and <s> are not."""
        return len(self.words) - 2

    @property
    def size(self) -> int:
        """Number of n-grams of all orders."""
        return sum(len(level.keys) for level in self.levels)

    def knows(self, word: str) -> bool:
        """Whether the word has a unigram of its own."""
        return word in self.ids and self.ids[word] != self.unknown

    def encode(self, words: Sequence[str]) -> list[int]:
        """Map words to ids; words without a unigram become <unk>."""
        return list(map(self.ids.get, words, repeat(self.unknown)))

    def text(self, ids: Iterable[int]) -> str:
        """The words with these ids, with blanks between them."""
        return " ".join(self.words[index] for index in ids)

    def nodes(self, text: Ints, first: Ints) -> list[Ints]:
        """For each n the node of the n-gram that ends at each token, (N,) each; -1 if the model lacks it.

        `first` (N,): the index at which the sentence of each token begins; no n-gram starts before it.
        """
        V, nodes = len(self.words), [text]
        positions = np.arange(len(text))
        for n in range(2, self.order + 1):
            context = np.concatenate([[-1], nodes[-1][:-1]])
            fits = (positions - first >= n - 1) & (context >= 0)
            here = np.full(len(text), -1, np.int64)
            here[fits] = self.find(n, context[fits] * V + text[fits])
            nodes.append(here)
        return nodes

    def find(self, n: int, keys: Ints) -> Ints:
        """Nodes of order n with these keys: (K,) -> (K,); -1 for keys that are not in the model."""
        level = self.levels[n - 1]
        if not len(level.keys):
            return np.full(len(keys), -1, np.int64)
        # Searches for sorted keys read memory in order.
        order = np.argsort(keys) if len(keys) > SORTED_SEARCH else slice(None)
        index = np.empty(len(keys), np.int64)
        index[order] = np.searchsorted(level.keys, keys[order])
        index = np.minimum(index, len(level.keys) - 1)
        return np.where(level.keys[index] == keys, index, -1)

    def flat_scores(self, text: Ints, first: Ints) -> Floats:
        """Natural log p of each token given the previous ones of its sentence: (N,). `text`, `first`: as
        returned by `flatten`. After COMPILED_FROM calls it runs as compiled code, if numba is installed."""
        self.calls += 1
        if self.calls == COMPILED_FROM and self.size <= COMPILED_NGRAMS:
            self.compiled = self.compile()
        if self.compiled:
            return self.compiled.flat_scores(text, first)
        nodes = self.nodes(text, first)
        total = self.levels[0].log10[text]
        backoff = np.zeros(len(text))  # of contexts longer than that of the n-gram found so far
        for n in range(2, self.order + 1):
            context = np.concatenate([[-1], nodes[n - 2][:-1]])
            context[first == np.arange(len(text))] = -1
            weight = np.where(context >= 0, self.levels[n - 2].backoff[context], 0.0)
            has_node = nodes[n - 1] >= 0
            backoff = np.where(has_node, 0.0, backoff + weight)
            total = np.where(has_node, self.levels[n - 1].log10[nodes[n - 1]], total)
        return LN10 * (total + backoff)

    def compile(self) -> CompiledModel | None:
        """The model for compiled queries; None without numba."""
        functions = compiled_queries.compiled()
        if functions is None:
            return None
        log10 = np.concatenate([level.log10 for level in self.levels])
        backoff = np.concatenate([level.backoff for level in self.levels])
        return CompiledModel(
            functions, len(self.words), [level.keys for level in self.levels], log10, backoff
        )

    def grams(self, n: int, rows: slice = slice(None)) -> Ints:
        """The word ids of n-grams of order n: (M, n). `rows`: which of them, by default all."""
        V, node = len(self.words), np.arange(*rows.indices(len(self.levels[n - 1].keys)))
        columns = []
        for size in range(n, 0, -1):
            key = self.levels[size - 1].keys[node] if size > 1 else node
            columns.append(key % V)
            node = key // V
        return np.stack(columns[::-1], 1)


def write_arpa(
    model: NgramModel, path: str | Path, progress: Callable[[int], None] = lambda count: None
) -> None:
    """Write an ARPA file; .gz compresses. `progress`: called with the number of n-grams of each block."""
    with files.Writing(str(path)) as out:
        for count, block in arpa_blocks(model):
            out.write(block)
            progress(count)


def arpa_blocks(model: NgramModel) -> Iterator[tuple[int, bytes]]:
    """Format an ARPA file. Yields its text in blocks, each with the number of n-grams in it."""
    sizes = [f"ngram {n}={len(level.keys)}\n" for n, level in enumerate(model.levels, 1)]
    yield 0, "".join(["\\data\\\n", *sizes]).encode()
    for n in range(1, model.order + 1):
        yield 0, f"\n\\{n}-grams:\n".encode()
        yield from section_blocks(model, n)
    yield 0, b"\n\\end\\\n"


def section_blocks(model: NgramModel, n: int) -> Iterator[tuple[int, bytes]]:
    """Format the n-grams of order n as lines: log10 p, tab, words, tab, log10 back-off. The highest order has
    no back-offs. Yields blocks of lines like `arpa_blocks`."""
    # A line is joined from pieces that include what follows them: p, the words before the last, the last
    # word, the back-off. All pieces of a block lie in one array of bytes.
    level, highest, V = model.levels[n - 1], n == model.order, len(model.words)
    texts = [(word + " ").encode() for word in model.words]
    # Readers drop a carriage return at the end of a line.
    ends = ["\t0\n" if word.endswith("\r") else "\n" for word in model.words] if highest else ["\t"] * V
    texts += [(word + end).encode() for word, end in zip(model.words, ends, strict=True)]
    lengths = np.fromiter(map(len, texts), np.int64, 2 * V)
    starts = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    pool = np.empty(total + 2 * BLOCK * NUMBER_BYTES, np.uint8)  # words, then the numbers of a block
    pool[:total] = np.frombuffer(b"".join(texts), np.uint8)
    for rows in blocks(len(level.keys), BLOCK):
        grams = model.grams(n, rows)
        grams[:, -1] += V
        piece_starts, piece_lengths = [starts[grams]], [lengths[grams]]
        for column, values in enumerate([level.log10] if highest else [level.log10, level.backoff]):
            numbers_text, skipped, sizes = format_numbers(values[rows], "\n" if column else "\t")
            first = total + column * BLOCK * NUMBER_BYTES
            pool[first : first + numbers_text.size] = numbers_text.ravel()
            position = column * len(piece_starts)  # p before the words, the back-off after them
            piece_starts.insert(position, (first + skipped + NUMBER_BYTES * np.arange(len(sizes)))[:, None])
            piece_lengths.insert(position, sizes[:, None])
        joined = join_pieces(pool, np.hstack(piece_starts).ravel(), np.hstack(piece_lengths).ravel())
        yield len(grams), joined


def round_as_arpa(model: NgramModel) -> None:
    """Round the numbers of a model, in place, to the eight digits of an ARPA file: it then equals the model
    that is read from its ARPA file."""
    for level in model.levels:
        for values in (level.log10, level.backoff):
            for rows in blocks(len(values)):
                values[rows] = round_numbers(values[rows])


def is_arpa(path: str | Path) -> bool:
    """Whether a file, compressed or not, begins like an ARPA file. DataError if it cannot be read."""
    with files.open_bytes(path) as stream, files.naming_unread(path):
        head = stream.read(64)
    return head.lstrip().startswith(b"\\data\\")


def read_arpa(path: str | Path, storage: ArrayStorage = MEMORY) -> NgramModel:
    """Read an ARPA file into arrays of `storage`; log10 p of -inf becomes MINUS_ALL. DataError with the line
    number if it is damaged, truncated, or not an ARPA file; OSError if the disk is full."""
    reader = ArpaReader(str(path))
    sizes = reader.header()
    words: dict[str, int] = {}
    levels = [reader.unigrams(sizes[0], words)]
    if UNK not in words:  # as in KenLM: a closed-vocabulary model gives unknown words almost no probability
        words[UNK] = len(words)
        only = levels[0]
        levels = [
            NgramOrder(
                keys=np.arange(len(words)),
                log10=np.append(only.log10, -100.0),
                backoff=np.append(only.backoff, 0.0),
            )
        ]
    for special in (BOS, EOS):
        if special not in words:
            raise DataError(f"{path}: no unigram {special}; expected a model of sentences")
    model = NgramModel(list(words), levels)
    for n, size in enumerate(sizes[1:], 2):
        model.levels.append(reader.section(model, n, size, n == len(sizes), storage))
    reader.end()
    return drop_empty_orders(model)


def drop_empty_orders(model: NgramModel) -> NgramModel:
    """Remove the highest orders without n-grams: all sentences are shorter, or all n-grams were pruned."""
    while model.order > 1 and not len(model.levels[-1].keys):
        model.levels.pop()
    return model


def keep_ngrams(
    model: NgramModel, retained: Sequence[NDArray[np.bool_]], storage: ArrayStorage = MEMORY
) -> NgramModel:
    """Build a model from a part of the n-grams of another. `retained`: for each order whether an n-gram
    stays, (M,). All unigrams must stay, and every n-gram with which a retained longer one begins. Orders that
    lose no n-gram share their arrays with `model`; the others are new arrays of `storage`. OSError if the
    disk is full."""
    V, result = len(model.words), NgramModel(model.words, [])
    renumbered: Ints | None = None  # rows of the order below in the new model; None: as they were
    for level, stays in zip(model.levels, retained, strict=True):
        if renumbered is None and stays.all():
            result.levels.append(level)
            continue
        keys = storage.select(level.keys, stays)
        if renumbered is not None:
            for rows in blocks(len(keys)):
                keys[rows] = renumbered[keys[rows] // V] * V + keys[rows] % V
        renumbered = np.cumsum(stays, out=storage.empty(len(stays), np.int64))
        renumbered -= 1
        log10, backoff = (storage.select(values, stays) for values in (level.log10, level.backoff))
        result.levels.append(NgramOrder(keys=keys, log10=log10, backoff=backoff))
    return drop_empty_orders(result)


class ArpaReader:
    """Reads an ARPA file, counting lines for error messages. Well-formed lines of n-grams are parsed in
    blocks; a block with any other line is parsed line by line."""

    def __init__(self, path: str) -> None:
        self.path, self.number = path, 0
        self.blocks = files.read_blocks(path)
        self.block, self.offset = b"", 0  # lines that were read from the file, and the index of the next one
        self.lines = files.decode_lines(self.numbered_lines(), path)

    def numbered_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the next lines with their numbers."""
        while self.fill():
            start, end = self.offset, self.block.find(b"\n", self.offset)
            self.offset = end + 1 if end >= 0 else len(self.block)
            self.number += 1
            yield self.number, self.block[start : end if end >= 0 else None]

    def fill(self) -> bool:
        """Whether there is another line; reads the next block if necessary."""
        if self.offset == len(self.block):
            self.block, self.offset = next(self.blocks, b""), 0
        return bool(self.block)

    def next(self) -> str:
        """Read the next line. DataError at the end of the file."""
        line = next(self.lines, None)
        if line is None:
            raise DataError(
                f"{self.path}:{self.number + 1}: the file ends here, expected more n-grams or \\end\\; was "
                "it copied whole?"
            )
        return line.rstrip("\r")

    def lines_ahead(self, most: int) -> bytes:
        """The next lines of the current block, at most `most`, not consumed; empty at the end of the file."""
        if not self.fill():
            return b""
        ends = np.flatnonzero(np.frombuffer(self.block, np.uint8)[self.offset :] == ord("\n"))
        return (
            self.block[self.offset : self.offset + int(ends[most - 1]) + 1]
            if most < len(ends)
            else self.block[self.offset :]
        )

    def error(self, expected: str, line: str) -> DataError:
        """A DataError that names the last line read and what was expected there."""
        return DataError(f"{self.path}:{self.number}: expected {expected}, found {shown(line, 60)}")

    def next_nonblank(self) -> str:
        """Read the next line that is not blank. DataError at the end of the file."""
        while not (line := self.next()).strip():
            pass
        return line

    def header(self) -> list[int]:
        """Read the header; returns the number of n-grams of each order. DataError if it is malformed."""
        if (line := self.next_nonblank()).strip() != "\\data\\":
            raise DataError(
                f"{self.path}:{self.number}: not an ARPA file: expected \\data\\, found {shown(line)}"
            )
        sizes: list[int] = []
        while (line := self.next()).startswith("ngram "):
            n, _, count = line[6:].partition("=")
            try:
                if numbers.count(n.strip()) != len(sizes) + 1:
                    raise ValueError
                sizes.append(numbers.count(count.strip()))
            except ValueError:
                raise self.error(f"'ngram {len(sizes) + 1}=COUNT'", line) from None
        if not sizes or line.strip():
            raise self.error("'ngram N=COUNT' lines and an empty line", line)
        return sizes

    def heading(self, n: int) -> None:
        """Read the first line of the section of order n. DataError for any other line."""
        if (line := self.next_nonblank()).strip() != f"\\{n}-grams:":
            raise self.error(f"\\{n}-grams:", line)

    def rows(self, n: int, size: int, highest: bool) -> Iterator[tuple[float, list[str], float]]:
        """Read the next `size` lines, n-grams of order n; yields log10 p, the words, and the log10 back-off
        (0 if there is none) of each. DataError for a malformed line. `highest`: whether n is the model's
        order, for messages."""
        for _ in range(size):
            line = self.next()
            parts = line.split("\t")
            if len(parts) == 1:
                parts = blank_fields(line, n)
            try:
                words = parts[1].split(" ")
                backoff = parse_logarithm(parts[2]) if len(parts) > 2 and parts[2] else 0.0
                values = parse_logarithm(parts[0]), backoff
                if len(words) != n or not all(words) or len(parts) > 3:
                    raise ValueError
                if not (values[0] <= 0 and math.isfinite(values[1])):
                    raise ValueError
            except (ValueError, IndexError):
                raise self.error(
                    f"log10 p, {n} words{'' if highest else ' and a back-off weight'}, a tab between them",
                    line,
                ) from None
            yield values[0], words, values[1]

    def unigrams(self, size: int, words: dict[str, int]) -> NgramOrder:
        """Read the section of `size` unigrams, and add their words and ids to `words`. DataError for a
        malformed line or a repeated word."""
        log10, backoff = array("d"), array("d")  # not sized by the header, which may be wrong
        self.heading(1)
        for row, (prob, gram, back) in enumerate(self.rows(1, size, False)):
            if words.setdefault(gram[0], row) != row:
                raise DataError(
                    f"{self.path}:{self.number}: the unigram {shown(gram[0])} is repeated; remove one of its "
                    "lines"
                )
            log10.append(prob)
            backoff.append(back)
        return NgramOrder(keys=np.arange(size), log10=finite(np.array(log10)), backoff=np.array(backoff))

    def section(
        self, model: NgramModel, n: int, size: int, highest: bool, storage: ArrayStorage
    ) -> NgramOrder:
        """Read the section of `size` n-grams of order n > 1. `model`: has all shorter n-grams. DataError for
        a malformed line, an unknown word, a repeated n-gram, or one whose first n - 1 words are not an
        n-gram; OSError if the disk is full."""
        table = WordLookup(model.words)
        keys = GrowingArray(storage, np.int64)  # not sized by the header, which may be wrong
        log10, backoff = GrowingArray(storage, np.float64), GrowingArray(storage, np.float64)
        self.heading(n)
        while keys.size < size:
            lines = self.lines_ahead(size - keys.size)
            rows = parse_rows(lines, n, table)
            if rows is None:
                rows = self.careful_rows(model, n, max(1, lines.count(b"\n")), highest)
            else:
                self.offset += len(lines)
                self.number += len(rows.log10)
            keys.add(self.ngram_keys(model, n, rows.grams, keys.size))
            log10.add(finite(rows.log10))
            backoff.add(rows.backoff)
        order = np.argsort(keys.values)
        ordered = storage.take(keys.values, order)
        if len(repeated := ordered[1:][ordered[1:] == ordered[:-1]]):
            parent, last = divmod(int(repeated[0]), len(model.words))
            gram = model.text([*model.grams(n - 1, slice(parent, parent + 1))[0], last])
            raise DataError(f"{self.path}: the {n}-gram {gram!r} is repeated; remove one of its lines")
        return NgramOrder(ordered, storage.take(log10.values, order), storage.take(backoff.values, order))

    def ngram_keys(self, model: NgramModel, n: int, grams: Ints, first: int) -> Ints:
        """The keys of n-grams: word ids (R, n) -> (R,). DataError for one whose first n - 1 words are not an
        n-gram of the model. `first`: the number of n-grams before these in their section."""
        V, parent = len(model.words), grams[:, 0]
        for k in range(2, n):
            parent = np.where(parent >= 0, model.find(k, parent * V + grams[:, k - 1]), -1)
        if parent.min(initial=0) < 0:
            row = int((parent < 0).argmax())
            raise DataError(
                f"{self.path}: {n}-gram {first + row + 1} ({model.text(grams[row])!r}): its first {n - 1} "
                f"words are not a {n - 1}-gram of this file; KenLM refuses this too"
            )
        return parent * V + grams[:, n - 1]

    def careful_rows(self, model: NgramModel, n: int, size: int, highest: bool) -> NgramRows:
        """Read the next `size` lines of a section one by one, with exact error messages: DataError for a
        malformed line, or a word that is not a unigram."""
        probs, backs, flat, get = array("d"), array("d"), array("q"), model.ids.get
        for prob, words, back in self.rows(n, size, highest):
            ids = [get(word, -1) for word in words]
            if -1 in ids:
                raise DataError(
                    f"{self.path}:{self.number}: {shown(words[ids.index(-1)])} is not a unigram of this file"
                )
            flat.extend(ids)
            probs.append(prob)
            backs.append(back)
        return NgramRows(np.array(probs), np.array(flat, np.int64).reshape(size, n), np.array(backs))

    def end(self) -> None:
        """Read the closing line. DataError for anything else."""
        if (line := self.next_nonblank()).strip() != "\\end\\":
            raise self.error("\\end\\", line)


def finite(log10: Floats) -> Floats:
    """log10 p, with MINUS_ALL in place of -inf: a search would subtract infinities from each other."""
    return np.where(np.isneginf(log10), MINUS_ALL, log10)


def blank_fields(line: str, n: int) -> list[str]:
    """The fields of a line that has blanks instead of tabs, as some tools write; empty for a blank line."""
    parts = files.split_words(line)
    return [parts[0], " ".join(parts[1 : n + 1]), *parts[n + 1 :]] if parts else []


# ---- files of any format -----------------------------------------------------------------------------------

KENLM = b"mmap lm "  # every binary file of KenLM begins with it


class KenLM:
    """A KenLM binary model. Words are scored one by one, since KenLM's own sentence scorer also splits at
    characters other than blanks."""

    vocab_size = 0  # unknown: not stored in the file

    def __init__(self, path: str) -> None:
        self.kenlm, self.model = load_kenlm(path)
        self.order = int(self.model.order)

    def knows(self, word: str) -> bool:
        return word in self.model

    def scores(self, texts: Sequence[Sequence[str]], whole: bool = True) -> list[Floats]:
        """Natural log p of each word of each text. `whole`: texts are sentences, which begin with <s>, and
        their ends are scored too."""
        return [self.text_scores(words, whole) for words in texts]

    def text_scores(self, words: Sequence[str], whole: bool) -> Floats:
        """Natural log p of each word of a text. `whole`: as in `scores`."""
        state, after = self.kenlm.State(), self.kenlm.State()
        if whole:
            self.model.BeginSentenceWrite(state)
        else:
            self.model.NullContextWrite(state)
        scores = []
        for word in [*words, EOS] if whole else words:
            scores.append(self.model.BaseScore(state, word, after))
            state, after = after, state
        return LN10 * np.array(scores, np.float64)


CountModel = NgramModel | TrieScorer | KenLM


def load_count_model(path: str | Path) -> CountModel:
    """Load an n-gram model from an ARPA file, optionally compressed, a folder of nmt-ngram compile, or a
    KenLM binary. ConfigError if a binary file needs the package kenlm and it is not installed, DataError for
    what is not an n-gram model."""
    path = str(path)
    if mapped.is_mapped(path):
        return TrieScorer(trie.load_trie(path))
    if not os.path.isfile(path):
        raise DataError(f"{path}: cannot read: no such file, expected an ARPA or KenLM file")
    if is_arpa(path):
        return read_arpa(path)
    with open(path, "rb") as stream:
        head = stream.read(len(KENLM))
    if head != KENLM:
        raise DataError(
            f"{path}: not an ARPA or KenLM file: it begins neither with \\data\\ nor with "
            f"{KENLM.decode().strip()!r}"
        )
    return KenLM(path)


def load_kenlm(path: str) -> tuple[Any, Any]:
    """Load a KenLM binary; returns the module kenlm and the model. ConfigError if kenlm is not installed,
    DataError if it cannot read the file."""
    try:
        import kenlm
    except ImportError as error:
        raise ConfigError(
            f"{path}: a binary model needs the package kenlm; install it with: pip install 'nmt-smt[kenlm]', "
            "or give the ARPA file"
        ) from error
    try:
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        return kenlm, kenlm.Model(path, config)
    except (OSError, RuntimeError, ValueError) as error:
        text = str(error).split("\n")[0].split("Byte:")[0]
        raise DataError(f"{path}: not a KenLM file, or of another version ({text[:150]})") from error
