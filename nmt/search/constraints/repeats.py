"""No n-gram of units twice."""

from collections.abc import Sequence

Units = tuple[int, ...]


class NoRepeat:
    """Forbids units that would end an n-gram which the translation already has. Its marks are the units so
    far."""

    def __init__(self, order: int) -> None:
        """`order`: n, at least 1."""
        self.order = order

    def begin(self) -> Units:
        """See Constraint."""
        return ()

    def follow(self, mark: Units, unit: int) -> Units:
        """See Constraint."""
        return (*mark, unit)

    def forbidden(self, mark: Units, left: int) -> Sequence[int]:
        """See Constraint."""
        size = self.order - 1
        last = mark[len(mark) - size :]
        return [mark[begin + size] for begin in range(len(mark) - size) if mark[begin : begin + size] == last]
