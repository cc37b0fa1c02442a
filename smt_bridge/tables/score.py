"""A phrase table with new score columns: streamed, everything but the score field byte-equal.

    check the whole table -> cut it into chunks at changes of source -> score chunks -> append columns in the
    table's order

chunks.py has the middle of it; this file the job around it.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

from nmt.errors import ConfigError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from nmt.work.executors import KILLED, ExecutorConfig, LostLines
from nmt.work.store import lock_job
from smt_bridge.features.base import of_phrases
from smt_bridge.features.feature_set import FeatureSet, process_settings
from smt_bridge.features.registry import FeatureSettings, parse_features
from smt_bridge.jobs import ScoringJob, is_lost, lost_chunks_remedy, open_job
from smt_bridge.tables.chunks import (
    CHUNK,
    OldTable,
    ScoredChunk,
    TableSurvey,
    chunks,
    compute_chunks,
    score_chunks,
    scored_lines,
    survey,
    write_columns,
)
from smt_bridge.tables.report import TableReport

log = logging.getLogger(__name__)

SAMPLE = 1000  # pairs on which --precision is measured
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

    `features`: KIND[:NAME]=PATH, see features/registry.py; `settings`: how they compute, by default with the
    threads of this process. The other arguments are the options of that name: `table` and `output` are plain
    or gzip files, or `-`; `unsorted` takes a table that is not in LC_ALL=C order; `shard` (i, n) scores the
    i-th of n parts; `resume` continues a job that was killed; `reuse` copies scores from an earlier output;
    `report` names a folder; `executor` is one of EXECUTORS, `cluster` a Dask scheduler. `progress` is called
    with the pairs done and the pairs of the table, first before any chunk is computed, then after each.

    ConfigError for arguments that contradict each other, DataError for a table that is not sound, and for a
    feature what its `load` raises; before any work.
    """
    how = ExecutorConfig(executor, workers, cluster, mixed_workers)
    check_arguments(table, output, shard=shard, resume=resume, reuse=reuse, unsorted=unsorted)
    with lock_job(output, "smt-score-table") if has_job(table, output) else nullcontext():
        loaded = FeatureSet(parse_features(features), settings or process_settings())
        refuse_aligned(loaded)
        old = old_table(reuse, loaded)
        summary = TableReport(report, loaded.names, loaded.features) if report else None
        with loaded.executor(how) as running:
            table_survey = survey_table(table, unsorted, summary is not None)
            pieces = select(table, table_survey, shard, unsorted)
            if loaded.settings.precision != "fp32":
                pieces = log_precision(loaded, table_survey, pieces)
            job = start_job(table, output, loaded, shard, resume, reuse, how)
            if job and resume:
                again = old_table(reuse, loaded)
                compute = partial(compute_chunks, executor=running, features=len(loaded), old=again)
                job.recompute_lost(select(table, table_survey, shard, unsorted), compute)
            stream = score_chunks(pieces, running, len(loaded), job, old)
            total = table_survey.pairs if table_survey and not shard else 0
            whole = partial(check_lost, table, table_survey, shard, job)
            done = write(output, stream, job, summary, whole, total, progress or (lambda done, total: None))
    if output != "-":
        write_columns(output, describe_columns(loaded, done.columns))
    finish(job, old, summary)
    return ScoredTable(pairs=done.pairs, columns=done.columns + len(loaded))


def finish(job: ScoringJob | None, old: OldTable | None, report: TableReport | None) -> None:
    """Remove the job folder, log how many pairs had old scores, and write the report."""
    if job:
        job.remove()
    if old:
        log.info("%s of %s pairs were found in %s", f"{old.found:,}", f"{old.asked:,}", old.path)
    if report:
        report.write()
        log.info("report: %s", report.directory)


def old_table(path: str | None, features: FeatureSet) -> OldTable | None:
    """The earlier table whose scores are copied, from its beginning."""
    return OldTable(path, features.identities()) if path else None


@dataclass
class ScoredTable:
    """Size of a written table: its lines, and the scores of each line."""

    pairs: int = 0
    columns: int = 0


def refuse_aligned(loaded: FeatureSet) -> None:
    """ConfigError for a feature that rows of a table have too little for."""
    for spec, feature in zip(loaded.specs, loaded.features, strict=True):
        if feature.word_aligned:
            raise ConfigError(
                f"--feature {spec.kind}: needs the sentence around a phrase; use it in smt-rescore, or "
                "in the search"
            )


# ---- before the work ---------------------------------------------------------------------------------------


def seekable(table: str) -> bool:
    """Can the table be read twice?"""
    return table != "-" and Path(table).is_file()


def has_job(table: str, output: str) -> bool:
    """Is there a job folder? None for a table or an output that is a stream."""
    return seekable(table) and output != "-"


def check_arguments(
    table: str,
    output: str,
    *,
    shard: tuple[int, int] | None,
    resume: bool,
    reuse: str | None,
    unsorted: bool,
) -> None:
    """ConfigError for arguments that contradict each other."""
    if shard and not seekable(table):
        raise needs_file("shard")
    if resume and not has_job(table, output):
        raise needs_file("resume", " and needs an --output")
    if reuse and unsorted:
        raise ConfigError("--reuse walks two sorted tables side by side; it does not go with --unsorted")


def needs_file(option: str, more: str = "") -> ConfigError:
    """The error for an option that needs a table of its own file."""
    return ConfigError(f"--{option} reads the table twice{more}: give files, not - or a pipe")


def survey_table(table: str, unsorted: bool = False, report: bool = False) -> TableSurvey | None:
    """One reading of the whole table; None where it can be read only once. ConfigError for a `report` on a
    table without p(target | source)."""
    if not seekable(table):
        return None
    result = survey(table, unsorted)
    if report and result.columns < 3:
        raise ConfigError(
            f"--report: {table} has {result.columns} scores, but p(target | source) is Moses' third; "
            "leave --report out"
        )
    counts = f"{result.pairs:,} pairs, {result.sources:,} sources"
    log.info("%s: %s, %d scores a line", table, counts, result.columns)
    return result


def select(
    table: str, table_survey: TableSurvey | None, shard: tuple[int, int] | None, unsorted: bool
) -> Iterator[list[PhrasePair]]:
    """The chunks of the table, or those of its shard; a table that was surveyed is not checked again."""
    pairs = phrase_table.read(table) if table_survey else phrase_table.checked(table, unsorted)
    first, last = part(shard, table_survey.chunks) if table_survey and shard else (0, None)
    return islice(chunks(pairs), first, last)


def part(shard: tuple[int, int], count: int) -> tuple[int, int]:
    """The chunks of the i-th of n shards: the first one, and the one after the last."""
    number, parts = shard
    return (number - 1) * count // parts, number * count // parts


def log_precision(
    features: FeatureSet, table_survey: TableSurvey | None, pieces: Iterator[list[PhrasePair]]
) -> Iterator[list[PhrasePair]]:
    """Log the error of the precision on a chunk from the middle of the table, or on the first one of a
    stream; the same chunks again."""
    sample = table_survey.sample[len(table_survey.sample) // 2] if table_survey else next(pieces, [])
    log.info("%s", features.precision_error(of_phrases(sample[:SAMPLE])))
    return pieces if table_survey else chain([sample], pieces)


def start_job(
    table: str,
    output: str,
    features: FeatureSet,
    shard: tuple[int, int] | None,
    resume: bool,
    reuse: str | None,
    how: ExecutorConfig,
) -> ScoringJob | None:
    """The job folder beside the output; None for streams."""
    if not has_job(table, output):
        return None
    status = Path(table).stat()
    settings: dict[str, object] = {
        "table": [os.path.realpath(table), status.st_size, status.st_mtime_ns],
        "features": features.identities(),
        "shard": shard,
        "back_end": features.settings.back_end,
        "threads": features.settings.threads,
        "reuse": reuse,
        "chunk": CHUNK,
        **how.recorded(),
    }
    job = open_job(output, settings, len(features), resume)
    if done := job.count():
        log.info("resuming after %d finished chunks", done)
    return job


# ---- the work ----------------------------------------------------------------------------------------------


def write(
    output: str,
    stream: Iterable[ScoredChunk],
    job: ScoringJob | None,
    report: TableReport | None,
    whole: Callable[[LostLines], None],
    total: int,
    progress: Progress,
) -> ScoredTable:
    """Write the chunks with their new columns; returns what the table had before. `whole` raises where
    lines were lost."""
    done, lost = ScoredTable(), LostLines()
    resumed = job.count() if job else 0
    if not resumed:
        progress(0, total)
    with files.Writing(output, job.folder if job else None) as out:
        for number, (piece, values) in enumerate(stream, 1):
            done.pairs += len(piece)
            done.columns = done.columns or len(piece[0].scores.split())
            if is_lost(values):
                lost.add(done.pairs - len(piece) + 1, done.pairs, KILLED)
                if not job:  # nothing is kept
                    break
                continue
            for line in scored_lines(piece, values):
                out.write(line + b"\n")
            if number >= resumed:
                progress(done.pairs, total)
            if report:
                report.add(piece, values)
        whole(lost)
    return done


def check_lost(
    table: str,
    table_survey: TableSurvey | None,
    shard: tuple[int, int] | None,
    job: ScoringJob | None,
    lost: LostLines,
) -> None:
    """UserError that names the lines of lost chunks, if there are any. `lost` counts from the beginning of
    the shard."""
    if not lost.ranges:
        return
    first, _ = part(shard, table_survey.chunks) if table_survey and shard else (0, 0)
    skipped = sum(map(len, islice(chunks(phrase_table.read(table)), first))) if first else 0
    lost.check(table, lost_chunks_remedy(job), skipped)


def describe_columns(features: FeatureSet, old_columns: int) -> list[dict[str, object]]:
    """Entries of OUTPUT.scores.json for the new columns, numbered after the `old_columns` of the table."""
    rows = zip(features.specs, features.identities(), strict=True)
    return [
        {"column": column, "name": spec.name, "type": spec.kind, "path": spec.path, "identity": identity}
        for column, (spec, identity) in enumerate(rows, old_columns + 1)
    ]
