"""Filter a phrase table to the pairs whose source occurs in given texts, and its reordering table to the same
rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import compress, islice, zip_longest
from pathlib import Path

from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files

# n-grams of up to this many words are kept in a set; longer phrases, which few tables have, are searched for
# in the text itself
LONGEST = 8
BLOCK = 50_000  # rows that are decided together

# yields the same rows, such as a counter
RowObserver = Callable[[Iterator[PhrasePair]], Iterator[PhrasePair]]
Keep = Callable[[Sequence[PhrasePair]], Iterable[bool]]  # whether each row of a block is kept


class Occurring:
    """The source phrases that occur in some tokenized sentences; test with `in`. `grams` are those of up to
    LONGEST words. Only blanks and tabs separate words."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.grams: set[bytes] = set()
        texts = []
        for line in lines:
            words = split(line)
            for start in range(len(words)):
                for end in range(start + 1, min(len(words), start + LONGEST) + 1):
                    self.grams.add(b" ".join(words[start:end]))
            if len(words) > LONGEST:
                texts.append(b" ".join(words))
        self.text = b" \n " + b" \n ".join(texts) + b" \n "

    def __contains__(self, source: bytes) -> bool:
        words = split(source)
        phrase = b" ".join(words)
        return phrase in self.grams if len(words) <= LONGEST else b" " + phrase + b" " in self.text


def split(line: bytes) -> list[bytes]:
    """Split a line into words at blanks and tabs."""
    return [word for word in line.replace(b"\t", b" ").split(b" ") if word]


def read_texts(paths: Iterable[str]) -> Iterator[bytes]:
    """Read the lines of tokenized texts, words joined by a blank. Other whitespace is part of words.
    DataError for bad bytes."""
    for path in paths:
        for line in files.read_lines(path):
            yield " ".join(files.split_words(line)).encode("utf-8")


def wanted_rows(
    table: str | Path,
    wanted: Occurring | None,
    unsorted: bool = False,
    observe: RowObserver = lambda rows: rows,
    checked: bool = False,
) -> Iterator[PhrasePair]:
    """Yield the rows of a table whose source is in `wanted`, or all rows if that is None. `unsorted`: accept
    lines in any order; `observe`: wraps the iterator of all rows, for example to count them; `checked`: the
    rows are known to be sound. DataError for a table that is malformed, or not sorted."""
    previous, keep = b"", wanted is None
    rows = phrase_table.read(table) if checked else phrase_table.read_strict(table, unsorted)
    for pair in observe(rows):
        if wanted is not None and pair.source != previous:
            previous, keep = pair.source, pair.source in wanted
        if keep:
            yield pair


def same_rows(
    pairs: Iterable[PhrasePair], others: Iterable[PhrasePair], name: str
) -> Iterator[tuple[PhrasePair, PhrasePair]]:
    """Yield each row of the phrase table with the row of the reordering table for the same pair. `name`: of
    the reordering table, for messages. DataError for the first pair that only one has, or that differs."""
    for pair, row in zip_longest(pairs, others):
        if pair is None or row is None or is_other_pair(pair, row):
            raise row_mismatch(name, pair, row)
        yield pair, row


def is_other_pair(first: PhrasePair, second: PhrasePair) -> bool:
    """Whether two rows belong to different phrase pairs."""
    return (first.source, first.target) != (second.source, second.target)


def row_mismatch(name: str, pair: PhrasePair | None, row: PhrasePair | None) -> DataError:
    """The error for two tables with different pairs. `name`: of the reordering table; `pair`, `row`: the rows
    at the same position of the phrase table and of this table, None at its end."""

    def shown(entry: PhrasePair | None) -> str:
        return "the end" if entry is None else f"'{entry.source.decode()} ||| {entry.target.decode()}'"

    return DataError(
        f"{name}: {shown(row)} where the phrase table has {shown(pair)}: the two tables do not have the "
        "same pairs, and Moses gives a pair without a row here probability 1, a bonus; make both from the "
        "same extraction"
    )


@dataclass
class FilterPaths:
    """The tables to filter, and the paths of their filtered copies."""

    table: str | Path
    output: str | Path
    reordering: str | Path = ""  # empty: there is none
    reordering_output: str | Path = ""
    unsorted: bool = False
    checked: tuple[str | Path, ...] = ()  # those of the tables whose rows are known to be sound


def filter_tables(
    paths: FilterPaths,
    wanted: Occurring | None,
    observe: RowObserver = lambda rows: rows,
    keep: Keep | None = None,
) -> int:
    """Write the wanted rows of a phrase table, and the same rows of its reordering table if there is one;
    returns their number. `observe`: see `wanted_rows`; `keep`: called with blocks of the wanted rows in turn,
    returns which of them to write. DataError as from `wanted_rows` and `same_rows`; UserError if an output
    cannot be written."""
    pairs = wanted_rows(paths.table, wanted, paths.unsorted, observe, paths.table in paths.checked)
    rows: Iterator[tuple[PhrasePair, bytes]]
    if not paths.reordering:
        rows = ((pair, b"") for pair in pairs)
    else:
        checked = paths.reordering in paths.checked
        others = wanted_rows(paths.reordering, wanted, paths.unsorted, checked=checked)
        rows = ((pair, row.raw) for pair, row in same_rows(pairs, others, str(paths.reordering)))
    if keep is not None:
        rows = select_rows(rows, keep)
    lines = ((pair.raw, reordering) for pair, reordering in rows)
    return write_rows(lines, paths.output, paths.reordering_output if paths.reordering else None)


def select_rows(rows: Iterator[tuple[PhrasePair, bytes]], keep: Keep) -> Iterator[tuple[PhrasePair, bytes]]:
    """Yield the rows for which `keep`, called with a block of pairs at a time, returns True."""
    while block := list(islice(rows, BLOCK)):
        yield from compress(block, keep([pair for pair, _ in block]))


def write_rows(
    rows: Iterable[tuple[bytes, bytes]], output: str | Path, reordering_output: str | Path | None = None
) -> int:
    """Write lines of a phrase table and, if it has an output, of its reordering table, atomically; returns
    their number. UserError if that fails."""
    count = 0
    with ExitStack() as stack:
        out = stack.enter_context(files.Writing(output))
        reordering_out = stack.enter_context(files.Writing(reordering_output)) if reordering_output else None
        for count, (line, reordering) in enumerate(rows, 1):  # noqa: B007
            out.write(line + b"\n")
            if reordering_out:
                reordering_out.write(reordering + b"\n")
    return count
