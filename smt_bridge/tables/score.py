"""Append score columns to a phrase table: streamed, everything but the score field byte-equal.

    check the whole table -> cut it into chunks at changes of source -> score chunks -> append columns in the
    table's order

Chunk boundaries depend on the table alone, so that shards, workers and resumed jobs all give the same bytes.
"""

import json
import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.compute.resources import peak_memory
from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import SMALLEST, PhrasePair
from nmt.io import files, numbers
from nmt.work.executors import KILLED, ExecutorConfig, Lost, LostLines
from nmt.work.store import lock_job
from smt_bridge.features.base import of_phrases
from smt_bridge.features.feature_set import FeatureExecutor, FeatureSet, Task, process_settings
from smt_bridge.features.registry import FeatureSettings, parse_features
from smt_bridge.jobs import (
    Scores,
    ScoringJob,
    is_lost,
    lost_chunks_remedy,
    lost_scores,
    open_job,
    resume_chunks,
)
from smt_bridge.tables.report import TableReport

log = logging.getLogger(__name__)

# ---- reuse -------------------------------------------------------------------------------------------------
# Scores of an earlier table, for the pairs that both have: `OLD.scores.json` says which model a column came
# from.


def write_columns(table: str, columns: list[dict[str, object]]) -> None:
    """Describe the new columns of a finished table in a JSON file beside it. UserError if that fails."""
    files.write_text(f"{table}.scores.json", [json.dumps({"version": 1, "columns": columns}, indent=1)])


def read_columns(table: str) -> dict[str, int]:
    """Map the identities of features to their columns, counted from 1. DataError if the file that
    smt-score-table writes beside a table is missing or damaged."""
    path = Path(f"{table}.scores.json")
    try:
        columns = json.loads(path.read_text(encoding="utf-8"))["columns"]
        return {str(column["identity"]): numbers.count(str(column["column"])) for column in columns}
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: not there; smt-score-table writes it beside its output, and without it there is no "
            "telling which run made a column; leave --reuse out"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: damaged; score the table again, without --reuse") from error


class OldTable:
    """An earlier table, read beside a new one: as both are sorted, memory does not grow with either."""

    def __init__(self, path: str, identities: Sequence[str]) -> None:
        """Open the old table. `identities`: of the wanted features. DataError if the old table has none of
        them, is malformed, or if its description is missing or damaged."""
        self.path = path
        by_identity = read_columns(path)
        self.columns = [by_identity.get(identity) for identity in identities]
        if not any(self.columns):
            raise DataError(
                f"{path}: none of its columns was made by these runs with these settings, so there is "
                "nothing to reuse; leave --reuse out"
            )
        self.pairs = phrase_table.read_strict(path)
        self.next_pair = next(self.pairs, None)
        self.matches = self.lookups = 0

    def find(self, chunk: Sequence[PhrasePair]) -> NDArray[np.float64]:
        """Natural logarithms of the old scores, nan where there is none: (pairs, features). Must be called
        for all chunks, in the order of the table. Updates `matches` and `lookups`. DataError for a malformed
        line of the old table."""
        values = np.full((len(chunk), len(self.columns)), np.nan)
        for row, pair in enumerate(chunk):
            wanted = sort_key(pair)
            while self.next_pair is not None and sort_key(self.next_pair) < wanted:
                self.next_pair = next(self.pairs, None)
            self.lookups += 1
            if self.next_pair is not None and sort_key(self.next_pair) == wanted:
                self.matches += 1
                scores = self.next_pair.scores.split()
                for feature, column in enumerate(self.columns):
                    if column and column <= len(scores):
                        values[row, feature] = math.log(max(SMALLEST, float(scores[column - 1])))
        return values


def sort_key(pair: PhrasePair) -> bytes:
    """The part of a line that decides its position in a sorted table: source and target with separators."""
    return pair.source + b" ||| " + pair.target + b" ||| "


# ---- chunks ------------------------------------------------------------------------------------------------


# pairs: enough sources for large matrix products; the states of a network of 1000 units then take about 100
# MB
CHUNK = 4096
LONGEST = 4 * CHUNK  # a source with more options than that is cut
SAMPLES = 4  # least number of chunks, spread over the table, in a sample
# Moses parses float32 and floors what it cannot hold; 0, negative numbers and nan break it silently
FLOOR = 1e-38
CEILING = 3e38  # what is larger becomes infinite there

# A chunk and its values, (pairs, features), natural logarithms; nan if it was lost on a cluster
ScoredChunk = tuple[list[PhrasePair], Scores]


def cut_chunks(pairs: Iterable[PhrasePair]) -> Iterator[list[PhrasePair]]:
    """Cut a table into chunks of at least CHUNK pairs, between two sources, or, if a source has too many
    pairs, after LONGEST pairs."""
    chunk: list[PhrasePair] = []
    for pair in pairs:
        if len(chunk) >= CHUNK and (pair.source != chunk[-1].source or len(chunk) >= LONGEST):
            yield chunk
            chunk = []
        chunk.append(pair)
    if chunk:
        yield chunk


@dataclass
class TableSurvey:
    """Size of a table, and a sample of it, from a first pass that checks the whole table."""

    pairs: int = 0
    sources: int = 0  # source phrases
    chunks: int = 0
    columns: int = 0  # scores of a line
    sample: list[list[PhrasePair]] = field(default_factory=list)  # chunks from all over the table


def read_survey(table: str, unsorted: bool = False) -> TableSurvey:
    """Read and check a whole table. `unsorted`: accept lines in any order. DataError for its first error."""
    result = TableSurvey()
    every = 1
    for number, chunk in enumerate(cut_chunks(phrase_table.read_strict(table, unsorted))):
        result.chunks += 1
        result.pairs += len(chunk)
        result.sources += len({pair.source for pair in chunk})
        result.columns = len(chunk[0].scores.split())
        if number % every == 0:
            if len(result.sample) == 2 * SAMPLES:  # keep every other one and continue in steps twice as long
                del result.sample[1::2]
                every *= 2
            if number % every == 0:
                result.sample.append(chunk)
    return result


def score_chunks(
    chunks: Iterable[list[PhrasePair]],
    executor: FeatureExecutor,
    features: int,
    job: ScoringJob | None = None,
    old: OldTable | None = None,
) -> Iterator[ScoredChunk]:
    """Yield each chunk with its values, (pairs, `features`), natural logarithms: read back if the resumed
    `job` had finished it, otherwise copied from `old` or computed; nan for chunks that were lost."""

    def finished_rows(chunk: list[PhrasePair]) -> int:
        if old:
            old.find(chunk)  # both tables are walked side by side
        return len(chunk)

    compute = partial(compute_chunks, executor=executor, features=features, old=old)
    return resume_chunks(chunks, compute, job, finished_rows)


def compute_chunks(
    chunks: Iterable[list[PhrasePair]], executor: FeatureExecutor, features: int, old: OldTable | None = None
) -> Iterator[ScoredChunk]:
    """Yield each chunk with its values, (pairs, `features`), natural logarithms: copied from `old` where it
    has them, otherwise computed; nan for chunks that were lost."""
    waiting: deque[ScoredChunk] = deque()

    def tasks() -> Iterator[Task]:
        for chunk in chunks:
            values = old.find(chunk) if old else np.full((len(chunk), features), np.nan)
            waiting.append((chunk, values))
            yield unscored_pairs(chunk, values)

    for computed in executor.map(tasks()):
        chunk, values = waiting.popleft()
        if isinstance(computed, Lost):
            yield chunk, lost_scores(len(chunk), features)
            continue
        for feature in range(features):
            values[np.isnan(values[:, feature]), feature] = computed[feature]
        yield chunk, values


def unscored_pairs(chunk: Sequence[PhrasePair], values: Scores) -> Task:
    """Select, for each feature, the pairs whose value is still unknown (nan)."""
    pairs = of_phrases(chunk)
    unknown = np.isnan(values)
    return [pairs if missing.all() else pairs.take(np.flatnonzero(missing)) for missing in unknown.T]


def scored_lines(chunk: Sequence[PhrasePair], values: Scores) -> Iterator[bytes]:
    """Yield the lines of a chunk, with one more score per feature. ValueError for a value that is nan."""
    for pair, row in zip(chunk, values.tolist(), strict=True):
        yield pair.line(b" ".join(map(moses_score, row)))


def moses_score(log_prob: float) -> bytes:
    """Format exp(log_prob) as Moses writes numbers, between FLOOR and CEILING, since Moses itself takes the
    logarithm. ValueError for nan."""
    if math.isnan(log_prob):
        raise ValueError("a feature value is not a number")
    return b"%.6g" % min(CEILING, max(FLOOR, math.exp(min(log_prob, 700.0))))


# ---- estimate ----------------------------------------------------------------------------------------------
# How long a table will take: measured on chunks from all over it, before the job.


ESTIMATE_SECONDS = 30.0  # seconds that are measured, or one chunk


@dataclass
class ScoringEstimate:
    """Measured speed and memory of one process that scores a sample."""

    measured: int  # pairs
    rate: float  # pairs a second
    memory: float  # MB


def estimate_speed(table_survey: TableSurvey, features: FeatureSet) -> ScoringEstimate:
    """Measure the speed of this process on the table's sample, and its peak memory: on one chunk, and on
    further ones until ESTIMATE_SECONDS have passed."""
    clock, count = time.monotonic(), 0
    for chunk in table_survey.sample:
        features.compute([of_phrases(chunk)] * len(features))
        count += len(chunk)
        if time.monotonic() - clock > ESTIMATE_SECONDS:
            break
    rate = count / (time.monotonic() - clock)
    return ScoringEstimate(count, rate, peak_memory())


# ---- the job -----------------------------------------------------------------------------------------------


PRECISION_PAIRS = 1000  # pairs on which --precision is measured
Progress = Callable[[int, int], None]  # pairs done, pairs of the table (0: unknown); see score_table


def score_table(
    table: str,
    output: str,
    features: Sequence[str],
    settings: FeatureSettings | None = None,
    *,
    unsorted: bool = False,
    shard: tuple[int, int] | None = None,
    resume: bool = False,
    reuse: str | None = None,
    report: str | None = None,
    workers: int = 1,
    executor: str = "",
    cluster: str = "",
    mixed_workers: bool = False,
    progress: Progress | None = None,
) -> "ScoredTable":
    """Append a column to a Moses phrase table for each feature, exp(value); what smt-score-table does.

    >>> import smt_bridge
    >>> done = smt_bridge.score_table("table.gz", "scored.gz", ["translation=runs/en-fr", "lm=lm.arpa"])
    >>> done.columns  # the four that the table had, and two new ones
    6

    `features`: TYPE[:NAME]=PATH, see features/registry.py; `settings`: how they compute, by default with the
    threads of this process. The other arguments are the options of that name: `table` and `output` are plain
    or gzip files, or `-`; `unsorted` takes a table that is not in LC_ALL=C order; `shard` (i, n) scores the
    i-th of n parts, from 1; `resume` continues a job that was killed; `reuse` copies scores from an earlier
    output; `report` names a folder; `executor` is one of EXECUTORS, `cluster` a Dask scheduler. `progress` is
    called with the pairs done and the pairs of the table, before any chunk is computed and after each.

    Before any work, ConfigError for arguments that contradict each other, DataError for a table that is not
    sound, and for a feature what its `load` raises. UserError if the output cannot be written, another
    process works on it, or a worker is lost.
    """
    executor_config = ExecutorConfig(executor, workers, cluster, mixed_workers)
    check_arguments(table, output, shard=shard, resume=resume, reuse=reuse, unsorted=unsorted)
    with lock_job(output, "smt-score-table") if has_job(table, output) else nullcontext():
        specs = parse_features(features)
        loaded = FeatureSet(specs, settings or process_settings(specs))
        refuse_aligned(loaded)
        old = old_table(reuse, loaded)
        summary = TableReport(report, loaded.names, loaded.features) if report else None
        with loaded.executor(executor_config) as running:
            source = TableSource(table, survey_table(table, unsorted, summary is not None), shard, unsorted)
            chunks = source.chunks()
            if loaded.settings.precision != "fp32":
                chunks = log_precision(loaded, source.survey, chunks)
            job = start_job(source, output, loaded, resume, reuse, executor_config)
            if job and resume:
                again = old_table(reuse, loaded)
                compute = partial(compute_chunks, executor=running, features=len(loaded), old=again)
                job.recompute_lost(source.chunks(), compute)
            stream = score_chunks(chunks, running, len(loaded), job, old)
            done = write_chunks(output, stream, source, job, summary, progress or (lambda done, total: None))
    if output != "-":
        write_columns(output, describe_columns(loaded, done.columns))
    finish(job, old, summary)
    return ScoredTable(pairs=done.pairs, columns=done.columns + len(loaded))


def finish(job: ScoringJob | None, old: OldTable | None, report: TableReport | None) -> None:
    """Remove the job folder, log how many pairs had old scores, and write the report."""
    if job:
        job.remove()
    if old:
        log.info("%s of %s pairs were found in %s", f"{old.matches:,}", f"{old.lookups:,}", old.path)
    if report:
        report.write()
        log.info("report: %s", report.directory)


def old_table(path: str | None, features: FeatureSet) -> OldTable | None:
    """Open the earlier table from which scores are copied; None if there is none."""
    return OldTable(path, features.identities()) if path else None


@dataclass
class ScoredTable:
    """Size of a written table: its lines, and the scores of each line."""

    pairs: int = 0
    columns: int = 0


def refuse_aligned(loaded: FeatureSet) -> None:
    """ConfigError for a feature that needs the whole sentence around a phrase, which table rows lack."""
    for spec, feature in zip(loaded.specs, loaded.features, strict=True):
        if feature.word_aligned:
            raise ConfigError(
                f"--feature {spec.kind}: needs the sentence around a phrase; use it in smt-rescore, or "
                "in the search"
            )


def seekable(table: str) -> bool:
    """Whether the table can be read twice."""
    return table != "-" and Path(table).is_file()


def has_job(table: str, output: str) -> bool:
    """Whether to use a job folder; not if the table or the output is a stream."""
    return seekable(table) and output != "-"


def check_arguments(
    table: str, output: str, *, shard: tuple[int, int] | None, resume: bool, reuse: str | None, unsorted: bool
) -> None:
    """ConfigError for arguments that contradict each other."""
    if shard and not seekable(table):
        raise needs_file("shard")
    if resume and not has_job(table, output):
        raise needs_file("resume", " and needs an --output")
    if reuse and unsorted:
        raise ConfigError(
            "--reuse walks two sorted tables side by side; it cannot be combined with --unsorted"
        )


def needs_file(option: str, more: str = "") -> ConfigError:
    """The error for an option that does not work with a stream."""
    return ConfigError(f"--{option} reads the table twice{more}: give files, not - or a pipe")


def survey_table(table: str, unsorted: bool = False, report: bool = False) -> TableSurvey | None:
    """Read and check the whole table once, and log its size; returns None if it can be read only once.
    DataError for a malformed table, ConfigError for a `report` on a table without p(target | source)."""
    if not seekable(table):
        return None
    result = read_survey(table, unsorted)
    if report and result.columns < 3:
        raise ConfigError(
            f"--report: {table} has {result.columns} scores, but p(target | source) is Moses' third; "
            "leave --report out"
        )
    counts = f"{result.pairs:,} pairs, {result.sources:,} sources"
    log.info("%s: %s, %d scores a line", table, counts, result.columns)
    return result


@dataclass
class TableSource:
    """The table to score, or a shard of it."""

    path: str
    survey: TableSurvey | None  # None: it can be read only once
    shard: tuple[int, int] | None = None  # (i, n): the i-th of n parts, from 1
    unsorted: bool = False

    def chunks(self) -> Iterator[list[PhrasePair]]:
        """Yield the chunks of the table or the shard. A table that was surveyed is not checked again."""
        path = self.path
        pairs = phrase_table.read(path) if self.survey else phrase_table.read_strict(path, self.unsorted)
        return islice(cut_chunks(pairs), *self.limits())

    def limits(self) -> tuple[int, int | None]:
        """Indices of the first chunk and of the one after the last; None: to the end."""
        if not self.survey or not self.shard:
            return 0, None
        number, parts = self.shard
        return (number - 1) * self.survey.chunks // parts, number * self.survey.chunks // parts

    def pairs(self) -> int:
        """Number of pairs; 0 for a stream or a shard."""
        return self.survey.pairs if self.survey and not self.shard else 0

    def check_lost(self, job: ScoringJob | None, lost: LostLines) -> None:
        """UserError that names the lines of lost chunks, if there are any. `lost` counts lines from the start
        of the shard."""
        if lost.ranges:
            first, _ = self.limits()
            skipped = sum(map(len, islice(cut_chunks(phrase_table.read(self.path)), first))) if first else 0
            lost.check(self.path, lost_chunks_remedy(job), skipped)


def log_precision(
    features: FeatureSet, table_survey: TableSurvey | None, chunks: Iterator[list[PhrasePair]]
) -> Iterator[list[PhrasePair]]:
    """Log the error of the precision on a chunk from the middle of the table, or on the first one of a
    stream; returns all chunks."""
    sample = table_survey.sample[len(table_survey.sample) // 2] if table_survey else next(chunks, [])
    log.info("%s", features.precision_error(of_phrases(sample[:PRECISION_PAIRS])))
    return chunks if table_survey else chain([sample], chunks)


def start_job(
    source: TableSource,
    output: str,
    features: FeatureSet,
    resume: bool,
    reuse: str | None,
    executor_config: ExecutorConfig,
) -> ScoringJob | None:
    """Open the job folder beside the output, and log how many chunks a resumed job has finished; None for
    streams. Errors as in `open_job`."""
    if not has_job(source.path, output):
        return None
    status = Path(source.path).stat()
    settings: dict[str, object] = {
        "table": [os.path.realpath(source.path), status.st_size, status.st_mtime_ns],
        "features": features.identities(),
        "shard": source.shard,
        "back_end": features.settings.back_end,
        "threads": features.settings.threads,
        "reuse": reuse,
        "chunk": CHUNK,
        **executor_config.recorded(),
    }
    job = open_job(output, settings, len(features), resume)
    if done := job.count():
        log.info("resuming after %d finished chunks", done)
    return job


def write_chunks(
    output: str,
    stream: Iterable[ScoredChunk],
    source: TableSource,
    job: ScoringJob | None,
    report: TableReport | None,
    progress: Progress,
) -> ScoredTable:
    """Write the chunks of `stream` with their new columns, and report progress; returns the number of pairs,
    and of scores per pair without the new ones. UserError that names the lines of chunks that were lost."""
    total = source.pairs()
    # A shard may be empty.
    done, lost = ScoredTable(columns=source.survey.columns if source.survey else 0), LostLines()
    resumed = job.count() if job else 0
    if not resumed:
        progress(0, total)
    with files.Writing(output, job.folder if job else None) as out:
        for number, (chunk, values) in enumerate(stream, 1):
            done.pairs += len(chunk)
            done.columns = done.columns or len(chunk[0].scores.split())
            if is_lost(values):
                lost.add(done.pairs - len(chunk) + 1, done.pairs, KILLED)
                if not job:  # the rest could not be kept for a resumed job
                    break
                continue
            for line in scored_lines(chunk, values):
                out.write(line + b"\n")
            if number >= resumed:
                progress(done.pairs, total)
            if report:
                report.add(chunk, values)
        source.check_lost(job, lost)
    return done


def describe_columns(features: FeatureSet, old_columns: int) -> list[dict[str, object]]:
    """Describe the new columns for OUTPUT.scores.json; their numbers follow the `old_columns` old ones."""
    rows = zip(features.specs, features.identities(), strict=True)
    return [
        {"column": column, "name": spec.name, "type": spec.kind, "path": spec.path, "identity": identity}
        for column, (spec, identity) in enumerate(rows, old_columns + 1)
    ]
