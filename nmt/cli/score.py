"""nmt-score: log p(target | source) of given pairs, one line a pair."""

import logging
import sys
from collections.abc import Sequence
from itertools import islice

from nmt import files
from nmt.cli import options
from nmt.errors import ConfigError

log = logging.getLogger("nmt.score")

READ_AHEAD = 2000  # pairs sorted by length and scored together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("nmt-score", "Natural log p(target | source), the end of the sentence included, one line for each pair.")
    parser.add_argument(
        "runs", nargs="+", metavar="RUN_DIR", help="run directories made by nmt-train; several are an ensemble, the mean of their probabilities"
    )
    options.add_compute(parser)
    options.add_precision(parser)
    parser.add_argument("--source", "-s", required=True, metavar="FILE", help="source text; plain, gzip, or -")
    parser.add_argument("--target", "-t", required=True, metavar="FILE", help="target text, line by line")
    options.add_output(parser)
    parser.add_argument("--word-scores", action="store_true", help="add ` ||| ` and the log p of each unit and of the end symbol")
    parser.add_argument("--tokenized", action="store_true", help="both texts are tokenized as the run's were")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-score", args.quiet)
    if args.source == args.target == "-":
        raise ConfigError("--source - --target -: only one of them can be stdin")
    if args.source != "-" and args.target != "-":
        files.check_parallel(args.source, args.target)  # before the first pair is scored
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.run import Run

    run = Run.load(*args.runs, which=args.checkpoint, device=args.device)
    total, words, lines = 0.0, 0, 0
    with options.products(args.precision, [member.model for member in run.members], args.device), files.Writing(args.output) as out:
        log.info("%s", set_up)
        pairs = files.parallel(args.source, args.target)
        while block := list(islice(pairs, READ_AHEAD)):
            for scores in run.word_scores(block, args.tokenized):
                text = f"{sum(scores):.6f}"
                out.write(text + (" ||| " + " ".join(f"{value:.6f}" for value in scores) if args.word_scores else "") + "\n")
                total, words, lines = total + sum(scores), words + len(scores), lines + 1
            out.flush()
    if words:
        from math import exp

        log.info("%s pairs, mean log p %.4f, a word %.4f, perplexity %.2f (%s)", f"{lines:,}", total / lines, total / words, exp(-total / words), run.name)


if __name__ == "__main__":
    sys.exit(main())
