"""nmt-score: log p(target | source) of given pairs, one line a pair."""

import logging
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import options
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.checkpoint import Run

log = logging.getLogger("nmt.score")

READ_AHEAD = 2000  # pairs sorted by length and scored together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("nmt-score", "Natural log p(target | source), the end of the sentence included, one line for each pair.")
    options.add_model(parser)
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
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.run)
    from nmt import checkpoint

    run = checkpoint.load(args.run, args.checkpoint, args.device)
    total, words, lines = 0.0, 0, 0
    with files.Writing(args.output) as out:
        log.info("%s", set_up)
        pairs = files.parallel(args.source, args.target)
        while block := list(islice(pairs, READ_AHEAD)):
            for scores in score(run, block, args.tokenized):
                text = f"{sum(scores):.6f}"
                out.write(text + (" ||| " + " ".join(f"{value:.6f}" for value in scores) if args.word_scores else "") + "\n")
                total, words, lines = total + sum(scores), words + len(scores), lines + 1
            out.flush()
    if words:
        from math import exp

        log.info("%s pairs, mean log p %.4f, a word %.4f, perplexity %.2f (%s)", f"{lines:,}", total / lines, total / words, exp(-total / words), run.name)


def score(run: "Run", block: Sequence[tuple[str, ...]], tokenized: bool) -> Iterator[list[float]]:
    from nmt.scoring import word_scores

    encoded = [
        (run.source_words.encode(run.source.units(source, tokenized)), run.target_words.encode(run.target.units(target, tokenized))) for source, target in block
    ]
    yield from word_scores(run.model, encoded)


if __name__ == "__main__":
    sys.exit(main())
