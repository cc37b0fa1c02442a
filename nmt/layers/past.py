"""Keys and values of the words that hypotheses have read: what incremental decoding keeps.

Hypotheses that begin alike share them. Each step of the decoder adds one column, with a row for each
hypothesis that took the step, and a hypothesis knows its row in each column. So reordering moves a few
numbers, no vectors. Hypotheses of different lengths lie side by side: their last words are in the last
column, and the shorter ones have no row in the first columns.

    column 0   column 1   column 2        places     hypothesis 0    1    2
    b          e          x               column 0             -1    0   -1     1 has read three words, b e y,
               a          y               column 1              1    0    2     the others two, a x and k z
               k          z               column 2              0    1    2

R hypotheses, T columns, W width of a column: keys and values of all layers, D each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Past:
    """What R hypotheses have read, between two words."""

    columns: list[Tensor]  # of each step: (rows, W)
    places: Tensor  # (T, R) the row of a hypothesis in each column; -1: it is shorter

    @staticmethod
    def start(rows: int, device: torch.device) -> "Past":
        """Before the first word."""
        return Past(columns=[], places=torch.zeros(0, rows, dtype=torch.long, device=device))

    @property
    def lengths(self) -> Tensor:
        """Words read by each hypothesis: (R,)"""
        return (self.places >= 0).sum(0)

    def rows(self, rows: Tensor) -> "Past":
        """Hypothesis i of the result is hypothesis rows[i]. Columns that nobody needs are dropped."""
        places = self.places.index_select(1, rows)
        if not len(places) or bool((places[0] >= 0).any()):
            return Past(columns=self.columns, places=places)
        first = int((places >= 0).any(1).logical_not().sum())
        return Past(columns=self.columns[first:], places=places[first:])

    @staticmethod
    def join(parts: "Sequence[Past]") -> "Past":
        """The hypotheses of all parts, one below the other."""
        T, columns, places = max(len(part.columns) for part in parts), [], []
        for back in range(T, 0, -1):
            column, place = join_column(
                [
                    (part.columns[-back], part.places[-back])
                    if back <= len(part.columns)
                    else (None, part.places.new_full(part.places.shape[1:], -1))
                    for part in parts
                ]
            )
            columns.append(column)
            places.append(place)
        if not places:
            return Past(columns=[], places=torch.cat([part.places for part in parts], 1))
        return Past(columns=columns, places=torch.stack(places))

    def reading(self, layers: int, heads: int, width: int, like: Tensor) -> "Reading":
        """Room for one more word of each hypothesis, with all words before it."""
        T, R = self.places.shape
        values = like.new_empty(T + 1, R, width)
        there = self.places.clamp(min=0)
        for number, column in enumerate(self.columns):
            torch.index_select(column, 0, there[number], out=values[number])
        missing = self.places < 0
        mask = None
        if T and bool(missing[0].any()):
            mask = values.new_zeros(T + 1, R)
            mask[:T].masked_fill_(missing, -torch.inf)
        return Reading(self, values.view(T + 1, R, layers, 2, heads, -1), mask)


def join_column(parts: Sequence[tuple[Tensor | None, Tensor]]) -> tuple[Tensor, Tensor]:
    """A column of several parts, None where a part has none, and the places of their hypotheses in it."""
    pools: list[Tensor] = []
    starts: dict[int, int] = {}
    shifted, count = [], 0
    for column, place in parts:
        if column is None:
            shifted.append(place)
            continue
        if id(column) not in starts:
            starts[id(column)] = count
            pools.append(column)
            count += len(column)
        shifted.append(torch.where(place >= 0, place + starts[id(column)], place))
    places = torch.cat(shifted)
    pool = pools[0] if len(pools) == 1 else torch.cat(pools)
    if len(pool) <= len(places):
        return pool, places
    used, index = places.unique(return_inverse=True)  # -1 is the smallest
    kept = used[used >= 0]
    return pool.index_select(0, kept), index - (len(used) - len(kept))


@dataclass
class Reading:
    """A step of the decoder: the words before, and one more that its layers read one after the other."""

    past: Past
    values: Tensor  # (T + 1, R, layers, 2, heads, D / heads); the last word is filled in layer by layer
    mask: Tensor | None  # (T + 1, R) 0 at words, -inf where a hypothesis is shorter

    def add(self, layer: int, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the new words in a layer, (R, 2D) -> those of all words, (R, heads, T + 1,
        D / heads) twice"""
        now = self.values[:, :, layer]  # (T + 1, R, 2, heads, D / heads)
        now[-1] = pairs.view(now.shape[1:])
        keys, values = now.permute(2, 1, 3, 0, 4)
        return keys, values

    def after(self) -> Past:
        """What has been read once all layers have the new word."""
        R = self.past.places.shape[1]
        row = torch.arange(R, device=self.past.places.device)
        return Past(
            columns=[*self.past.columns, self.values[-1].reshape(R, -1).clone()],
            places=torch.cat([self.past.places, row[None]]),
        )
