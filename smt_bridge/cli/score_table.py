"""smt-score-table: append neural and other scores to a Moses phrase table."""

import argparse
import itertools
import logging
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files, numbers, phrase_table
from nmt.cli import options
from nmt.cli.arguments import Input, Output
from nmt.errors import ConfigError
from smt_bridge.cli import features as feature_options
from smt_bridge.cli.progress import Progress, duration
from smt_bridge.features.spec import Settings, Spec, parse

if TYPE_CHECKING:
    from nmt.phrase_table import PhrasePair
    from smt_bridge.job import Job
    from smt_bridge.report import Report
    from smt_bridge.reuse import OldTable
    from smt_bridge.score_table import Survey
    from smt_bridge.workers import Crew

log = logging.getLogger("nmt.score_table")

SAMPLE = 1000  # pairs on which --precision is measured


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-score-table",
        "Append columns, exp(value) of each feature, to a Moses phrase table; everything else stays byte for "
        "byte. "
        "Filter the table first (smt-filter-table): that is often ten times less work.",
    )
    parser.add_argument("table", type=Input, metavar="TABLE", help="phrase table; plain, gzip, or -")
    feature_options.add_features(parser)
    options.add_output(parser)
    parser.add_argument(
        "--unsorted",
        action="store_true",
        help="take a table that is not in LC_ALL=C order (Moses' processPhraseTableMin will not)",
    )
    parser.add_argument(
        "--shard",
        type=shard,
        default=None,
        metavar="I/N",
        help="only the I-th of N parts, on a cluster; cat joins the outputs",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with a job that was killed, from OUTPUT.job"
    )
    parser.add_argument(
        "--reuse",
        type=Input,
        metavar="OLD",
        default=None,
        help="an earlier output: pairs that the same run scored there are copied",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="measure a sample, print pairs, rate, time and memory, and stop",
    )
    parser.add_argument(
        "--report",
        type=Output,
        metavar="DIR",
        default=None,
        help="write coverage, scatter against the direct probability, best phrases (Table 4.2)",
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-score-table", args.quiet)
    specs = parse(args.feature)
    check(args, specs)
    from smt_bridge.features.load import identity, load
    from smt_bridge.job import held, settings_of

    with held(args.output, "smt-score-table") if has_job(args) else nullcontext():
        before = settings_of(args.output) if args.resume else {}
        settings, set_up = feature_options.set_up(args, specs, str(before.get("back_end", "")))
        features = load(specs, settings)
        run(args, Plan(specs, settings, features, [identity(spec, settings) for spec in specs], set_up))


@dataclass
class Plan:
    """The features of a job, loaded, and how they compute."""

    specs: list[Spec]
    settings: Settings
    features: list[Any]
    identities: list[str]
    set_up: str  # a line for the log


def seekable(args: argparse.Namespace) -> bool:
    """Can the table be read twice?"""
    return args.table != "-" and Path(args.table).is_file()


def has_job(args: argparse.Namespace) -> bool:
    """Is there a job folder? None for a table or an output that passes by once."""
    return seekable(args) and args.output != "-" and not args.estimate


def check(args: argparse.Namespace, specs: Sequence[Spec]) -> None:
    """Whatever contradicts itself or is not there."""
    files.existing([path for path in (args.table, args.reuse) if path])
    written = (
        [] if args.output == "-" else [("--output", args.output), ("--output", f"{args.output}.scores.json")]
    )
    feature_options.check_separate(
        args, specs, [("TABLE", args.table), ("--reuse", args.reuse)], [*written, ("--report", args.report)]
    )
    for flag, needed in (
        ("shard", seekable(args)),
        ("estimate", seekable(args)),
        ("resume", seekable(args) and args.output != "-"),
    ):
        if getattr(args, flag) and not needed:
            raise ConfigError(
                f"--{flag} reads the table twice{' and needs an --output' * (flag == 'resume')}: give "
                "files, "
                "not - or a pipe"
            )
    if args.reuse and args.unsorted:
        raise ConfigError("--reuse walks two sorted tables side by side; it does not go with --unsorted")


def run(args: argparse.Namespace, plan: Plan) -> None:
    """Check the table, then score it chunk by chunk."""
    from smt_bridge.features.base import of_phrases
    from smt_bridge.report import Report
    from smt_bridge.reuse import OldTable
    from smt_bridge.workers import Crew

    old = OldTable(args.reuse, plan.identities) if args.reuse else None
    report = Report(args.report, plan.specs, plan.features) if args.report else None
    with Crew(plan.specs, plan.settings, 1 if args.estimate else args.workers, plan.features) as crew:
        found = survey(args)
        log.info("%s", plan.set_up)
        pieces = select(args, found)
        if plan.settings.precision != "fp32":
            sample = found.sample[len(found.sample) // 2] if found else next(pieces, [])
            pieces = pieces if found else itertools.chain([sample], pieces)
            log.info(
                "%s",
                feature_options.precision_error(
                    plan.specs, plan.settings, plan.features, of_phrases(sample[:SAMPLE])
                ),
            )
        if args.estimate and found:
            print("\n".join(estimate(found, plan, args.workers)))
            return
        write(args, plan, crew, pieces, (old, report), found.pairs if found and not args.shard else 0)
    if old:
        log.info("%s of %s pairs were found in %s", f"{old.found:,}", f"{old.asked:,}", args.reuse)
    if report:
        report.write()
        log.info("report: %s", args.report)


def survey(args: argparse.Namespace) -> "Survey | None":
    """One reading of the whole table; None where it can be read only once."""
    from smt_bridge import score_table

    if not seekable(args):
        return None
    found = score_table.survey(args.table, args.unsorted)
    if args.report and found.columns < 3:
        raise ConfigError(
            f"--report: {args.table} has {found.columns} scores, but p(target | source) is Moses' third; "
            "leave --report out"
        )
    log.info(
        "%s: %s pairs, %s sources, %d scores a line",
        args.table,
        f"{found.pairs:,}",
        f"{found.sources:,}",
        found.columns,
    )
    return found


def select(args: argparse.Namespace, found: "Survey | None") -> "Iterator[list[PhrasePair]]":
    """The chunks of the table, or those of its shard."""
    from smt_bridge import score_table

    pairs = (
        phrase_table.read(args.table) if found else phrase_table.checked(args.table, args.unsorted)
    )  # checked once
    pieces = score_table.chunks(pairs)
    first, last = part(args.shard, found.chunks) if found and args.shard else (0, None)
    return itertools.islice(pieces, first, last)


def start_job(args: argparse.Namespace, plan: Plan) -> "Job | None":
    from smt_bridge.job import open_job
    from smt_bridge.score_table import CHUNK

    if not has_job(args):
        return None
    place = Path(args.table).stat()
    settings = {
        "table": [os.path.realpath(args.table), place.st_size, place.st_mtime_ns],
        "features": plan.identities, "shard": args.shard,
        "back_end": plan.settings.back_end, "threads": plan.settings.threads, "reuse": args.reuse,
        "chunk": CHUNK,
    }  # fmt: skip
    return open_job(args.output, settings, len(plan.specs), args.resume)


def write(
    args: argparse.Namespace,
    plan: Plan,
    crew: "Crew",
    pieces: "Iterator[list[PhrasePair]]",
    extras: "tuple[OldTable | None, Report | None]",
    total: int,
) -> None:
    """Score the chunks into the output, and tell beside it what the new columns are."""
    from smt_bridge import score_table
    from smt_bridge.reuse import write_columns

    old, report = extras
    job = start_job(args, plan)
    done = job.count() if job else 0
    if done:
        log.info("going on after %d finished chunks", done)
    columns = 0
    with (
        files.Writing(args.output, job.folder if job else None) as out,
        Progress(total, "pairs", args.quiet) as progress,
    ):
        for number, (piece, values) in enumerate(score_table.score(pieces, crew, job, old)):
            columns = columns or len(piece[0].scores.split())
            for line in score_table.lines(piece, values):
                out.write(line + b"\n")
            (progress.skip if number < done else progress.add)(len(piece))
            if report:
                report.add(piece, values)
    if args.output != "-":
        rows = enumerate(zip(plan.specs, plan.identities, strict=True), columns + 1)
        write_columns(
            args.output,
            [
                {"column": n, "name": spec.name, "type": spec.kind, "path": spec.path, "identity": key}
                for n, (spec, key) in rows
            ],
        )
    if job:
        job.remove()
    log.info(
        "%s phrase pairs scored, %s a second; "
        "moses.ini: num-features=%d and as many weights (smt-ini add-feature)",
        f"{progress.done:,}", f"{progress.rate:,.0f}", columns + len(plan.specs),
    )  # fmt: skip


def estimate(found: "Survey", plan: Plan, workers: int) -> Iterator[str]:
    """Pairs, rate, time and memory, from a few chunks from all over the table."""
    from smt_bridge.features.base import of_phrases
    from smt_bridge.workers import Task, compute, set_up

    set_up(plan.settings)
    clock, count = time.monotonic(), 0
    for piece in found.sample:
        compute(plan.features, Task([of_phrases(piece)] * len(plan.features)))
        count += len(piece)
        if time.monotonic() - clock > 30:
            break
    rate = count / (time.monotonic() - clock)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"pairs\t{found.pairs:,}"
    yield f"rate\t{rate:,.0f} pairs/s a worker, measured on {count:,} pairs"
    yield (
        f"time\t{duration(found.pairs / rate / min(workers, os.cpu_count() or 1))} with {workers} "
        f"worker{'s' * (workers > 1)}"
    )
    yield f"memory\t{memory * (workers + (workers > 1)):,.0f} MB"


def shard(text: str) -> tuple[int, int]:
    try:
        number, parts = map(numbers.count, text.split("/"))
    except ValueError:
        number = parts = 0
    if not 1 <= number <= parts:
        raise argparse.ArgumentTypeError(
            f"{numbers.shown(text)} is not of the form I/N with 1 <= I <= N, e.g. 2/8"
        )
    return number, parts


def part(shard: tuple[int, int], chunks: int) -> tuple[int, int]:
    """The chunks of the i-th of n shards: first, and the one after the last."""
    number, parts = shard
    return (number - 1) * chunks // parts, number * chunks // parts


if __name__ == "__main__":
    sys.exit(main())
