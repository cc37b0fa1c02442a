"""smt-score-table: append neural and other scores to a Moses phrase table."""

import argparse
import itertools
import logging
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files, phrase_table
from nmt.cli import options
from nmt.errors import ConfigError
from smt_bridge.cli import features as feature_options
from smt_bridge.cli.progress import Progress, duration
from smt_bridge.features.base import Settings, Spec, of_phrases, parse

if TYPE_CHECKING:
    from smt_bridge.score_table import Survey

log = logging.getLogger("nmt.score_table")

SAMPLE = 1000  # pairs on which --precision is measured


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-score-table",
        "Append columns, exp(value) of each feature, to a Moses phrase table; everything else stays byte for byte. "
        "Filter the table first (smt-filter-table): that is often ten times less work.",
    )
    parser.add_argument("table", metavar="TABLE", help="phrase table; plain, gzip, or -")
    feature_options.add_features(parser)
    options.add_output(parser)
    parser.add_argument("--unsorted", action="store_true", help="take a table that is not in LC_ALL=C order (Moses' processPhraseTableMin will not)")
    parser.add_argument("--shard", type=shard, default=None, metavar="I/N", help="only the I-th of N parts, on a cluster; cat joins the outputs")
    parser.add_argument("--resume", action="store_true", help="go on with a job that was killed, from OUTPUT.job")
    parser.add_argument("--reuse", metavar="OLD", default=None, help="an earlier output: pairs that the same run scored there are copied")
    parser.add_argument("--estimate", action="store_true", help="measure a sample, print pairs, rate, time and memory, and stop")
    parser.add_argument("--report", metavar="DIR", default=None, help="write coverage, scatter against the direct probability, best phrases (Table 4.2)")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-score-table", args.quiet)
    specs = parse(args.feature)
    check(args)
    from smt_bridge.features.load import load
    from smt_bridge.job import settings_of

    before = settings_of(args.output) if args.resume else {}
    settings, set_up = feature_options.set_up(args, specs, str(before.get("back_end", "")))
    features = load(specs, settings)
    run(args, specs, settings, set_up, features)


def check(args: argparse.Namespace) -> None:
    """Whatever contradicts itself or is not there."""
    files.existing([path for path in (args.table, args.reuse) if path])
    seekable = args.table != "-" and Path(args.table).is_file()
    for flag, needed in (("shard", seekable), ("estimate", seekable), ("resume", seekable and args.output != "-")):
        if getattr(args, flag) and not needed:
            raise ConfigError(f"--{flag} reads the table twice{' and needs an --output' * (flag == 'resume')}: give files, not - or a pipe")
    if args.reuse and args.unsorted:
        raise ConfigError("--reuse walks two sorted tables side by side; it does not go with --unsorted")
    if args.output != "-" and args.table != "-" and os.path.realpath(args.output) == os.path.realpath(args.table):
        raise ConfigError(f"{args.output}: is the table itself; name another output")


def run(args: argparse.Namespace, specs: list[Spec], settings: Settings, set_up: str, features: list[Any]) -> None:
    from smt_bridge import score_table
    from smt_bridge.features.load import identity
    from smt_bridge.job import open_job
    from smt_bridge.report import Report
    from smt_bridge.reuse import OldTable, write_columns
    from smt_bridge.workers import Crew

    identities = [identity(spec, settings) for spec in specs]
    old = OldTable(args.reuse, identities) if args.reuse else None
    report = Report(args.report, specs, features) if args.report else None
    regular = args.table != "-" and Path(args.table).is_file()
    found = score_table.survey(args.table, args.unsorted) if regular else None
    if found:
        log.info("%s: %s pairs, %s sources, %d scores a line", args.table, f"{found.pairs:,}", f"{found.sources:,}", found.columns)
    if report and found and found.columns < 3:
        raise ConfigError(f"--report: {args.table} has {found.columns} scores, but p(target | source) is Moses' third; leave --report out")
    log.info("%s", set_up)
    pieces = score_table.chunks(phrase_table.checked(args.table, args.unsorted))
    first, last = part(args.shard, found.chunks) if found and args.shard else (0, None)
    pieces = itertools.islice(pieces, first, last)
    if settings.precision != "fp32":
        sample = found.sample[len(found.sample) // 2] if found else next(pieces, [])
        log.info("%s", feature_options.precision_error(specs, settings, features, of_phrases(sample[:SAMPLE])))
        if not found:
            pieces = itertools.chain([sample], pieces)
    if args.estimate and found:
        print("\n".join(estimate(found, specs, settings, features, args.workers)))
        return
    place = Path(args.table).stat() if regular else None
    job = None
    if place and args.output != "-":
        stamp = {
            "table": [os.path.realpath(args.table), place.st_size, place.st_mtime_ns], "features": identities, "shard": args.shard,
            "back_end": settings.back_end, "threads": settings.threads, "reuse": args.reuse, "chunk": score_table.CHUNK,
        }  # fmt: skip
        job = open_job(args.output, stamp, len(specs), args.resume)
    total = found.pairs if found and not args.shard else 0
    columns = 0
    done = job.count() if job else 0
    if done:
        log.info("going on after %d finished chunks", done)
    with ExitStack() as stack:
        crew = stack.enter_context(Crew(specs, settings, args.workers, features))
        out = stack.enter_context(files.Writing(args.output, job.folder if job else None))
        progress = stack.enter_context(Progress(total, "pairs", args.quiet))
        for number, (piece, values) in enumerate(score_table.score(pieces, crew, job, old)):
            columns = columns or len(piece[0].scores.split())
            for line in score_table.lines(piece, values):
                out.write(line + b"\n")
            (progress.skip if number < done else progress.add)(len(piece))
            if report:
                report.add(piece, values)
    if args.output != "-":
        write_columns(args.output, [
            {"column": columns + number, "name": spec.name, "type": spec.kind, "path": spec.path, "identity": identity}
            for number, (spec, identity) in enumerate(zip(specs, identities, strict=True), 1)
        ])  # fmt: skip
    if job:
        job.remove()
    if old:
        log.info("%s of %s pairs were found in %s", f"{old.found:,}", f"{old.asked:,}", args.reuse)
    if report:
        report.write()
        log.info("report: %s", args.report)
    log.info(
        "%s phrase pairs scored, %s a second; moses.ini: num-features=%d and as many weights (smt-ini add-feature)",
        f"{progress.done:,}", f"{progress.rate:,.0f}", columns + len(specs),
    )  # fmt: skip


def estimate(found: "Survey", specs: list[Spec], settings: Settings, features: list[Any], workers: int) -> Iterator[str]:
    """Pairs, rate, time and memory, from a few chunks from all over the table."""
    from smt_bridge.workers import Task, compute

    clock, count = time.monotonic(), 0
    for piece in found.sample:
        compute(features, Task([of_phrases(piece)] * len(features)))
        count += len(piece)
        if time.monotonic() - clock > 30:
            break
    rate = count / (time.monotonic() - clock)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"pairs\t{found.pairs:,}"
    yield f"rate\t{rate:,.0f} pairs/s a worker, measured on {count:,} pairs"
    yield f"time\t{duration(found.pairs / rate / min(workers, os.cpu_count() or 1))} with {workers} worker{'s' * (workers > 1)}"
    yield f"memory\t{memory * (workers + (workers > 1)):,.0f} MB"


def shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not slash or not part.isdigit() or not parts.isdigit() or not 1 <= int(part) <= int(parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form I/N with 1 <= I <= N, e.g. 2/8")
    return int(part), int(parts)


def part(shard: tuple[int, int], chunks: int) -> tuple[int, int]:
    """The chunks of the i-th of n shards: first, and the one after the last."""
    number, parts = shard
    return (number - 1) * chunks // parts, number * chunks // parts


if __name__ == "__main__":
    sys.exit(main())
