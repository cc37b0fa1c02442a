"""Long commands that faults are tried on. A new one is one file with a class, and one line in WORKS."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from tests.faults.score_table import ScoreTable


class Work(Protocol):
    """A command whose output can be told by its bytes, and that continues after it was ended."""

    chunks: int
    resume: Sequence[str]  # options that continue
    expected: Path  # what it writes on one machine

    def command(self, cluster: str, output: Path) -> list[str]:
        """What a user types."""
        ...

    def finished(self, output: Path) -> int:
        """Chunks of an output that are kept so far."""
        ...

    def damage(self, output: Path, place: float) -> bool:
        """Change a byte of what is kept, `place` of the way into it; False where nothing is kept."""
        ...


# Each is made in a folder of its own, where it prepares its input and computes what is expected.
WORKS: dict[str, Callable[[Path], Work]] = {"smt-score-table": ScoreTable}
