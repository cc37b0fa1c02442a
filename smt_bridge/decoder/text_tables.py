"""Reads Moses' text tables, a phrase table and its lexical reordering table, as a PhraseTable.

A table may have tens of millions of rows. It is read in blocks; of a row only numbers are kept, in an
ArrayStorage, which may be on disk. Words and the hash tables of phrases are in memory.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress, islice, zip_longest
from operator import ne
from typing import Generic, NoReturn

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import HAVE_NUMBA, njit
from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from nmt.io.mapped import MEMORY, ArrayStorage, NumberT, blocks
from smt_bridge.decoder.phrases import (
    Bytes,
    GrowingTrie,
    Int32s,
    Int64s,
    concatenate_texts,
    new_vocabulary,
    word_ids,
)
from smt_bridge.decoder.table import Floats32, Ints, PhraseTable, smallest
from smt_bridge.moses.reordering import PROBABILITIES, ReorderingType

log = logging.getLogger(__name__)

FLOOR = -100.0  # used for the logarithm of 0, as in Moses
BLOCK = 1 << 16  # rows that are text at the same time

# ---- table checks ------------------------------------------------------------------------------------------
# The checks of `smt-ini check`, applied to a table while it is read. Checking every line, as
# nmt.formats.phrase_table does, takes longer than reading the table. So the phrases and alignments of a block
# are checked together; only if that finds a problem are its lines checked one by one.


SPACE, LINE_END = b" \n"
TAB, POINT, PLUS, MINUS, ZERO, NINE, SMALL_E, LARGE_E = b"\t.+-09eE"
SCORE_BYTES = b"0123456789.eE+- \t"  # of decimal numbers and the blanks between them
IMPOSSIBLE = 1 << 30  # more words than a phrase has
EXACT_INTEGER = 1 << 53  # up to which all integers are doubles
POWERS = np.array([10.0**power for power in range(23)])  # those that are exact


def check_line(line: bytes, location: str) -> PhrasePair:
    """Parse a line of a phrase table. DataError for a line that Moses refuses or misreads, and for sparse
    features, which the embedded engine does not support. `location`: file:line, for messages."""
    pair = phrase_table.parse(line, location)
    phrase_table.check(pair, location)
    fields = pair.fields()
    if len(fields) > 5 and fields[5]:
        name = fields[5].split()[0][:60].decode("utf-8", "replace")
        raise DataError(
            f"{location}: sparse feature {name!r}, which the embedded engine does not have; empty the sixth "
            "field of the table, or decode with Moses"
        )
    return pair


def check_lines(lines: Sequence[bytes], columns: int, path: str, first: int = 1) -> None:
    """Check lines of a phrase table one by one. DataError for the first mistake, and for lines without
    `columns` scores. `path`, `first`: of the file, and the number of the first line in it."""
    for number, line in enumerate(lines, first):
        location = f"{path}:{number}"
        count = len(check_line(line, location).scores.split())
        if count != columns:
            raise DataError(
                f"{location}: {count} scores, but the ini says num-features={columns}; give the table that "
                "belongs to the ini"
            )


def sound_phrase_lengths(phrases: Sequence[bytes]) -> Int64s | None:
    """The number of words of each phrase (N,), if all are UTF-8 and free of characters that have a special
    meaning in Moses (factors, non-terminals).

    Otherwise None; also for tabs, repeated spaces and empty phrases, which are rare enough to be checked line
    by line."""
    text = b"\n".join(phrases)
    if not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            return None
    if (
        any(sign in text for sign in (b"|", b"\0", b"\t", b"  ", b"\n\n", b"\xef\xbb\xbf"))
        or text.startswith(b"\n")
        or text.endswith(b"\n")
    ):
        return None
    if b"[" in text and any(word[:1] == b"[" and word[-1:] == b"]" for word in text.split()):
        return None
    signs = np.frombuffer(text, np.uint8)
    gaps = np.flatnonzero((signs == SPACE) | (signs == LINE_END))
    ends = np.append(np.flatnonzero(signs[gaps] == LINE_END), len(gaps))
    return np.diff(ends, prepend=-1)


def alignment_sizes(alignments: Sequence[bytes]) -> Int64s:
    """The minimum number of source and of target words that each alignment requires, IMPOSSIBLE if it is not
    of the form 0-0 1-1: (A, 2)"""
    needed = []
    for alignment in alignments:
        positions = alignment.replace(b"-", b" ").split()
        if not phrase_table.ALIGNMENT.fullmatch(alignment):
            needed.append((IMPOSSIBLE, IMPOSSIBLE))
        elif positions:
            needed.append((1 + max(map(int, positions[::2])), 1 + max(map(int, positions[1::2]))))
        else:
            needed.append((0, 0))
    return np.array(needed, np.int64).reshape(-1, 2)


def single_blanks(phrase: bytes) -> bytes:
    """Replace tabs and repeated blanks between the words of a phrase by single blanks."""
    return b" ".join(filter(None, phrase.replace(b"\t", b" ").split(b" ")))


# ---- scores ------------------------------------------------------------------------------------------------


def log_scores(texts: Sequence[bytes], columns: int) -> tuple[Floats32, bool]:
    """Parse the probabilities in the score fields of N rows, and return their natural logarithms, at least
    FLOOR: (N, columns); also returns whether all fields consist of SCORE_BYTES. ValueError for fields that
    cannot be read."""
    values, sound = np.empty((len(texts), columns)), True
    odd = np.ones(len(texts), bool)
    if HAVE_NUMBA:
        parse_decimals(np.frombuffer(b"\n".join([*texts, b""]), np.uint8), values, odd)
    if odd.any():
        others = list(compress(texts, odd.tolist()))
        sound = not b"".join(others).translate(None, SCORE_BYTES)
        if not sound:  # such as `inf`
            others = [text.strip(b" \t\r") for text in others]
        values[odd] = numbers(others, columns)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values), FLOOR).astype(np.float32), sound


def numbers(texts: Sequence[bytes], columns: int) -> NDArray[np.float64]:
    """Parse the N score fields `texts` to probabilities: (N, columns). ValueError for the wrong number of
    scores, and for values that are negative or too large for single precision."""
    if not any(text.strip() for text in texts):  # numpy would warn
        raise ValueError
    values = np.loadtxt(texts, np.float64, comments=None, ndmin=2, encoding="ascii")
    if values.shape != (len(texts), columns) or not ((values >= 0) & (values <= phrase_table.LARGEST)).all():
        raise ValueError
    return values


@njit
def parse_decimals(text: Bytes, values: NDArray[np.float64], odd: NDArray[np.bool_]) -> None:
    """Parse the decimal numbers of N lines: sets `values` (N, columns), and `odd` (N,) where a line has
    anything else. The numbers are those that are nearest to the decimals: an integer of at most 53 bits
    times or divided by an exact power of 10 is rounded once (Clinger 1990); others are odd too.

    `text`: the lines, each with its line end."""
    at, columns = 0, values.shape[1]
    for row in range(len(values)):
        column, plain = 0, True
        while text[at] != LINE_END:
            if text[at] == SPACE or text[at] == TAB:
                at += 1
                continue
            mantissa, exponent, digits, fraction = 0, 0, 0, 0
            while ZERO <= text[at] <= NINE or (text[at] == POINT and not fraction):
                if text[at] == POINT:
                    fraction = 1
                else:
                    digits += 1
                    exponent -= fraction
                    if mantissa <= EXACT_INTEGER:
                        mantissa = 10 * mantissa + int(text[at]) - ZERO
                at += 1
            if digits and (text[at] == SMALL_E or text[at] == LARGE_E):
                at += 1
                negative = text[at] == MINUS
                if negative or text[at] == PLUS:
                    at += 1
                power, digits = 0, 0
                while ZERO <= text[at] <= NINE:
                    digits += 1
                    power = min(10 * power + int(text[at]) - ZERO, 1000)
                    at += 1
                exponent += -power if negative else power
            if (
                not digits
                or mantissa > EXACT_INTEGER
                or abs(exponent) >= len(POWERS)
                or column == columns
                or not (text[at] == SPACE or text[at] == TAB or text[at] == LINE_END)
            ):
                plain = False
                while text[at] != LINE_END:
                    at += 1
                break
            if exponent < 0:
                values[row, column] = mantissa / POWERS[-exponent]
            else:
                values[row, column] = mantissa * POWERS[exponent]
            column += 1
        odd[row] = not plain or column < columns
        at += 1


def refuse_reordering(lines: Sequence[bytes], path: str, first: int, columns: int) -> NoReturn:
    """Raise the DataError, with the line, for lines of a reordering table that do not have `columns` scores,
    or with scores that cannot be read. `path`, `first`: as in `check_lines`."""
    for number, line in enumerate(lines, first):
        parts = line.split(b"|||", 3)
        try:
            numbers(parts[2:3], columns)
        except ValueError:
            raise DataError(
                f"{path}:{number}: expected source ||| target ||| {columns} probabilities, "
                f"found {line[:60]!r}"
            ) from None
    raise DataError(f"{path}: cannot be read as a reordering table")


# ---- lines -------------------------------------------------------------------------------------------------


def read_line_blocks(path: str) -> Iterator[list[bytes]]:
    """Yield the lines of a file, BLOCK at a time."""
    lines = chain.from_iterable(map(files.block_lines, files.read_blocks(path)))
    while block := list(islice(lines, BLOCK)):
        yield block


def split_evenly(lines: Sequence[bytes]) -> list[list[bytes]] | None:
    """Split N lines at ||| into their fields: C lists, one for each column, of N fields. None if not all
    lines have the same number of fields. In half the time that splitting line by line takes."""
    columns = lines[0].count(b"|||") + 1
    fields = b"|||\n|||".join(lines).split(b"|||")
    width = columns + 1  # a line end is a field of its own
    if len(fields) != width * len(lines) - 1 or fields[columns::width].count(b"\n") != len(lines) - 1:
        return None
    return [fields[column::width] for column in range(columns)]


def split_table(lines: Sequence[bytes], path: str, first: int) -> list[list[bytes]]:
    """Split lines of a phrase table to sources, targets, scores and alignments. DataError for a line that
    does not have the fields of a phrase table; `path`, `first`: as in `check_lines`."""
    columns = split_evenly(lines)
    if columns and ends_as_usual(*map(set, columns[5:]), count=len(columns)):
        return [*columns, [b""] * len(lines)][:4]
    rows = [line.split(b"|||") for line in lines]
    for number, (line, fields) in enumerate(zip(lines, rows, strict=True), first):
        if not ends_as_usual(*({field} for field in fields[5:]), count=len(fields)):
            check_line(line, f"{path}:{number}")
    return [[fields[column] if column < len(fields) else b"" for fields in rows] for column in range(4)]


def ends_as_usual(*fields: set[bytes], count: int) -> bool:
    """Whether lines have 3 to 7 fields, and nothing in the sixth and the seventh, as in lines that end in
    ||| |||. `count`: number of fields of each line; `fields`: the different contents of the sixth field and,
    if there is one, of the seventh."""
    return 3 <= count <= 7 and all(field <= {text} for field, text in zip(fields, (b" ", b""), strict=False))


def split_reordering(lines: Sequence[bytes]) -> list[list[bytes]] | None:
    """Split lines of a reordering table to sources, targets and scores; None if one lacks them."""
    columns = split_evenly(lines)
    if not columns:
        rows = [line.split(b"|||", 3) for line in lines]
        columns = [list(column) for column in zip(*rows, strict=False)]  # as many as all have
    return columns[:3] if len(columns) > 2 else None


def reordering_columns(path: str) -> int:
    """The number of probabilities in the first line of a reordering table; that of the usual type if no type
    has so many, so that the line is refused."""
    line = next(chain.from_iterable(map(files.block_lines, files.read_blocks(path))), b"")
    count = sum(len(field.split()) for field in line.split(b"|||")[2:3])
    return count if count in PROBABILITIES else ReorderingType().probabilities


# ---- rows --------------------------------------------------------------------------------------------------


class GrowingRows(Generic[NumberT]):
    """The rows of an array, added block by block. They are kept in a few parts: each new one has space for a
    quarter of the rows before it, or for the added block if that is larger."""

    def __init__(self, storage: ArrayStorage, kind: type[NumberT]) -> None:
        self.storage, self.kind = storage, kind
        self.parts: list[NDArray[NumberT]] = []
        self.size = self.space = 0  # rows, and those that the parts have space for

    def add(self, rows: NDArray[NumberT]) -> None:
        """Add rows (N, width). OSError if the disk is full."""
        while len(rows):
            if self.size == self.space:
                shape = max(len(rows), self.size // 4), rows.shape[1]
                self.parts.append(self.storage.empty(shape, self.kind))
                self.space += shape[0]
            free = self.space - self.size
            last, here = self.parts[-1], rows[:free]
            last[len(last) - free :][: len(here)] = here
            self.size += len(here)
            rows = rows[free:]

    def blocks(self) -> Iterator[NDArray[NumberT]]:
        """Yield all rows, in blocks."""
        left = self.size
        for part in self.parts:
            for rows in blocks(min(left, len(part))):
                yield part[rows]
            left -= len(part)


class RowCollector:
    """Collects the rows of a phrase table while it is read. Words and distinct alignments are stored once,
    phrases are nodes of tries, and each row has numbers of them."""

    def __init__(self, path: str, columns: int, storage: ArrayStorage = MEMORY) -> None:
        self.path, self.columns, self.storage = path, columns, storage
        self.vocabulary = new_vocabulary()
        self.sources, self.targets = GrowingTrie(storage), GrowingTrie(storage)
        self.alignments = new_vocabulary()
        self.alignment_sizes = np.zeros((0, 2), np.int64)  # see alignment_sizes()
        self.numbers = GrowingRows(storage, np.int32)  # of each row: source and target node, alignment
        self.scores = GrowingRows(storage, np.float32)  # all scores of a row, those of reordering last

    @property
    def next_line(self) -> int:
        return self.numbers.size + 1

    def split(self, lines: Sequence[bytes]) -> list[list[bytes]]:
        """Split the next lines of the table, as `split_table` does."""
        return split_table(lines, self.path, self.next_line)

    def add(self, lines: Sequence[bytes], fields: Sequence[list[bytes]], reordering: Floats32) -> None:
        """Add the next N lines of the table. `fields`: of these lines, by `split`; `reordering`: their
        reordering scores, natural logarithms, (N, K), or (N, 0) without a reordering table. DataError for the
        first line with anything that Moses refuses or misreads."""
        try:
            scores, sound = log_scores(fields[2], self.columns)
        except ValueError:
            check_lines(lines, self.columns, self.path, self.next_line)
            raise DataError(f"{self.path}: cannot be read as a phrase table") from None
        sources, targets = ([field.strip(b" \t") for field in column] for column in fields[:2])
        is_new = [True, *map(ne, sources[1:], sources)]  # tables are sorted by source
        sources, source_of = list(compress(sources, is_new)), np.cumsum(is_new) - 1
        alignment_of = np.fromiter(map(self.alignments.__getitem__, fields[3]), np.int32, len(lines))
        if not (sound and self.fits(alignment_of, sources, source_of, targets)):
            check_lines(lines, self.columns, self.path, self.next_line)
            sources, targets = list(map(single_blanks, sources)), list(map(single_blanks, targets))
        source_nodes = self.sources.add(*word_ids(sources, self.vocabulary))[source_of]
        target_nodes = self.targets.add(*word_ids(targets, self.vocabulary))
        self.numbers.add(np.stack([source_nodes, target_nodes, alignment_of], 1))
        self.scores.add(np.hstack([scores, reordering]))

    def fits(
        self, alignment_of: Int32s, sources: Sequence[bytes], source_of: Int64s, targets: Sequence[bytes]
    ) -> bool:
        """Whether it is certain that phrases contain nothing that Moses refuses or misreads, and that
        alignments are within them. `sources`: without those that repeat the source of the row before;
        `targets`: of all N rows; `source_of`, `alignment_of` (N,): indices of each row's source in `sources`
        and of its alignment in `self.alignments`."""
        new = len(self.alignments) - len(self.alignment_sizes)
        added = list(islice(reversed(self.alignments), new))[::-1]
        self.alignment_sizes = np.concatenate([self.alignment_sizes, alignment_sizes(added)])
        source_lengths, target_lengths = sound_phrase_lengths(sources), sound_phrase_lengths(targets)
        if source_lengths is None or target_lengths is None:
            return False
        needed = self.alignment_sizes[alignment_of]
        return bool(
            (needed[:, 0] <= source_lengths[source_of]).all() and (needed[:, 1] <= target_lengths).all()
        )

    def table(self) -> PhraseTable:
        """Build the table, grouped by source phrase; within a group rows stay in the order of the file. Rows
        cannot be added after that. DataError for an empty file, OSError if the disk is full."""
        if not self.numbers.size:
            raise DataError(f"{self.path}: empty file, expected a phrase table")
        make, rows = self.storage.empty, self.numbers.size
        words = sorted(self.vocabulary)
        rank = np.zeros(len(words), np.int32)
        rank[[self.vocabulary[word] for word in words]] = np.arange(len(words), dtype=np.int32)
        self.targets.slots = np.zeros(0, np.int32)  # sorting the sources needs memory too
        sources, source_number = self.sources.sort(rank)
        targets, target_number = self.targets.sort(rank)
        alignments = new_vocabulary()
        alignment_number = smallest(
            np.array([alignments[text.strip(b" \t\r")] for text in self.alignments], np.int64),
            np.uint8, np.uint16, np.int32,
        )  # fmt: skip
        starts = self.starts(source_number)
        ends = make(len(starts), starts.dtype.type)
        ends[:] = starts
        width = self.scores.parts[0].shape[1]
        target, alignment = make(rows, np.int32), make(rows, alignment_number.dtype.type)
        scores, reordering = (
            make((rows, count), np.float32) for count in (self.columns, width - self.columns)
        )
        for indices, values in zip(self.numbers.blocks(), self.scores.blocks(), strict=True):
            positions = place_rows(indices, source_number, ends)
            target[positions] = target_number[indices[:, 1]]
            alignment[positions] = alignment_number[indices[:, 2]]
            scores[positions], reordering[positions] = values[:, : self.columns], values[:, self.columns :]
        word_text, word_cut = concatenate_texts(words)
        alignment_text, alignment_cut = concatenate_texts(list(alignments))
        return PhraseTable(
            source_count=sum(
                int(np.count_nonzero(starts[1:][nodes] > starts[nodes])) for nodes in blocks(len(starts) - 1)
            ),
            word_text=word_text,
            word_cut=smallest(word_cut, np.int32, np.int64),
            source_word=smallest(sources.word, np.uint16, np.int32, storage=self.storage),
            source_children=sources.children(self.storage),
            source_levels=sources.levels,
            starts=starts,
            target_word=smallest(targets.word, np.uint16, np.int32, storage=self.storage),
            target_parent=targets.parent,
            target_levels=targets.levels,
            target=target,
            scores=scores,
            reordering=reordering,
            alignment=alignment,
            alignment_text=alignment_text,
            alignment_cut=smallest(alignment_cut, np.int32, np.int64),
            score_values=np.zeros((self.columns, 0), np.float32),
            reordering_row=np.zeros(0, np.int32),
            reordering_values=np.zeros((width - self.columns, 0), np.float32),
        )

    def starts(self, source_number: Int32s) -> Ints:
        """The number of rows before those of each source node, and at the end that of all rows: (N + 2,).
        `source_number` (N + 1,): the new number of each node."""
        is_small = self.numbers.size <= np.iinfo(np.int32).max
        starts: Ints = self.storage.empty(len(source_number) + 1, np.int32 if is_small else np.int64)
        starts[:] = 0
        for indices in self.numbers.blocks():
            count_rows(indices, source_number, starts)
        return np.cumsum(starts, dtype=starts.dtype, out=starts)


@njit
def count_rows(indices: Int32s, source_number: Int32s, starts: Ints) -> None:
    """Add the number of rows of each source node n to starts[n + 1]. `indices` (N, 3): the source node as the
    row collector numbers it, target node and alignment of each row; `source_number`: the new number of each
    source node, by which `starts` is ordered."""
    for row in range(len(indices)):
        starts[source_number[indices[row, 0]] + 1] += 1


@njit
def place_rows(indices: Int32s, source_number: Int32s, ends: Ints) -> Int64s:
    """Choose the position of each of N rows in the table, (N,): the next free row of its source node. Call it
    with the rows block by block. `indices`, `source_number`: as in `count_rows`; `ends`: the next free row of
    each source node, which is advanced past these rows."""
    positions = np.empty(len(indices), np.int64)
    for row in range(len(indices)):
        node = source_number[indices[row, 0]]
        positions[row] = ends[node]
        ends[node] += 1
    return positions


# ---- tables ------------------------------------------------------------------------------------------------


def read_table(
    path: str,
    columns: int,
    reordering: str | None,
    storage: ArrayStorage = MEMORY,
    progress: Callable[[int], object] = int,
) -> PhraseTable:
    """Read a phrase table of `columns` scores from text, with its reordering table if `reordering` is not
    None. DataError, with the line, for the wrong number of scores and for anything that Moses would refuse or
    misread. Logs a warning if the reordering table lacks pairs.

    `storage`: of the arrays, those of the table and others, about 200 bytes for each row; OSError if its disk
    is full. `progress`: called with the number of rows of each block; tables that turn out to have different
    pairs, or another order, are read again without calling it."""
    if reordering:
        both = read_side_by_side(path, columns, reordering, storage, progress)
        return (both or read_with_lookup(path, columns, reordering, storage)).table()
    rows = RowCollector(path, columns, storage)
    for lines in read_line_blocks(path):
        rows.add(lines, rows.split(lines), np.zeros((len(lines), 0), np.float32))
        progress(len(lines))
    return rows.table()


def read_side_by_side(
    path: str, columns: int, reordering: str, storage: ArrayStorage, progress: Callable[[int], object]
) -> RowCollector | None:
    """Read both tables side by side; parameters and errors as in `read_table`. None if the tables do not have
    the same pairs in the same order."""
    rows, width = RowCollector(path, columns, storage), reordering_columns(reordering)
    for both in zip_longest(read_line_blocks(path), read_line_blocks(reordering)):
        lines, others = (block or [] for block in both)
        pairs = split_reordering(others) if others else None
        fields = rows.split(lines) if lines else []
        if pairs is None or fields[:2] != pairs[:2]:
            return None
        try:
            scores, _ = log_scores(pairs[2], width)
        except ValueError:
            refuse_reordering(others, reordering, rows.next_line, width)
        rows.add(lines, fields, scores)
        progress(len(lines))
    return rows


def read_with_lookup(path: str, columns: int, reordering: str, storage: ArrayStorage) -> RowCollector:
    """Read both tables and look up reordering scores by phrases, which are all in memory; they are nan for
    pairs that the reordering table lacks, and these are counted in a warning. Parameters and errors as in
    `read_table`; DataError also for a line of the reordering table without three fields."""
    keys, values = read_reordering(reordering)
    rows, missing = RowCollector(path, columns, storage), 0
    for lines in read_line_blocks(path):
        fields = rows.split(lines)
        pairs = zip(*([field.strip(b" \t") for field in column] for column in fields[:2]), strict=True)
        indices = np.array([keys.get(pair, -1) for pair in pairs])  # -1: the last row, of nan
        missing += int((indices < 0).sum())
        rows.add(lines, fields, values[indices])
    if missing:
        log.warning(
            "%s: no row for %s pairs of %s; they get default-scores= of the ini; without it their "
            "reordering costs nothing, a bonus over all others",
            reordering,
            f"{missing:,}",
            path,
        )
    return rows


def read_reordering(path: str) -> tuple[dict[tuple[bytes, bytes], int], Floats32]:
    """Read a reordering table of R rows: returns the row of each pair, and the scores of all rows, natural
    logarithms, with a last row of nan: (R + 1, K). DataError, with the line, for one that cannot be read."""
    keys: dict[tuple[bytes, bytes], int] = {}
    values, first, width = list[Floats32](), 1, reordering_columns(path)
    for lines in read_line_blocks(path):
        fields = split_reordering(lines)
        if fields is None:
            for number, line in enumerate(lines, first):
                if (count := line.count(b"|||") + 1) < 3:
                    raise DataError(
                        f"{path}:{number}: {count} fields, expected source ||| target ||| {width} "
                        "probabilities"
                    )
            raise DataError(f"{path}: cannot be read as a reordering table")
        pairs = zip(*([field.strip(b" \t") for field in column] for column in fields[:2]), strict=True)
        keys.update((pair, number - 1) for number, pair in enumerate(pairs, first))
        try:
            values.append(log_scores(fields[2], width)[0])
        except ValueError:
            refuse_reordering(lines, path, first, width)
        first += len(lines)
    if not values:
        raise DataError(f"{path}: empty file, expected a reordering table")
    return keys, np.vstack([*values, np.full((1, width), np.nan, np.float32)])
