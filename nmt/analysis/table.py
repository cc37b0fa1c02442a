"""The table that an analysis ends in, and its lines as TSV."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nmt.io import files


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    `columns` maps each name to the format of its values: "" as they are, ".4f" with four decimals. None is
    written as an empty field.
    """

    columns: Mapping[str, str]
    rows: Iterable[Iterable[object]]

    def lines(self) -> Iterator[str]:
        """The header, then one line per row."""
        yield "\t".join(self.columns)
        for row in self.rows:
            yield "\t".join(
                "" if value is None else format(value, spec)
                for value, spec in zip(row, self.columns.values(), strict=True)
            )


def fields_of(records: Iterable[object]) -> list[list[object]]:
    """The values of dataclass instances, in the order of their fields."""
    return [list(vars(record).values()) for record in records]


def one_field(text: str) -> str:
    """The line with single blanks and no tabs, so that it stays one column."""
    return " ".join(files.split_words(text))
