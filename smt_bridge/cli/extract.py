"""smt-extract: phrase table and reordering table of a word-aligned corpus, in Moses' formats."""

import logging
import resource
import sys
import time
from collections.abc import Sequence

from nmt import files
from nmt.cli import options
from nmt.errors import ConfigError
from smt_bridge.cli.progress import Progress

log = logging.getLogger("nmt.extract")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-extract", "Extract and score the phrase pairs of a word-aligned corpus: the same tables as Moses' train-model.perl makes, in LC_ALL=C order."
    )
    parser.add_argument("--source", "-s", required=True, metavar="FILE", help="tokenized, escaped text")
    parser.add_argument("--target", "-t", required=True, metavar="FILE", help="its translation")
    parser.add_argument("--alignment", "-a", required=True, metavar="FILE", help="points 0-0 1-2, of smt-align or any other tool; plain or gzip")
    parser.add_argument("--output", "-o", default="-", metavar="TABLE", help="phrase table; .gz compresses")
    parser.add_argument("--reordering", metavar="TABLE", default=None, help="lexical reordering table (msd-bidirectional-fe) of the same pairs")
    parser.add_argument("--lexical", metavar="STEM", default=None, help="write word translation probabilities to STEM.e2f and STEM.f2e")
    parser.add_argument("--max-length", type=options.positive, default=7, metavar="N", help="words of a phrase")
    parser.add_argument("--smoothing", choices=("none", "good-turing", "kneser-ney"), default="none", help="of phi")
    parser.add_argument("--memory", type=options.positive, default=1000, metavar="MB", help="more is put into files beside the output")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-extract", args.quiet)
    files.existing([args.source, args.target, args.alignment])
    if "-" in (args.source, args.target, args.alignment):
        raise ConfigError("the texts are read twice; give files, not -")
    from smt_bridge.extraction.tables import ExtractConfig, Inputs, Outputs, build

    begin = time.monotonic()
    config = ExtractConfig(args.max_length, args.smoothing, args.memory)
    with Progress(0, "words", args.quiet) as progress:
        pairs = build(Inputs(args.source, args.target, args.alignment), Outputs(args.output, args.reordering, args.lexical), config, progress.add)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    log.info("%s phrase pairs, %.0f s, %.0f MB", f"{pairs:,}", time.monotonic() - begin, memory)


if __name__ == "__main__":
    sys.exit(main())
