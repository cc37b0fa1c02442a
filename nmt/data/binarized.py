"""A corpus as token ids: in memory, and as files that are mapped into memory, so that they use only the
operating system's page cache.

A folder holds `source.ids`, `target.ids` (16 or 32 bits), `source.offsets`, `target.offsets` (64 bits), a
manifest, and `stamp.json`, which identifies the texts and settings and has the number of pairs of each of
several corpora. Corpora for aligned models have a third side, `affiliation`: for each target word the
position of a source word.
"""

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import Pair
from nmt.errors import DataError
from nmt.io import files, manifest
from nmt.text.vocab import Vocab

Ids = Sequence[int] | NDArray[np.integer]  # token ids of a sentence


@dataclass
class Corpus:
    """Pairs of id sequences, without start and end symbols.

    Sentence i is `source[source_offsets[i]:source_offsets[i + 1]]`, likewise for the target. `affiliation`:
    for aligned models, the position of a source word in its sentence for each target word. `parts`: the
    number of pairs of each of several concatenated corpora.
    """

    source: NDArray[np.integer]
    source_offsets: NDArray[np.int64]
    target: NDArray[np.integer]
    target_offsets: NDArray[np.int64]
    affiliation: NDArray[np.integer] | None = None
    parts: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def pair(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Source ids and target ids of pair number `index`."""
        source = self.source[self.source_offsets[index] : self.source_offsets[index + 1]]
        target = self.target[self.target_offsets[index] : self.target_offsets[index + 1]]
        return source.astype(np.int64), target.astype(np.int64)

    def sizes(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Units on the source and target side of these pairs, end symbols included: (n,) -> (2, n)"""
        offsets = self.source_offsets, self.target_offsets
        return np.stack([side[rows + 1] - side[rows] + 1 for side in offsets])


# ---- files -------------------------------------------------------------------------------------------------

Number = TypeVar("Number", bound=np.integer)
Stored = tuple[NDArray[np.integer], NDArray[np.int64]]  # ids and offsets of a side
FLUSH = 1 << 20  # ids held before they are written: 2-4 MiB a side
BLOCK = 1 << 17  # numbers checked at a time
STAMP = "stamp.json"
REMEDY = "remove {}, and the same command will create it again"


def id_type(size: int) -> type[np.unsignedinteger]:
    """Smallest type that holds the ids of a vocabulary: 16 or 32 bits."""
    return np.uint16 if size <= 1 << 16 else np.uint32


class SideWriter:
    """Writes the files of one side, ids and offsets, under temporary names. `size`: number of different ids,
    all below it. OSError where they cannot be written."""

    def __init__(self, directory: Path, side: str, size: int) -> None:
        self.type = id_type(size)
        self.ids = array("H" if self.type is np.uint16 else "I")
        self.offsets = array("q", [0])
        self.end = 0
        self.paths = directory / f"{side}.ids.part", directory / f"{side}.offsets.part"
        self.ids_file, self.offsets_file = open(self.paths[0], "wb"), open(self.paths[1], "wb")

    def add(self, ids: Sequence[int]) -> None:
        """Append the ids of a sentence."""
        self.ids.extend(ids)
        self.end += len(ids)
        self.offsets.append(self.end)
        if len(self.ids) >= FLUSH:
            self.flush()

    def flush(self) -> None:
        """Write buffered ids and offsets to the files."""
        self.ids.tofile(self.ids_file)
        self.offsets.tofile(self.offsets_file)
        self.ids_file.flush()
        self.offsets_file.flush()
        del self.ids[:], self.offsets[:]

    def finish(self) -> dict[str, Path]:
        """Flush and close the files; returns their paths by their final names."""
        self.flush()
        self.close()
        return {path.stem: path for path in self.paths}

    def close(self) -> None:
        for file in (self.ids_file, self.offsets_file):
            with suppress(OSError):  # flush has reported a full disk already
                file.close()


@dataclass
class BinarizeReport:
    """Counts of the pairs that were kept, and of those dropped, by reason."""

    kept: int = 0
    too_long: int = 0
    empty: int = 0
    corpora: list[int] = field(default_factory=list)  # pairs kept of each of several corpora


def binarize(
    pairs: Iterable[Pair],
    source: Vocab,
    target: Vocab,
    directory: Path,
    max_length: int,
    stamp: str,
    sizes: Sequence[int] = (),
) -> BinarizeReport:
    """Write pairs as ids to a folder. Drops pairs with an empty side or a side longer than `max_length`
    units. `sizes`: the number of pairs of each of several concatenated corpora. UserError if it cannot be
    written.

    `stamp` identifies the texts and settings. It is written last, so that the files of an interrupted run do
    not look complete.
    """
    report = BinarizeReport()
    remaining, parts = iter(pairs), list[int | None](sizes) or [None]
    with store(directory, {"source": source, "target": target}, stamp, report) as sides:
        for size in parts:
            start = report.kept
            for source_words, target_words in islice(remaining, size):
                if is_kept(source_words, target_words, max_length, report):
                    sides[0].add(source.encode(source_words))
                    sides[1].add(target.encode(target_words))
            if size is not None:
                report.corpora.append(report.kept - start)
    return report


def binarize_aligned(
    pairs: Iterable[tuple[list[str], list[str], list[int]]],
    source: Vocab,
    target: Vocab,
    directory: Path,
    max_length: int,
    stamp: str,
) -> BinarizeReport:
    """Write aligned pairs as ids: the words of both sides, and for each target word the position of its
    affiliated source word. Other arguments and errors as in `binarize`."""
    report = BinarizeReport()
    sizes: dict[str, Sized] = {"source": source, "target": target, "affiliation": range(max_length)}
    with store(directory, sizes, stamp, report) as sides:
        for source_words, target_words, affiliation in pairs:
            if is_kept(source_words, target_words, max_length, report):
                sides[0].add(source.encode(source_words))
                sides[1].add(target.encode(target_words))
                sides[2].add(affiliation)
    return report


def is_kept(source: Sequence[str], target: Sequence[str], max_length: int, report: BinarizeReport) -> bool:
    """Whether a pair is short enough and not empty; counts it in the report. `max_length`: in units."""
    if not source or not target:
        report.empty += 1
    elif max(len(source), len(target)) > max_length:
        report.too_long += 1
    else:
        report.kept += 1
        return True
    return False


@contextmanager
def store(
    directory: Path, vocabs: Mapping[str, Sized], stamp: str, report: BinarizeReport
) -> Iterator[list[SideWriter]]:
    """Open the sides of a new corpus for writing, after removing the stamp of an older one. At the end all
    files get their final names, with a manifest, `stamp.json` last: it has `stamp` and the counts of
    `report`. `vocabs`: the vocabulary of each side; only its length is used.

    UserError where the folder cannot be written; the unfinished files are removed."""
    sides: list[SideWriter] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / STAMP).unlink(missing_ok=True)
        for name, vocab in vocabs.items():
            sides.append(SideWriter(directory, name, len(vocab)))
        yield sides
        parts = {name: path for side in sides for name, path in side.finish().items()}
        widths = [side.type.__name__ for side in sides]
        parts[STAMP] = directory / f"{STAMP}.part"
        counts = {key: value for key, value in vars(report).items() if key != "corpora" or value}
        files.write_text(parts[STAMP], [json.dumps({"stamp": stamp, "widths": widths, **counts})])
        manifest.publish(directory, parts)
    except OSError as error:
        raise files.cannot_write(directory, error) from error
    finally:
        for side in sides:
            side.close()
        with suppress(OSError):
            for path in (*(path for side in sides for path in side.paths), directory / f"{STAMP}.part"):
                path.unlink(missing_ok=True)


def read_stamp(directory: Path) -> dict[str, object]:
    """Read the stamp of a finished corpus, see `store`; {} if there is none. DataError if it is damaged."""
    path = directory / STAMP
    if not path.exists():
        return {}
    try:
        with manifest.open_verified(directory, STAMP, manifest.load(directory)) as stream:
            return dict(json.load(stream))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: damaged; {REMEDY.format(directory)}") from error
    except DataError as error:
        raise DataError(f"{error}, or {REMEDY.format(directory)}") from error


def open_corpus(directory: Path, *vocab_sizes: int, thorough: bool = True) -> Corpus:
    """Map a binarized corpus into memory. DataError if it is damaged, or holds an id beyond a vocabulary.

    `vocab_sizes`: of source and target; without them no id is too large. A language model's text has one
    side, the target; aligned pairs have a third, the affiliation. If `thorough` is false, only sizes are
    checked, for a process beside another one that reads and checks everything.
    """
    stamp = read_stamp(directory)
    widths = stamp.get("widths")
    if (
        not isinstance(widths, list)
        or len(widths) not in (1, 2, 3)
        or any(width not in ("uint16", "uint32") for width in widths)
    ):
        raise DataError(f"{directory}: no binarized corpus here; {REMEDY.format(directory)}")
    names = ("target",) if len(widths) == 1 else ("source", "target", "affiliation")[: len(widths)]
    if thorough:
        try:
            manifest.verify(directory, [f"{name}.{kind}" for name in names for kind in ("ids", "offsets")])
        except DataError as error:
            raise DataError(f"{error}, or {REMEDY.format(directory)}") from error
    pair_count = stamp.get("kept")
    sides = [
        open_side(directory, name, width, pair_count, size, thorough)
        for name, width, size in zip_longest(names, widths, vocab_sizes[-min(2, len(widths)) :])
    ]
    if len(sides) == 1:
        sides.insert(0, (np.zeros(0, np.int64), np.zeros(len(sides[0][1]), np.int64)))
    return Corpus(
        *sides[0],
        *sides[1],
        affiliation=check_affiliation(directory, *sides[1:]),
        parts=read_corpus_sizes(directory, stamp),
    )


def read_corpus_sizes(directory: Path, stamp: Mapping[str, object]) -> tuple[int, ...]:
    """Number of pairs of each of several corpora, from the content of stamp.json; () for a single corpus.
    DataError unless they sum to the number of all pairs."""
    sizes = stamp.get("corpora", [])
    if (
        not isinstance(sizes, list)
        or any(type(size) is not int or size < 0 for size in sizes)
        or (sizes and sum(sizes) != stamp.get("kept"))
    ):
        raise DataError(f"{directory / STAMP}: damaged; {REMEDY.format(directory)}")
    return tuple(sizes)


def open_side(
    directory: Path, side: str, width: str, pair_count: object, vocab_size: int | None, thorough: bool
) -> Stored:
    """Map ids and offsets of one side. `width`: type of the ids, uint16 or uint32; `pair_count`: number of
    pairs in stamp.json; `vocab_size`: None for ids without a vocabulary; `thorough`: read all ids and offsets
    to check them. DataError unless they match each other, the number of pairs and the vocabulary."""
    ids = map_file(directory / f"{side}.ids", np.dtype(width))
    offsets = map_file(directory / f"{side}.offsets", np.dtype(np.int64))
    if (
        not len(offsets)
        or len(offsets) - 1 != pair_count
        or offsets[0] != 0
        or offsets[-1] != len(ids)
        or (thorough and not non_decreasing(blocks(directory / f"{side}.offsets", offsets.dtype)))
    ):
        raise DataError(
            f"{directory / side}.ids or {directory / side}.offsets: truncated or damaged; "
            f"{REMEDY.format(directory)}"
        )
    if (
        thorough
        and vocab_size is not None
        and len(ids)
        and max(int(block.max()) for block in blocks(directory / f"{side}.ids", ids.dtype)) >= vocab_size
    ):
        raise DataError(
            f"{directory / side}.ids: an id is beyond the vocabulary of {vocab_size:,} words; "
            f"{REMEDY.format(directory)}"
        )
    return ids, offsets


def check_affiliation(
    directory: Path, target: Stored, affiliation: Stored | None = None
) -> NDArray[np.integer] | None:
    """Return the ids of the third side, or None. DataError unless each target word has a position."""
    if affiliation is None:
        return None
    if not np.array_equal(affiliation[1], target[1]):
        raise DataError(
            f"{directory / 'affiliation'}.offsets: not those of the target; {REMEDY.format(directory)}"
        )
    return affiliation[0]


def map_file(path: Path, dtype: np.dtype[Number]) -> NDArray[Number]:
    """Map a file of numbers into memory. DataError unless it holds a whole number of them."""
    try:
        return np.memmap(path, dtype, "r") if path.stat().st_size else np.zeros(0, dtype)
    except (OSError, ValueError) as error:  # ValueError: not a whole number of entries
        raise DataError(f"{path}: truncated or damaged; {REMEDY.format(path.parent)}") from error


def blocks(path: Path, dtype: np.dtype[Number]) -> Iterator[NDArray[Number]]:
    """Read the numbers of a file in blocks, unmapped, so that pages do not count as this process's memory."""
    with open(path, "rb") as stream:
        while len(block := np.fromfile(stream, dtype, BLOCK)):
            yield block


def non_decreasing(offsets: Iterable[NDArray[np.int64]]) -> bool:
    """Whether no offset is negative or less than its predecessor; they are given in blocks."""
    last = 0
    for block in offsets:
        if block[0] < last or (np.diff(block) < 0).any():
            return False
        last = int(block[-1])
    return True
