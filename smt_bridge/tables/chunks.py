"""A phrase table in chunks: read once to check it, cut, scored, and written with new columns.

The limits of chunks depend on the table alone, so that shards, workers and resumed jobs all give the same
bytes.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.jobs.lost import Lost
from smt_bridge.features.base import of_phrases
from smt_bridge.features.feature_set import FeatureExecutor, Task
from smt_bridge.jobs.scores import Job, Scores, no_scores
from smt_bridge.tables.reuse import OldTable

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
class Survey:
    """What one reading of the whole table found; nothing is scored before its end has been seen to be
    sound."""

    pairs: int = 0
    sources: int = 0
    chunks: int = 0
    columns: int = 0
    sample: list[list[PhrasePair]] = field(default_factory=list)  # chunks from all over the table


def survey(table: str, unsorted: bool = False) -> Survey:
    """Read and check a table. DataError for the first thing in it that is wrong."""
    found = Survey()
    every = 1
    for number, piece in enumerate(chunks(phrase_table.checked(table, unsorted))):
        found.chunks += 1
        found.pairs += len(piece)
        found.sources += len({pair.source for pair in piece})
        found.columns = len(piece[0].scores.split())
        if number % every == 0:
            if len(found.sample) == 2 * SAMPLES:  # keep every other one and continue in steps twice as long
                del found.sample[1::2]
                every *= 2
            if number % every == 0:
                found.sample.append(piece)
    return found


def score(
    pieces: Iterable[list[PhrasePair]],
    executor: FeatureExecutor,
    features: int,
    job: Job | None = None,
    old: OldTable | None = None,
) -> Iterator[ScoredChunk]:
    """Each chunk with the values of `features` features: those of a resumed job as they were, the others
    computed, nan for those that were lost."""
    stream = iter(pieces)
    if job:
        for values in job.finished():
            piece = next(stream, [])
            job.check(values, len(piece))
            if old:
                old.find(piece)  # both tables are walked side by side
            yield piece, values
    for piece, values in computed(stream, executor, features, old):
        if job:
            job.add(values)
        yield piece, values


def computed(
    pieces: Iterable[list[PhrasePair]], executor: FeatureExecutor, features: int, old: OldTable | None = None
) -> Iterator[ScoredChunk]:
    """Each chunk with its values, known or computed; nan for those that were lost."""
    waiting: deque[ScoredChunk] = deque()

    def tasks() -> Iterator[Task]:
        for piece in pieces:
            values = old.find(piece) if old else np.full((len(piece), features), np.nan)
            waiting.append((piece, values))
            yield task_of(piece, values)

    for found in executor.map(tasks()):
        piece, values = waiting.popleft()
        if isinstance(found, Lost):
            yield piece, no_scores(len(piece), features)
            continue
        for feature in range(features):
            values[np.isnan(values[:, feature]), feature] = found[feature]
        yield piece, values


def task_of(piece: Sequence[PhrasePair], values: Scores) -> Task:
    """For each feature the pairs whose value is not known yet (nan)."""
    pairs = of_phrases(piece)
    unknown = np.isnan(values)
    return [pairs if asked.all() else pairs.take(np.flatnonzero(asked)) for asked in unknown.T]


def lines(piece: Sequence[PhrasePair], values: Scores) -> Iterator[bytes]:
    """The lines of a chunk, each with one more score for each feature."""
    for pair, row in zip(piece, values.tolist(), strict=True):
        yield pair.line(b" ".join(map(moses_score, row)))


def moses_score(log_prob: float) -> bytes:
    """exp(value) as Moses writes numbers, floored at 1e-38: Moses takes the logarithm itself."""
    if math.isnan(log_prob):
        raise ValueError("a feature value is not a number")
    return b"%.6g" % min(CEILING, max(FLOOR, math.exp(min(log_prob, 700.0))))
