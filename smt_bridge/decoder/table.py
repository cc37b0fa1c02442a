"""A phrase table and its lexical reordering table as arrays, read from Moses' text files.

sources   phrase (bytes) -> number s; its options are rows starts[s] : starts[s + 1]
target    row -> number t of its target phrase; its words are words[cut[t] : cut[t + 1]], ids in `vocabulary`
"""

import logging
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from smt_bridge.decoder.cache import are_cuts, within

# ---- table checks ------------------------------------------------------------------------------------------
# The checks of `smt-ini check`, applied to a table while it is loaded. Checking every line, as
# nmt.formats.phrase_table does, takes longer than loading the table. So `RowCollector.sound` first checks
# distinct phrases and alignments; only if it finds a problem are lines checked one by one.


Ints = NDArray[np.int64]
SPACE, LINE_END = b" \n"
SCORE_BYTES = b"0123456789.eE+- \t"


def check_line(line: bytes, location: str) -> PhrasePair:
    """Parse a line. DataError for a line that Moses refuses or misreads, and for sparse features, which the
    embedded engine does not support."""
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
    """Read a table line by line. DataError for the first mistake."""
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


def sound_phrases(phrases: Iterable[bytes]) -> Ints | None:
    """The number of words of each phrase, if all are UTF-8 and free of characters that have a special meaning
    in Moses (factors, non-terminals).

    Otherwise None; also for oddities that are rare enough to be checked line by line: tabs, repeated spaces,
    empty phrases."""
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


def sound_alignments(alignments: Iterable[bytes]) -> Ints | None:
    """The minimum number of source and of target words that each distinct alignment requires, (A, 2); None if
    one is not of the form 0-0 1-1."""
    needed = []
    for alignment in alignments:
        if not phrase_table.ALIGNMENT.fullmatch(alignment):
            return None
        numbers = alignment.replace(b"-", b" ").split()
        needed.append(
            (1 + max(map(int, numbers[::2])), 1 + max(map(int, numbers[1::2]))) if numbers else (0, 0)
        )
    return np.array(needed, np.int64).reshape(-1, 2)


# ---- table -------------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)

FLOOR = -100.0  # used for the logarithm of 0, as in Moses


@dataclass
class PhraseTable:
    """A phrase table of R rows with F scores each, S source phrases, and T distinct target phrases with W
    words in total."""

    sources: dict[bytes, int]
    starts: Ints  # (S + 1,)
    target: NDArray[np.int32]  # (R,)
    scores: NDArray[np.float32]  # (R, F) natural logarithms
    reordering: NDArray[np.float32]  # (R, 6) natural logarithms; (R, 0) without a reordering table
    forward: NDArray[np.int32]  # (R,) equal for equal forward scores; -1 if not in the reordering table
    vocabulary: list[str]
    cut: Ints  # (T + 1,)
    words: NDArray[np.int32]  # (W,)
    alignment: NDArray[np.uint8]  # text of all alignments, one after the other
    alignment_cut: Ints  # (R + 1,)

    @property
    def rows(self) -> int:
        return len(self.target)

    def of(self, source: bytes) -> range:
        """The rows of a source phrase."""
        number = self.sources.get(source)
        return range(0) if number is None else range(int(self.starts[number]), int(self.starts[number + 1]))

    def text(self, row: int) -> list[str]:
        """The target words of a row."""
        target = int(self.target[row])
        return [self.vocabulary[word] for word in self.words[self.cut[target] : self.cut[target + 1]]]

    def points(self, row: int) -> list[tuple[int, int]]:
        """Alignment points of a row; empty if the table has none."""
        return points_of(self.points_text(row))

    def points_text(self, row: int) -> bytes:
        """The alignment field of a row, as text."""
        return self.alignment[self.alignment_cut[row] : self.alignment_cut[row + 1]].tobytes()

    def is_sound(self) -> bool:
        """Whether all sizes agree and all indices are within bounds, which compiled code does not check."""
        rows = {len(self.scores), len(self.reordering), len(self.forward)}
        shapes = rows == {self.rows} and self.reordering.shape[1] in (0, 6)
        cuts = (
            are_cuts(self.starts, self.rows)
            and are_cuts(self.cut, len(self.words))
            and are_cuts(self.alignment_cut, len(self.alignment))
        )
        counts = len(self.starts) == len(self.sources) + 1 and len(self.alignment_cut) == self.rows + 1
        return (
            shapes
            and cuts
            and counts
            and within(self.target, len(self.cut) - 1)
            and within(self.words, len(self.vocabulary))
        )


def points_of(text: bytes) -> list[tuple[int, int]]:
    """Parse an alignment field: 0-0 1-1."""
    return [
        (int(source), int(target)) for source, _, target in (point.partition(b"-") for point in text.split())
    ]


class RowCollector:
    """Collects the rows of a table while the file is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sources: dict[bytes, int] = {}
        self.targets: dict[bytes, int] = {}
        self.alignments: dict[bytes, int] = {}
        self.source_of = array("i")
        self.target_of = array("i")
        self.alignment_of = array("i")
        self.scores: list[bytes] = []

    def add(self, line: bytes) -> None:
        parts = line.split(b"|||")
        count = len(parts)
        if count < 3 or (
            count > 5 and (count > 7 or parts[5] != b" " or (count == 7 and parts[6]))
        ):  # does not end in ||| |||, as lines usually do
            check_line(line, f"{self.path}:{len(self.scores) + 1}")
        self.source_of.append(self.sources.setdefault(parts[0].strip(b" \t"), len(self.sources)))
        self.target_of.append(self.targets.setdefault(parts[1].strip(b" \t"), len(self.targets)))
        self.scores.append(parts[2])
        self.alignment_of.append(
            self.alignments.setdefault(parts[3] if count > 3 else b"", len(self.alignments))
        )

    def sound(self) -> bool:
        """Whether it is certain that no line contains anything that Moses would refuse or misread."""
        sources, targets = sound_phrases(self.sources), sound_phrases(self.targets)
        needed = sound_alignments(self.alignments)
        words = b"".join(self.scores).translate(None, SCORE_BYTES)  # such as `inf`
        if sources is None or targets is None or needed is None or words:
            return False
        wanted = needed[rows_of(self.alignment_of)]
        return bool(
            (wanted[:, 0] <= sources[rows_of(self.source_of)]).all()
            and (wanted[:, 1] <= targets[rows_of(self.target_of)]).all()
        )

    def tidy(self) -> None:
        """Separate the words of each phrase by single blanks, and strip carriage returns after scores."""
        self.sources, self.source_of = single_blanks(self.sources, self.source_of)
        self.targets, self.target_of = single_blanks(self.targets, self.target_of)
        self.scores = [scores.strip(b" \t\r") for scores in self.scores]


def single_blanks(phrases: dict[bytes, int], rows: "array[int]") -> tuple[dict[bytes, int], "array[int]"]:
    """Replace repeated blanks in phrases, some of which may become equal. Returns the phrases, and the
    updated phrase number of each row."""
    changed: dict[bytes, int] = {}
    for_old = [
        changed.setdefault(b" ".join(filter(None, phrase.replace(b"\t", b" ").split(b" "))), len(changed))
        for phrase in phrases
    ]
    return changed, array("i", (for_old[row] for row in rows))


def rows_of(numbers: "array[int]") -> NDArray[np.int32]:
    return np.frombuffer(numbers, np.int32)


def read_table(path: str, columns: int, reordering: str | None) -> PhraseTable:
    """Read a phrase table and, if given, its reordering table from text. DataError, with the line, for the
    wrong number of scores and for anything that Moses would refuse or misread."""
    collector, extra = with_reordering(path, reordering) if reordering else (alone(path), np.zeros((0, 0)))
    if not collector.sound():
        check_lines(path, columns)
        collector.tidy()
    try:
        scores = numbers(collector.scores, columns)
    except ValueError:
        check_lines(path, columns)
        raise DataError(f"{path}: cannot be read as a phrase table") from None
    return arrange(collector, logs(scores), logs(extra))


def alone(path: str) -> RowCollector:
    """Read a phrase table that has no reordering table."""
    collector = RowCollector(path)
    for line in files.read_byte_lines(path):
        collector.add(line)
    return collector


def numbers(texts: list[bytes], columns: int) -> NDArray[np.float64]:
    """Parse score fields: (N, columns). ValueError for the wrong number of scores, and for values that are
    not probabilities in single precision."""
    if not any(text.strip() for text in texts):  # numpy would warn
        raise ValueError
    values = np.loadtxt(texts, np.float64, comments=None, ndmin=2, encoding="ascii")
    if values.shape != (len(texts), columns) or not ((values >= 0) & (values <= phrase_table.LARGEST)).all():
        raise ValueError
    return values


def logs(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values), FLOOR).astype(np.float32)


def with_reordering(path: str, reordering: str) -> tuple[RowCollector, NDArray[np.float64]]:
    """Read both tables side by side: returns the rows, and their reordering scores (R, 6). If the tables do
    not have the same pairs in the same order, reordering rows are looked up by their phrases instead."""
    collector = RowCollector(path)
    texts: list[bytes] = []
    for line, reordering_line in zip_longest(files.read_byte_lines(path), files.read_byte_lines(reordering)):
        if line is not None:
            collector.add(line)
        if line is None or reordering_line is None or not same_pair(line, reordering_line):
            return looked_up(path, reordering)
        texts.append(reordering_line.split(b"|||", 3)[2])
    return collector, reordering_numbers(texts, reordering)


def same_pair(line: bytes, reordering_line: bytes) -> bool:
    end = reordering_line.find(b"|||", reordering_line.find(b"|||") + 3)
    return end > 0 and line.startswith(reordering_line[:end])


def looked_up(path: str, reordering: str) -> tuple[RowCollector, NDArray[np.float64]]:
    """Read both tables and look up reordering scores by phrases: returns the rows, and their reordering
    scores (R, 6), nan for pairs that the reordering table lacks."""
    keys: dict[tuple[bytes, bytes], int] = {}
    texts: list[bytes] = []
    for number, line in enumerate(files.read_byte_lines(reordering), 1):
        parts = line.split(b"|||", 3)
        if len(parts) < 3:
            raise DataError(
                f"{reordering}:{number}: {len(parts)} fields, expected source ||| target ||| 6 probabilities"
            )
        keys[parts[0].strip(b" \t"), parts[1].strip(b" \t")] = len(texts)
        texts.append(parts[2])
    values = np.vstack([reordering_numbers(texts, reordering), np.full(6, np.nan)])
    collector, rows = RowCollector(path), []
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
    return collector, np.asarray(values[rows])


def reordering_numbers(texts: list[bytes], path: str) -> NDArray[np.float64]:
    try:
        return numbers(texts, 6)
    except ValueError:
        for number, line in enumerate(files.read_byte_lines(path), 1):
            parts = line.split(b"|||", 3)
            try:
                numbers(parts[2:3], 6)
            except ValueError:
                raise DataError(
                    f"{path}:{number}: expected source ||| target ||| 6 probabilities "
                    f"(msd-bidirectional-fe), found {line[:60]!r}"
                ) from None
        raise DataError(f"{path}: empty file, expected a reordering table") from None


def equal_rows(values: NDArray[np.float32]) -> Ints:
    """Assign numbers to the rows of (R, K), equal for equal rows. Works column by column, which is faster
    than sorting rows."""
    numbers = np.zeros(len(values), np.int64)
    for column in values.T:
        distinct, inverse = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(distinct) + inverse, return_inverse=True)[1]
    return numbers


def arrange(collector: RowCollector, scores: NDArray[np.float32], extra: NDArray[np.float32]) -> PhraseTable:
    """Build the table, grouping rows by source; within a group they stay in the order of the file."""
    source_of, target_of, alignment_of = map(
        rows_of, (collector.source_of, collector.target_of, collector.alignment_of)
    )
    order: slice | Ints = slice(None)
    distinct = [alignment.strip(b" \t\r") for alignment in collector.alignments]
    if (np.diff(source_of) < 0).any():
        order = np.argsort(source_of, kind="stable")
    alignments = [distinct[number] for number in alignment_of[order].tolist()]
    words = b" ".join(collector.targets).split(b" ")
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    if not extra.size:
        extra = np.zeros((len(scores), 0), np.float32)
    forward = np.full(len(scores), -1)
    if extra.shape[1]:
        missing = np.isnan(extra[:, 0])
        extra[missing] = 0.0
        forward = np.where(missing[order], -1, equal_rows(extra[order][:, 3:]))
    return PhraseTable(
        sources=collector.sources,
        starts=np.searchsorted(source_of[order], np.arange(len(collector.sources) + 1)),
        target=target_of[order].copy(),
        scores=scores[order],
        reordering=extra[order],
        forward=forward.astype(np.int32),
        vocabulary=[word.decode("utf-8") for word in vocabulary],
        cut=np.cumsum([0, *(target.count(b" ") + 1 for target in collector.targets)]),
        words=np.fromiter(map(vocabulary.__getitem__, words), np.int32, len(words)),
        alignment=np.frombuffer(b"".join(alignments), np.uint8),
        alignment_cut=np.cumsum([0, *map(len, alignments)]),
    )
