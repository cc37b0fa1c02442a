"""What the translations that an input line gives do to the options of its spans, for each policy of Moses'
[xml-input].

exclusive    they are the only options; a span that overlaps with one has no others
inclusive    they compete with the options of the table
constraint   the table's options stay where they contain the first one that they overlap with, or overlap with
none

A translation may also be exclusive by itself.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.sentence import Extra
from smt_bridge.decoder.table import Table
from smt_bridge.decoder.xml_input import Forced

Rows = NDArray[np.int64]


def options(
    forced: Sequence[Forced], policy: str, table: Table, source: bytes, begin: int, last: int, rows: Rows
) -> tuple[Rows, list[Extra]]:
    """The rows of a span that remain, and the options that the line gives for exactly this span."""
    overlapping = [option for option in forced if option.begin <= last and begin <= option.last]
    if any(option.exclusive or policy == "exclusive" for option in overlapping):
        rows = rows[:0]
    elif overlapping and policy == "constraint":
        rows = rows[
            np.array([agrees(table.text(row), begin, last, overlapping[0]) for row in rows], np.bool_)
        ]
    return rows, [
        extra(option, table, source) for option in overlapping if (option.begin, option.last) == (begin, last)
    ]


def agrees(target: list[str], begin: int, last: int, option: Forced) -> bool:
    """Does a row of the table hold a translation of the line, in source and target?"""
    return begin <= option.begin and option.last <= last and contains(target, option.words)


def contains(words: list[str], part: list[str]) -> bool:
    return any(words[place : place + len(part)] == part for place in range(len(words) - len(part) + 1))


def extra(option: Forced, table: Table, source: bytes) -> Extra:
    """The table's scores share the logarithm of the probability. Reordering is that of the same pair in the
    table."""
    columns = table.scores.shape[1]
    pair = next((row for row in table.of(source) if table.text(row) == option.words), None)
    return Extra(
        option.words,
        list(option.points),
        unknown=False,
        scores=np.full(columns, np.float32(option.log_prob) / np.float32(columns)),
        pair=pair,
        raw=option.raw,
    )
