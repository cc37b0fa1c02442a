"""Tables as lines of TSV."""

from dataclasses import dataclass

import pytest

from nmt.analysis.table import Table, fields_of


@dataclass
class Record:
    name: str
    score: float | None


def test_values_have_the_format_of_their_column_and_none_is_empty() -> None:
    table = Table({"name": "", "score": ".2f"}, fields_of([Record("a", 1 / 3), Record("b", None)]))
    assert list(table.lines()) == ["name\tscore", "a\t0.33", "b\t"]


def test_a_row_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        list(Table({"name": ""}, [["a", "b"]]).lines())
