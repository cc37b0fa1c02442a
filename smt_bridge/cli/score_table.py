"""smt-score-table: append neural and other scores to a Moses phrase table."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath
from nmt.io import files, numbers
from nmt.io.progress import duration, format_rate
from smt_bridge.cli import shared_options
from smt_bridge.cli.shared_options import add_table, add_unsorted
from smt_bridge.features.registry import FeatureSettings, FeatureSpec, parse_features

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    specs = parse_features(args.feature)
    check_files(args, specs)
    settings, opening = shared_options.set_up_features(args, specs, args.output)
    if args.estimate:
        print("\n".join(estimate(args, specs, settings)))
        return
    from smt_bridge.tables.score import score_table

    with options.progress(args, "pairs", None, opening) as progress:
        done = score_table(
            args.table,
            args.output,
            args.feature,
            settings,
            unsorted=args.unsorted,
            shard=args.shard,
            resume=args.resume,
            reuse=args.reuse,
            report=args.report,
            workers=args.workers,
            executor=args.executor,
            cluster=args.cluster,
            mixed_workers=args.mixed_workers,
            progress=progress.reach,
        )
    log.info(
        "%s phrase pairs scored, %s; "
        "moses.ini: num-features=%d and as many weights (smt-ini add-feature)",
        f"{done.pairs:,}", format_rate(progress.rate), done.columns,
    )  # fmt: skip


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-score-table",
        "Append scores, exp(value) of each feature, to a Moses phrase table; everything else stays byte for "
        "byte. Filter the table first with smt-filter-table, which often saves nine tenths of the work.",
    )
    add_table(parser)
    shared_options.add_features(parser)
    options.add_output(parser)
    add_unsorted(parser, " (Moses' processPhraseTableMin will not)")
    parser.add_argument(
        "--shard",
        type=parse_shard,
        metavar="I/N",
        help="score only the I-th of N parts of the table; cat joins the outputs",
    )
    parser.add_argument(
        "--reuse",
        type=InputPath,
        metavar="OLD",
        help="earlier output, from which to copy the scores that the same run gave to the same pairs",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="measure the speed on a sample, print the expected time and memory, and exit",
    )
    parser.add_argument(
        "--report",
        type=OutputPath,
        metavar="DIR",
        help="write coverage, scatter against the direct probability, best phrases (van Merriënboer "
        "2018, table 4.2)",
    )
    options.add_quiet(parser)
    return parser


def check_files(args: argparse.Namespace, specs: Sequence[FeatureSpec]) -> None:
    """DataError for files that are missing, ConfigError for files that would be overwritten."""
    files.existing([path for path in (args.table, args.reuse) if path])
    written = [("--report", args.report)]
    if args.output != "-":
        written += [("--output", args.output), ("--output", f"{args.output}.scores.json")]
    shared_options.check_models_separate(
        args, specs, [("TABLE", args.table), ("--reuse", args.reuse)], written
    )


def estimate(
    args: argparse.Namespace, specs: Sequence[FeatureSpec], settings: FeatureSettings
) -> Iterator[str]:
    """Measure the speed on a sample; yields lines with the expected time and memory. ConfigError for a table
    on stdin, DataError for a malformed one."""
    from smt_bridge.features.feature_set import FeatureSet
    from smt_bridge.tables.score import estimate_speed as measure
    from smt_bridge.tables.score import needs_file, survey_table

    features = FeatureSet(specs, settings)
    survey = survey_table(args.table, args.unsorted)
    if survey is None:
        raise needs_file("estimate")
    sample = measure(survey, features)
    seconds = survey.pairs / sample.rate / min(args.workers, os.cpu_count() or 1)
    several = args.workers > 1  # then this process needs memory besides its workers
    yield f"pairs\t{survey.pairs:,}"
    yield f"rate\t{sample.rate:,.0f} pairs/s a worker, measured on {sample.measured:,} pairs"
    yield f"time\t{duration(seconds)} with {args.workers} worker{'s' * several}"
    yield f"memory\t{sample.memory * (args.workers + several):,.0f} MB"


def parse_shard(text: str) -> tuple[int, int]:
    """Argument type: part I of N, as I/N. ArgumentTypeError unless 1 <= I <= N."""
    try:
        number, parts = map(numbers.count, text.split("/"))
    except ValueError:
        number = parts = 0
    if not 1 <= number <= parts:
        raise argparse.ArgumentTypeError(
            f"{numbers.shown(text)} is not of the form I/N with 1 <= I <= N, e.g. 2/8"
        )
    return number, parts


if __name__ == "__main__":
    sys.exit(main())
