"""A phrase table in chunks: read once to check it, cut, scored, and written with new columns.

The limits of chunks depend on the table alone, so that shards, workers and resumed jobs all give the same
bytes.
"""

import json
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.compute.resources import peak_memory
from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import SMALLEST, PhrasePair
from nmt.io import files, numbers
from nmt.work.executors import Lost
from smt_bridge.features.base import of_phrases
from smt_bridge.features.feature_set import FeatureExecutor, FeatureSet, Task
from smt_bridge.jobs import Scores, ScoringJob, lost_scores

# ---- reuse -------------------------------------------------------------------------------------------------
# Scores of an earlier table, for the pairs that both have: `OLD.scores.json` says which model a column came
# from.


def write_columns(table: str, columns: list[dict[str, object]]) -> None:
    """Beside a finished table: what its new columns are."""
    files.write_text(f"{table}.scores.json", [json.dumps({"version": 1, "columns": columns}, indent=1)])


def read_columns(table: str) -> dict[str, int]:
    """Identities of features and their columns, from 1. DataError where the file that smt-score-table writes
    beside a table is missing or damaged."""
    path = Path(f"{table}.scores.json")
    try:
        columns = json.loads(path.read_text(encoding="utf-8"))["columns"]
        return {str(column["identity"]): numbers.count(str(column["column"])) for column in columns}
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: not there; smt-score-table writes it beside its output, and without it there is no "
            "telling which run made a column"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: damaged; score the table again, without --reuse") from error


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
            wanted = sort_key(pair)
            while self.now is not None and sort_key(self.now) < wanted:
                self.now = next(self.pairs, None)
            self.asked += 1
            if self.now is not None and sort_key(self.now) == wanted:
                self.found += 1
                scores = self.now.scores.split()
                for feature, column in enumerate(self.columns):
                    if column and column <= len(scores):
                        values[row, feature] = math.log(max(SMALLEST, float(scores[column - 1])))
        return values


def sort_key(pair: PhrasePair) -> bytes:
    """The part of a line that decides its position in a sorted table: source and target with separators."""
    return pair.source + b" ||| " + pair.target + b" ||| "


# ---- chunks ------------------------------------------------------------------------------------------------


# pairs: a few thousand sources fill the matrices of each level, and their states stay near 100 MB at 1000
# units
CHUNK = 4096
LONGEST = 4 * CHUNK  # a source with more options than that is cut
SAMPLES = 4  # chunks from all over the table, at least, that stand for it
# Moses parses float32 and floors what it cannot hold; 0, negative numbers and nan break it silently
FLOOR = 1e-38
CEILING = 3e38  # what is larger becomes infinite there

# A chunk and its values, (pairs, features), natural logarithms; nan, where it was lost on a cluster
ScoredChunk = tuple[list[PhrasePair], Scores]


def chunks(pairs: Iterable[PhrasePair]) -> Iterator[list[PhrasePair]]:
    """A table in pieces of CHUNK pairs or a little more, cut where the source changes."""
    piece: list[PhrasePair] = []
    for pair in pairs:
        if len(piece) >= CHUNK and (pair.source != piece[-1].source or len(piece) >= LONGEST):
            yield piece
            piece = []
        piece.append(pair)
    if piece:
        yield piece


@dataclass
class TableSurvey:
    """Sizes and a sample of a table, from a first pass that checks all of it before anything is scored."""

    pairs: int = 0
    sources: int = 0
    chunks: int = 0
    columns: int = 0
    sample: list[list[PhrasePair]] = field(default_factory=list)  # chunks from all over the table


def survey(table: str, unsorted: bool = False) -> TableSurvey:
    """Read and check a table. DataError for the first thing in it that is wrong."""
    result = TableSurvey()
    every = 1
    for number, piece in enumerate(chunks(phrase_table.checked(table, unsorted))):
        result.chunks += 1
        result.pairs += len(piece)
        result.sources += len({pair.source for pair in piece})
        result.columns = len(piece[0].scores.split())
        if number % every == 0:
            if len(result.sample) == 2 * SAMPLES:  # keep every other one and continue in steps twice as long
                del result.sample[1::2]
                every *= 2
            if number % every == 0:
                result.sample.append(piece)
    return result


def score_chunks(
    pieces: Iterable[list[PhrasePair]],
    executor: FeatureExecutor,
    features: int,
    job: ScoringJob | None = None,
    old: OldTable | None = None,
) -> Iterator[ScoredChunk]:
    """Each chunk with the values of `features` features: those of a resumed job as they were, the others
    computed, nan for those that were lost."""
    stream = iter(pieces)
    if job:
        for values in job.finished():
            piece = next(stream, [])
            job.check_rows(values, len(piece))
            if old:
                old.find(piece)  # both tables are walked side by side
            yield piece, values
    for piece, values in compute_chunks(stream, executor, features, old):
        if job:
            job.add(values)
        yield piece, values


def compute_chunks(
    pieces: Iterable[list[PhrasePair]], executor: FeatureExecutor, features: int, old: OldTable | None = None
) -> Iterator[ScoredChunk]:
    """Each chunk with its values, known or computed; nan for those that were lost."""
    waiting: deque[ScoredChunk] = deque()

    def tasks() -> Iterator[Task]:
        for piece in pieces:
            values = old.find(piece) if old else np.full((len(piece), features), np.nan)
            waiting.append((piece, values))
            yield unscored_pairs(piece, values)

    for computed in executor.map(tasks()):
        piece, values = waiting.popleft()
        if isinstance(computed, Lost):
            yield piece, lost_scores(len(piece), features)
            continue
        for feature in range(features):
            values[np.isnan(values[:, feature]), feature] = computed[feature]
        yield piece, values


def unscored_pairs(piece: Sequence[PhrasePair], values: Scores) -> Task:
    """For each feature the pairs whose value is not known yet (nan)."""
    pairs = of_phrases(piece)
    unknown = np.isnan(values)
    return [pairs if missing.all() else pairs.take(np.flatnonzero(missing)) for missing in unknown.T]


def scored_lines(piece: Sequence[PhrasePair], values: Scores) -> Iterator[bytes]:
    """The lines of a chunk, each with one more score for each feature."""
    for pair, row in zip(piece, values.tolist(), strict=True):
        yield pair.line(b" ".join(map(moses_score, row)))


def moses_score(log_prob: float) -> bytes:
    """exp(value) as Moses writes numbers, floored at 1e-38: Moses takes the logarithm itself."""
    if math.isnan(log_prob):
        raise ValueError("a feature value is not a number")
    return b"%.6g" % min(CEILING, max(FLOOR, math.exp(min(log_prob, 700.0))))


# ---- estimate ----------------------------------------------------------------------------------------------
# How long a table will take: measured on chunks from all over it, before the job.


ESTIMATE_SECONDS = 30.0  # seconds that are measured, or one chunk


@dataclass
class ScoringEstimate:
    """Speed and memory of one scoring process, measured on a sample."""

    measured: int  # pairs
    rate: float  # pairs a second
    memory: float  # MB


def estimate(table_survey: TableSurvey, features: FeatureSet) -> ScoringEstimate:
    """Score some chunks in this process."""
    clock, count = time.monotonic(), 0
    for piece in table_survey.sample:
        features.compute([of_phrases(piece)] * len(features))
        count += len(piece)
        if time.monotonic() - clock > ESTIMATE_SECONDS:
            break
    rate = count / (time.monotonic() - clock)
    return ScoringEstimate(count, rate, peak_memory())
