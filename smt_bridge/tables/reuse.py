"""Scores of an earlier table, for the pairs that both have: `OLD.scores.json` says which model a column came
from."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt import files, numbers
from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import SMALLEST, PhrasePair


def write_columns(table: str, columns: list[dict[str, object]]) -> None:
    """Beside a finished table: what its new columns are."""
    files.write_text(f"{table}.scores.json", [json.dumps({"version": 1, "columns": columns}, indent=1)])


def read_columns(table: str) -> dict[str, int]:
    """Identities of features and their columns, from 1. DataError where the file that smt-score-table writes
    beside a table is missing or damaged."""
    place = Path(f"{table}.scores.json")
    try:
        columns = json.loads(place.read_text(encoding="utf-8"))["columns"]
        return {str(column["identity"]): numbers.count(str(column["column"])) for column in columns}
    except FileNotFoundError as error:
        raise DataError(
            f"{place}: not there; smt-score-table writes it beside its output, and without it there is no "
            "telling which run made a column"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{place}: damaged; score the table again, without --reuse") from error


class OldTable:
    """Walked in step with a new table: both are in whole-line order, so memory does not grow with either."""

    def __init__(self, path: str, identities: Sequence[str]) -> None:
        """`identities`: of the wanted features. DataError when the old table has none of them."""
        self.path = path
        by_identity = read_columns(path)
        self.columns = [by_identity.get(identity) for identity in identities]
        if not any(self.columns):
            raise DataError(
                f"{path}: none of its columns was made by these runs with these settings, so there is "
                "nothing to reuse"
            )
        self.pairs = phrase_table.checked(path)
        self.now = next(self.pairs, None)
        self.found = self.asked = 0

    def find(self, piece: Sequence[PhrasePair]) -> NDArray[np.float64]:
        """Natural logarithms of the old scores, nan where there is none: (pairs, features). Chunks have to be
        given in the order of the table."""
        values = np.full((len(piece), len(self.columns)), np.nan)
        for row, pair in enumerate(piece):
            wanted = key(pair)
            while self.now is not None and key(self.now) < wanted:
                self.now = next(self.pairs, None)
            self.asked += 1
            if self.now is not None and key(self.now) == wanted:
                self.found += 1
                scores = self.now.scores.split()
                for feature, column in enumerate(self.columns):
                    if column and column <= len(scores):
                        values[row, feature] = math.log(max(SMALLEST, float(scores[column - 1])))
        return values


def key(pair: PhrasePair) -> bytes:
    """What tables are sorted by, as far as a pair decides it."""
    return pair.source + b" ||| " + pair.target + b" ||| "
