"""What a tuner is: a dataclass whose fields are its settings, with a method that finds weights on a pool.

The tuners are in the dict TUNERS of registry.py; each of their fields becomes an option of smt-tune and
smt-tune-nbest.
"""

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

from smt_bridge.tuning.pool import Floats, Pool

Progress = Callable[[int, int], None]  # called with the steps done so far, and all steps of this run


@dataclass
class Point:
    """Weights (D,), and the corpus BLEU, 0 to 1, that they reach on the pool."""

    weights: Floats
    bleu: float


def silent(done: int, total: int) -> None:
    """Progress that nobody asked for."""


class Tuner(Protocol):
    """Finds the weights of a pool's features that select the hypotheses with a high corpus BLEU."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def tune(
        self,
        pool: Pool,
        start: Floats | None,
        seed: int,
        *,
        others: Sequence[Floats] = (),
        threads: int = 1,
        progress: Progress = silent,
    ) -> Point:
        """Weights with Σ |w| = 1, and 0 for features that are constant within every sentence.

        start: weights to start from, (D,); None where the user gave none. others: more points worth trying.
        The result depends on all of these and on the seed, but never on `threads`.
        """
        ...
