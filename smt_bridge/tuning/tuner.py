"""The interface of tuners, and runs of a tuner with several seeds. A tuner is a dataclass whose fields are
its settings, with a method that finds weights on a pool.

The tuners are in the dict TUNERS of registry.py; each of their fields becomes an option of smt-tune and
smt-tune-nbest.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from nmt import plugins
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files, numbers
from smt_bridge.moses import ini
from smt_bridge.tuning.pool import Floats, Pool, from_weights

# ---- a tuner -----------------------------------------------------------------------------------------------


Progress = Callable[[int, int], None]  # called with the number of steps done so far, and of all steps


@dataclass
class TuningPoint:
    """Weights (D,), and the corpus BLEU, 0 to 1, that they reach on the pool."""

    weights: Floats
    bleu: float


def silent(done: int, total: int) -> None:
    """The default progress callback: reports nothing."""


class Tuner(Protocol):
    """Finds weights under which the best hypotheses of the lists of a pool have a high corpus BLEU."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    # A tuner that also tunes the weights of sparse features, which follow the D others, has a class variable
    # takes_sparse that is True.

    def tune(
        self,
        pool: Pool,
        start: Floats | None,
        seed: int,
        *,
        others: Sequence[Floats] = (),
        threads: int = 1,
        progress: Progress = silent,
    ) -> TuningPoint:
        """Find weights with Σ |w| = 1, and 0 for features that are constant within every sentence; returns
        them with their BLEU on the pool. `start`: weights to start from, (D,); None if the user gave none.
        `others`: further starting points, (D,) each. The result depends on all of these and on the seed, but
        never on `threads`. All weights are 0 if every feature is constant."""


# ---- runs with several seeds -------------------------------------------------------------------------------
# One pool tuned with several seeds: where the runs start, and how far their results agree.


log = logging.getLogger(__name__)


def check_sparse(tuner: Tuner, names: Sequence[str], method: str) -> None:
    """ConfigError for sparse features, of these names, that the tuner does not take. `method`: its name."""
    if names and not getattr(tuner, "takes_sparse", False):
        raise ConfigError(
            f"--method {method} does not tune sparse features such as {names[0]}; use --method kbmira, or "
            "write tuneable=false in their lines of the moses.ini to keep their weights"
        )


def read_start(path: str, names: Sequence[str], sparse: Sequence[str] = ()) -> Floats:
    """Read a file of weights by name, or with one line of numbers in the order of `names`, as in Moses'
    weights.txt and init.opt: (D + F,). `sparse`: names of the F sparse values. Features without a weight get
    0. ConfigError for a line with a wrong number of weights; DataError for weights that do not fit the
    features, and for a file of another kind or that cannot be read."""
    first = next((line for line in files.read_lines(path) if line.strip() and not line.startswith("#")), "")
    try:
        values = numbers.reals(files.split_words(first))
    except ValueError:
        try:
            weights = ini.read_weights(path)
            more = [weights.get(name, [0.0])[0] for name in sparse]
            return np.array([*from_weights(names, weights), *more])
        except DataError as error:
            raise DataError(f"{path}: {error}" if path not in str(error) else str(error)) from error
    if len(values) != len(names):
        raise ConfigError(
            f"{path}: {len(values)} numbers, but the pool has {len(names)} features: {' '.join(names)}"
        )
    return np.array(values + [0.0] * len(sparse))


def run_tuner(
    tuner: Tuner,
    pool: Pool,
    start: Floats | None,
    seed: int,
    others: Sequence[Floats],
    threads: int,
    progress: Progress = silent,
) -> TuningPoint:
    """Run a tuner; arguments as in `Tuner.tune`. ConfigError for a result that a tuner of a plugin must not
    return."""
    point: object = tuner.tune(pool, start, seed, others=others, threads=threads, progress=progress)
    if not isinstance(point, TuningPoint):
        raise plugins.wrong_result(type(tuner).tune, type(point).__name__, "a TuningPoint")
    shape, expected = np.shape(point.weights), (len(pool.all_names),)
    if shape != expected or not np.isfinite(point.weights).all():
        result = f"weights of shape {shape}" if shape != expected else "a weight that is not finite"
        raise plugins.wrong_result(type(tuner).tune, result, f"finite weights of shape {expected}")
    return point


def starting_point(pool: Pool, start: Floats | None) -> TuningPoint:
    """The weights `start`, or equal ones if it is None, normalized, with their BLEU on the pool."""
    start = equal_weights(pool) if start is None else start
    weights = pool.normalize(np.where(pool.constant(), 0.0, start))
    return TuningPoint(weights, pool.bleu(weights))


def equal_weights(pool: Pool) -> Floats:
    """1 for each feature, and 0 for sparse values: (D + F,)"""
    return np.where(np.arange(len(pool.all_names)) < len(pool.names), 1.0, 0.0)


def run_seeds(
    pool: Pool, tuner: Tuner, start: Floats | None, seeds: Sequence[int], threads: int, progress: Progress
) -> list[TuningPoint]:
    """Tune from `start`, (D,) or None, with each seed; returns the point that each one reaches, in order.
    `threads`: of the tuner; `progress` counts the steps of all runs. UserError if no direction changes
    BLEU."""
    equal = equal_weights(pool) / max(1, len(pool.names))
    points: list[TuningPoint] = []

    def step(done: int, total: int) -> None:
        progress(len(points) * total + done, len(seeds) * total)

    for seed in seeds:
        points.append(run_tuner(tuner, pool, start, seed, [equal], threads, step))
        if len(seeds) > 1:
            log.info("seed %d: BLEU %.6f", seed, points[-1].bleu)
    if not np.any(best_point(points).weights):
        raise UserError(
            "every weight is 0: no direction changes BLEU; are the features of this list all constant, "
            "or is a setting of the tuner too large, such as --min-difference?"
        )
    return points


def best_point(points: Sequence[TuningPoint]) -> TuningPoint:
    """The point with the highest BLEU; on ties the first."""
    return max(points, key=lambda point: point.bleu)


def better_point(start: TuningPoint, points: Sequence[TuningPoint]) -> TuningPoint:
    """The best of the points; the start, with a warning in the log, if it scores higher than all of them and
    its weights are not all 0. Not every tuner maximizes BLEU itself."""
    best = best_point(points)
    if start.bleu <= best.bleu or not np.any(start.weights):
        return best
    log.warning(
        "the tuned weights have a BLEU of %.6f, the initial ones %.6f; keeping the initial ones",
        best.bleu,
        start.bleu,
    )
    return start


def spread_table(names: Sequence[str], points: Sequence[TuningPoint]) -> Iterator[str]:
    """Yield the lines of a TSV table that shows how much the points differ: a header, then mean, standard
    deviation, lowest and highest value of BLEU and of each weight. `names`: of the D weights."""
    yield "value\tmean\tsd\tlowest\thighest"
    table = np.array([[point.bleu, *point.weights] for point in points])
    for name, column in zip(["BLEU", *names], table.T, strict=True):
        yield f"{name}\t{column.mean():.6g}\t{column.std():.3g}\t{column.min():.6g}\t{column.max():.6g}"
