"""smt-extract: the phrase table and reordering table of a word-aligned corpus, in Moses' formats."""

import logging
import sys
import time
from collections.abc import Sequence

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting
from nmt.compute.resources import peak_memory
from nmt.errors import ConfigError
from nmt.io import files
from nmt.work.config import ExecutorConfig
from smt_bridge.cli.shared_options import add_memory
from smt_bridge.extraction.config import ExtractConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-extract", args)
    files.existing([args.source, args.target, args.alignment])
    if "-" in (args.source, args.target, args.alignment):
        raise ConfigError("the texts are read twice; give files, not -")
    executor = arguments.parse_settings(ExecutorConfig, args)
    place = jobs.shared_folder(args, "smt-extract", executor)
    from smt_bridge.extraction import mapreduce
    from smt_bridge.extraction.tables import Inputs, Outputs, build

    begin = time.monotonic()
    inputs = Inputs(source=args.source, target=args.target, alignment=args.alignment)
    outputs = Outputs(table=args.output, reordering=args.reordering, lexical=args.lexical)
    config = arguments.parse_settings(ExtractConfig, args)
    with options.progress(args, "words", None) as progress:
        if place:
            pairs = mapreduce.build(inputs, outputs, config, executor, place, progress.reach)
        else:
            pairs = build(inputs, outputs, config, progress.reach)
    log.info("%s phrase pairs, %.0f s, %.0f MB", f"{pairs:,}", time.monotonic() - begin, peak_memory())


def parser() -> options.Parser:
    made = options.Parser(
        "smt-extract",
        "Extract and score the phrase pairs of a word-aligned corpus: the same tables as Moses' "
        "train-model.perl makes, in LC_ALL=C order.",
    )
    made.add_argument(
        "--source", "-s", type=InputPath, required=True, metavar="FILE", help="tokenized, escaped text"
    )
    made.add_argument("--target", "-t", type=InputPath, required=True, metavar="FILE", help="its translation")
    made.add_argument(
        "--alignment",
        "-a",
        type=InputPath,
        required=True,
        metavar="FILE",
        help="points 0-0 1-2, from smt-align or any other tool; plain or gzip",
    )
    made.add_argument(
        "--output", "-o", type=OutputPath, default="-", metavar="TABLE", help="phrase table; .gz compresses"
    )
    made.add_argument(
        "--reordering",
        type=OutputPath,
        metavar="TABLE",
        default=None,
        help="lexical reordering table (msd-bidirectional-fe) of the same pairs",
    )
    made.add_argument(
        "--lexical",
        metavar="STEM",
        default=None,
        help="write word translation probabilities to STEM.e2f and STEM.f2e",
    )
    made.derived = lambda found: (
        [("--lexical", f"{found.lexical}.{way}") for way in ("e2f", "f2e")] if found.lexical else []
    )
    add_setting(made, ExtractConfig, "max_length")
    add_setting(made, ExtractConfig, "smoothing")
    add_memory(made)
    jobs.add_shared_job(made)
    options.add_quiet(made)
    return made


if __name__ == "__main__":
    sys.exit(main())
