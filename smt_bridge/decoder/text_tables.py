"""Reads Moses' text tables, a phrase table and its lexical reordering table, as a PhraseTable."""

import logging
from array import array
from collections.abc import Callable, Iterable
from functools import partial
from itertools import zip_longest
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from smt_bridge.decoder.phrases import build_trie, concatenate_texts, new_vocabulary, word_ids
from smt_bridge.decoder.table import PhraseTable, smallest

log = logging.getLogger(__name__)

FLOOR = -100.0  # used for the logarithm of 0, as in Moses
BLOCK = 1 << 16  # rows whose scores are kept as text
REORDERING_SCORES = 6

# ---- table checks ------------------------------------------------------------------------------------------
# The checks of `smt-ini check`, applied to a table while it is read. Checking every line, as
# nmt.formats.phrase_table does, takes longer than reading the table. So `RowCollector.sound` first checks
# distinct phrases and alignments; only if it finds a problem are lines checked one by one.


Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
SPACE, LINE_END = b" \n"
SCORE_BYTES = b"0123456789.eE+- \t"


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


def check_lines(path: str, columns: int) -> None:
    """Check a phrase table line by line. DataError for the first mistake, for lines without `columns` scores,
    and for an empty file."""
    number = 0
    for number, line in enumerate(files.read_byte_lines(path), 1):
        location = f"{path}:{number}"
        count = len(check_line(line, location).scores.split())
        if count != columns:
            raise DataError(
                f"{location}: {count} scores, but the ini says num-features={columns}; give the table that "
                "belongs to the ini"
            )
    if not number:
        raise DataError(f"{path}: empty file, expected a phrase table")


def sound_phrase_lengths(phrases: Iterable[bytes]) -> Ints | None:
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


def sound_alignment_sizes(alignments: Iterable[bytes]) -> Ints | None:
    """The minimum number of source and of target words that each distinct alignment requires: (A, 2). None if
    an alignment is not of the form 0-0 1-1."""
    needed = []
    for alignment in alignments:
        if not phrase_table.ALIGNMENT.fullmatch(alignment):
            return None
        numbers = alignment.replace(b"-", b" ").split()
        needed.append(
            (1 + max(map(int, numbers[::2])), 1 + max(map(int, numbers[1::2]))) if numbers else (0, 0)
        )
    return np.array(needed, np.int64).reshape(-1, 2)


# ---- scores ------------------------------------------------------------------------------------------------


class ScoreReader:
    """Reads the score fields of a table as natural logarithms. At most BLOCK rows are kept as text."""

    def __init__(self, columns: int, refuse: Callable[[], NoReturn]) -> None:
        """`columns`: number of scores of a row; `refuse`: raises the error for fields that cannot be read."""
        self.columns, self.refuse = columns, refuse
        self.texts: list[bytes] = []
        self.blocks: list[Floats] = []
        self.sound = True  # whether the fields consist of SCORE_BYTES

    def add(self, text: bytes) -> None:
        """Add the score field of the next row. Calls `refuse` for a field that cannot be read, possibly only
        in a later call."""
        self.texts.append(text)
        if len(self.texts) == BLOCK:
            self.flush()

    def flush(self) -> None:
        """Parse the fields that are still text. Calls `refuse` for one that cannot be read."""
        if b"".join(self.texts).translate(None, SCORE_BYTES):  # such as `inf`
            self.sound = False
            self.texts = [text.strip(b" \t\r") for text in self.texts]
        try:
            self.blocks.append(natural_logs(numbers(self.texts, self.columns)))
        except ValueError:
            self.refuse()
        self.texts = []

    def values(self) -> Floats:
        """The natural logarithms of all scores, FLOOR at least: (R, columns). Calls `refuse` for a field that
        cannot be read, and if there are no rows."""
        if self.texts or not self.blocks:
            self.flush()
        return np.concatenate(self.blocks)


def numbers(texts: list[bytes], columns: int) -> NDArray[np.float64]:
    """Parse the N score fields `texts` to probabilities: (N, columns). ValueError for the wrong number of
    scores, and for values that are negative or too large for single precision."""
    if not any(text.strip() for text in texts):  # numpy would warn
        raise ValueError
    values = np.loadtxt(texts, np.float64, comments=None, ndmin=2, encoding="ascii")
    if values.shape != (len(texts), columns) or not ((values >= 0) & (values <= phrase_table.LARGEST)).all():
        raise ValueError
    return values


def natural_logs(values: NDArray[np.float64]) -> Floats:
    """Natural logarithms of probabilities, FLOOR at least."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values), FLOOR).astype(np.float32)


def refuse_table(path: str, columns: int) -> NoReturn:
    """Raise the DataError, with the line, for a phrase table with scores that cannot be read."""
    check_lines(path, columns)
    raise DataError(f"{path}: cannot be read as a phrase table")


def refuse_reordering(path: str) -> NoReturn:
    """Raise the DataError, with the line, for a reordering table with scores that cannot be read."""
    for number, line in enumerate(files.read_byte_lines(path), 1):
        parts = line.split(b"|||", 3)
        try:
            numbers(parts[2:3], REORDERING_SCORES)
        except ValueError:
            raise DataError(
                f"{path}:{number}: expected source ||| target ||| 6 probabilities "
                f"(msd-bidirectional-fe), found {line[:60]!r}"
            ) from None
    raise DataError(f"{path}: empty file, expected a reordering table")


# ---- rows --------------------------------------------------------------------------------------------------


class RowCollector:
    """Collects the rows of a phrase table while the file is read. Distinct phrases and alignments are stored
    once, and each row has their numbers."""

    def __init__(self, path: str, columns: int) -> None:
        self.path, self.columns = path, columns
        self.sources: dict[bytes, int] = {}
        self.targets: dict[bytes, int] = {}
        self.alignments: dict[bytes, int] = {}
        self.source_of = array("i")
        self.target_of = array("i")
        self.alignment_of = array("i")
        self.scores = ScoreReader(columns, partial(refuse_table, path, columns))

    def add(self, line: bytes) -> None:
        """Add the next line of the table. DataError for one that does not have the fields of a phrase table,
        and for scores that cannot be read, possibly only in a later call."""
        parts = line.split(b"|||")
        count = len(parts)
        if count < 3 or (
            count > 5 and (count > 7 or parts[5] != b" " or (count == 7 and parts[6]))
        ):  # does not end in ||| |||, as lines usually do
            check_line(line, f"{self.path}:{len(self.source_of) + 1}")
        self.source_of.append(self.sources.setdefault(parts[0].strip(b" \t"), len(self.sources)))
        self.target_of.append(self.targets.setdefault(parts[1].strip(b" \t"), len(self.targets)))
        self.scores.add(parts[2])
        self.alignment_of.append(
            self.alignments.setdefault(parts[3] if count > 3 else b"", len(self.alignments))
        )

    def check(self) -> None:
        """DataError for the first line with anything that Moses refuses or misreads. Also replaces tabs and
        repeated blanks between two words by a single blank."""
        if not self.sound():
            check_lines(self.path, self.columns)
            self.sources, self.source_of = single_blanks(self.sources, self.source_of)
            self.targets, self.target_of = single_blanks(self.targets, self.target_of)

    def sound(self) -> bool:
        """Whether it is certain that no line contains anything that Moses refuses or misreads."""
        sources, targets = sound_phrase_lengths(self.sources), sound_phrase_lengths(self.targets)
        needed = sound_alignment_sizes(self.alignments)
        if sources is None or targets is None or needed is None or not self.scores.sound:
            return False
        wanted = needed[as_int32(self.alignment_of)]
        return bool(
            (wanted[:, 0] <= sources[as_int32(self.source_of)]).all()
            and (wanted[:, 1] <= targets[as_int32(self.target_of)]).all()
        )


def single_blanks(phrases: dict[bytes, int], rows: "array[int]") -> tuple[dict[bytes, int], "array[int]"]:
    """Replace tabs and repeated blanks in phrases, some of which may become equal. Returns the phrases with
    their new numbers, and the new number of each row's phrase. `phrases`: with their old numbers, in order
    from 0; `rows`: old number of each row's phrase."""
    changed: dict[bytes, int] = {}
    for_old = [
        changed.setdefault(b" ".join(filter(None, phrase.replace(b"\t", b" ").split(b" "))), len(changed))
        for phrase in phrases
    ]
    return changed, array("i", (for_old[row] for row in rows))


def as_int32(numbers: "array[int]") -> NDArray[np.int32]:
    """View the numbers as a numpy array, which shares their memory."""
    return np.frombuffer(numbers, np.int32)


def read_table(path: str, columns: int, reordering: str | None) -> PhraseTable:
    """Read a phrase table of `columns` scores from text, with its reordering table if `reordering` is not
    None. DataError, with the line, for the wrong number of scores and for anything that Moses would refuse or
    misread. Logs a warning if the reordering table lacks pairs."""
    collector = RowCollector(path, columns)
    reordering_scores = np.zeros((0, 0), np.float32)
    if reordering:
        both = read_side_by_side(collector, reordering)
        collector, reordering_scores = both if both else read_with_lookup(path, columns, reordering)
    else:
        for line in files.read_byte_lines(path):
            collector.add(line)
    scores = collector.scores.values()
    collector.check()
    return build_table(collector, scores, reordering_scores)


def read_side_by_side(collector: RowCollector, reordering: str) -> tuple[RowCollector, Floats] | None:
    """Read both tables side by side. `collector`: for the rows of the phrase table, empty at first. Returns
    it and the rows' reordering scores (R, 6); None if the tables do not have the same pairs in the same
    order. DataError, with the line, for scores that cannot be read."""
    scores = ScoreReader(REORDERING_SCORES, partial(refuse_reordering, reordering))
    pairs = zip_longest(files.read_byte_lines(collector.path), files.read_byte_lines(reordering))
    for line, reordering_line in pairs:
        if line is not None:
            collector.add(line)
        if line is None or reordering_line is None or not same_pair(line, reordering_line):
            return None
        scores.add(reordering_line.split(b"|||", 3)[2])
    return collector, scores.values()


def same_pair(line: bytes, reordering_line: bytes) -> bool:
    """Whether lines of both tables have the same source and target, byte by byte."""
    end = reordering_line.find(b"|||", reordering_line.find(b"|||") + 3)
    return end > 0 and line.startswith(reordering_line[:end])


def read_with_lookup(path: str, columns: int, reordering: str) -> tuple[RowCollector, Floats]:
    """Read both tables and look up reordering scores by phrases: returns the rows, and their reordering
    scores (R, 6), nan for pairs that the reordering table lacks; these are counted in a warning. DataError,
    with the line, for one without the fields of its table or with scores that cannot be read."""
    keys: dict[tuple[bytes, bytes], int] = {}
    scores = ScoreReader(REORDERING_SCORES, partial(refuse_reordering, reordering))
    for number, line in enumerate(files.read_byte_lines(reordering), 1):
        parts = line.split(b"|||", 3)
        if len(parts) < 3:
            raise DataError(
                f"{reordering}:{number}: {len(parts)} fields, expected source ||| target ||| 6 probabilities"
            )
        keys[parts[0].strip(b" \t"), parts[1].strip(b" \t")] = number - 1
        scores.add(parts[2])
    values = np.vstack([scores.values(), np.full(REORDERING_SCORES, np.nan, np.float32)])
    collector, rows = RowCollector(path, columns), array("i")
    for line in files.read_byte_lines(path):
        collector.add(line)
        parts = line.split(b"|||", 2)
        rows.append(keys.get((parts[0].strip(b" \t"), parts[1].strip(b" \t")), -1))
    if missing := rows.count(-1):
        log.warning(
            (
                "%s: no row for %s pairs of %s; they get default-scores= of the ini; without it their "
                "reordering costs nothing, a bonus over all others"
            ),
            reordering,
            f"{missing:,}",
            path,
        )
    return collector, values[as_int32(rows)]


def build_table(collector: RowCollector, scores: Floats, reordering_scores: Floats) -> PhraseTable:
    """Build the table of R rows, grouped by source phrase; within a group rows stay in the order of the file.

    `scores` (R, columns) and `reordering_scores`, (R, 6) or (0, 0) without a reordering table, are natural
    logarithms in the order of the file; nan for a pair that the reordering table lacks.
    """
    vocabulary = new_vocabulary()
    source_ids, source_cut = word_ids(collector.sources, vocabulary)
    target_ids, target_cut = word_ids(collector.targets, vocabulary)
    words = sorted(vocabulary)
    rank = np.zeros(len(words), np.int32)
    rank[[vocabulary[word] for word in words]] = np.arange(len(words))
    word_text, word_cut = concatenate_texts(words)
    sources, source_nodes = build_trie(rank[source_ids], source_cut, len(words))
    targets, target_nodes = build_trie(rank[target_ids], target_cut, len(words))
    alignments: dict[bytes, int] = {}
    alignment_of = np.array(
        [
            alignments.setdefault(alignment.strip(b" \t\r"), len(alignments))
            for alignment in collector.alignments
        ],
        np.int64,
    )
    alignment_text, alignment_cut = concatenate_texts(list(alignments))
    row_source = source_nodes.astype(np.int32)[as_int32(collector.source_of)]
    order = np.argsort(row_source, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row_source, minlength=len(sources.parent)))])
    return PhraseTable(
        source_count=len(collector.sources),
        word_text=word_text,
        word_cut=smallest(word_cut, np.int32, np.int64),
        source_word=smallest(sources.word, np.uint16, np.int32),
        source_children=sources.children(),
        source_levels=sources.levels,
        starts=smallest(starts, np.int32, np.int64),
        target_word=smallest(targets.word, np.uint16, np.int32),
        target_parent=targets.parent,
        target_levels=targets.levels,
        target=target_nodes.astype(np.int32)[as_int32(collector.target_of)[order]],
        scores=scores[order],
        reordering=reordering_scores[order]
        if reordering_scores.size
        else np.zeros((len(order), 0), np.float32),
        alignment=smallest(alignment_of, np.uint8, np.uint16, np.int32)[
            as_int32(collector.alignment_of)[order]
        ],
        alignment_text=alignment_text,
        alignment_cut=smallest(alignment_cut, np.int32, np.int64),
        score_values=np.zeros((scores.shape[1], 0), np.float32),
        reordering_values=np.zeros((reordering_scores.shape[1], 0), np.float32),
    )
