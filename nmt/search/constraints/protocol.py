"""What the search asks of a constraint on the translation of one sentence.

A mark is all that matters of the units which a hypothesis has so far; the search holds one for each
hypothesis and constraint. Constraints forbid units. They never change a probability.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from numpy import int64
from numpy.typing import NDArray

Mark = TypeVar("Mark")
Units = Sequence[int] | NDArray[int64]  # numbers of units


class Constraint(Protocol[Mark]):
    """Forbids units. Several sentences may share one."""

    def begin(self) -> Mark:
        """Before the first unit."""
        ...

    def follow(self, mark: Mark, unit: int) -> Mark:
        """After one more unit, which may be one that was forbidden: a forced prefix comes first."""
        ...

    def forbidden(self, mark: Mark, left: int) -> Units:
        """The units, the end symbol among them, that must not come next. `left`: how many more units the
        translation may have."""
        ...


@runtime_checkable
class Demand(Constraint[Mark], Protocol[Mark]):
    """Wants units to be there. A sentence has at most one Demand, which knows of all that it wants."""

    units: int  # that are wanted in all

    def met(self, mark: Mark) -> int:
        """How many of the wanted units are there: 0 to `units`."""
        ...

    def wanted(self, mark: Mark) -> Iterable[int]:
        """The units that would be a step forward."""
        ...

    def needed(self, mark: Mark) -> int:
        """How many more units are enough to meet it."""
        ...

    def vocabulary(self) -> set[int]:
        """All units that it wants, for short-lists."""
        ...


AnyConstraint = Constraint[Any]  # one whose marks only itself understands
AnyDemand = Demand[Any]
