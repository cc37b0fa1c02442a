"""Types of lexicalized reordering models, by Moses' names: MODEL-ORIENTATIONS-DIRECTION-fe, such as
wbe-msd-bidirectional-fe or hier-mslr-bidirectional-fe.

MODEL says relative to what a phrase pair is oriented: the words next to it (wbe), the phrases (phrase), or
the longest blocks of phrases (hier; Galley and Manning 2008). In the search wbe and phrase are the same.
DIRECTION: relative to the text before a phrase (backward), after it (forward), or both (bidirectional, the
backward scores first).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from nmt.errors import ConfigError
from nmt.io.numbers import shown

# The orientations of a phrase, of which a type may merge some. Discontinuous ones are told apart by the side
# of the source on which the later of the two phrases lies.
MONOTONE, SWAP, LEFT, RIGHT = range(4)

WBE, PHRASE, HIER = MODELS = ("wbe", "phrase", "hier")
# For each set of orientations, what its scores stand for, and (SCORE_OF) the index of the score that
# MONOTONE, SWAP, LEFT and RIGHT get.
ORIENTATIONS = {
    "msd": ("monotone", "swap", "discontinuous"),
    "mslr": ("monotone", "swap", "discontinuous to the left", "discontinuous to the right"),
    "monotonicity": ("monotone", "not monotone"),
    "leftright": ("to the right", "to the left"),
}
SCORE_OF = {
    "msd": (0, 1, 2, 2), "mslr": (0, 1, 2, 3), "monotonicity": (0, 1, 1, 1), "leftright": (0, 1, 1, 0)
}  # fmt: skip
# Direction: what the scores are relative to.
SIDES = {
    "bidirectional": ("from the last phrase", "to the next phrase"),
    "backward": ("from the last phrase",),
    "forward": ("to the next phrase",),
}
ENDINGS = {"allff": False, "collapseff": True}  # whether a direction has a single weight
SYNTAX = (
    f"[{'|'.join(MODELS)}]-[{'|'.join(ORIENTATIONS)}]-[{'|'.join(SIDES)}]-fe, also with -allff or -collapseff"
)


@dataclass(frozen=True)
class ReorderingType:
    """A type of lexicalized reordering model."""

    model: str = WBE  # one of MODELS
    orientations: str = "msd"  # one of ORIENTATIONS
    direction: str = "bidirectional"  # one of SIDES
    collapsed: bool = False  # whether all scores of a direction are summed up, with a single weight

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a type=. As in Moses, its parts may stand in any order, and the model may be missing.
        ValueError for anything else, and for types that are conditioned on the source alone (-f)."""
        parts = text.split("-")
        models, sets, directions, endings = (
            [part for part in parts if part in names] for names in (MODELS, ORIENTATIONS, SIDES, ENDINGS)
        )
        rest = [part for part in parts if part not in (*models, *sets, *directions, *endings)]
        if rest != ["fe"] or len(models) > 1 or len(sets) != 1 or len(directions) != 1 or len(endings) > 1:
            source_only = "; models of the source alone (-f) are not supported" if "f" in rest else ""
            raise ValueError(f"{shown(text)}: expected a reordering type {SYNTAX}{source_only}")
        collapsed = any(ENDINGS[ending] for ending in endings)
        return cls([*models, WBE][0], sets[0], directions[0], collapsed)

    @property
    def name(self) -> str:
        """The type without its ending, as files of tables are named."""
        return f"{self.model}-{self.orientations}-{self.direction}-fe"

    @property
    def option(self) -> str:
        """The type= of a feature line."""
        return f"{self.name}-{'collapseff' if self.collapsed else 'allff'}"

    @property
    def size(self) -> int:
        """The number of orientations, K."""
        return len(ORIENTATIONS[self.orientations])

    @property
    def score_of(self) -> tuple[int, int, int, int]:
        """The index, below K, of MONOTONE, SWAP, LEFT and RIGHT."""
        return SCORE_OF[self.orientations]

    @property
    def backward(self) -> bool:
        """Whether there are scores relative to the previous phrase."""
        return self.direction != "forward"

    @property
    def forward(self) -> bool:
        """Whether there are scores relative to the next phrase."""
        return self.direction != "backward"

    @property
    def probabilities(self) -> int:
        """The number of probabilities in a row of the table: K for each direction."""
        return self.size * len(SIDES[self.direction])

    @property
    def scores(self) -> int:
        """The number of scores, and of weights, of the feature."""
        return len(SIDES[self.direction]) if self.collapsed else self.probabilities

    @property
    def descriptions(self) -> list[str]:
        """A description of each score of the feature."""
        sides = SIDES[self.direction]
        if self.collapsed:
            return list(sides)
        return [f"{kind}, {side}" for side in sides for kind in ORIENTATIONS[self.orientations]]

    def spread(self, weights: Sequence[float]) -> list[float]:
        """The weight of each probability, from those of the feature's scores."""
        return [weight for weight in weights for _ in range(self.size)] if self.collapsed else list(weights)


USUAL = ReorderingType()  # wbe-msd-bidirectional-fe
DEFAULT = USUAL.name
# The numbers of probabilities that a row of a table may have.
PROBABILITIES = sorted(
    {ReorderingType(WBE, kind, side).probabilities for kind in ORIENTATIONS for side in SIDES}
)


def trained_type(text: str) -> ReorderingType:
    """Parse the type of a model to be trained. ConfigError for one that is not supported."""
    try:
        return ReorderingType.parse(text)
    except ValueError as error:
        raise ConfigError(str(error)) from error
