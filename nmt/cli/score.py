"""nmt-score: log p(target | source) of given pairs, one line a pair."""

import logging
import sys
from argparse import Namespace
from collections.abc import Sequence
from itertools import islice

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input
from nmt.errors import ConfigError

log = logging.getLogger("nmt.score")

READ_AHEAD = 2000  # pairs sorted by length and scored together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-score",
        "Natural log p(target | source) of a translator, one line for each pair, or log p of text by a "
        "language model, one line for each line; the end of "
        "the sentence included.",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Input,
        metavar="RUN_DIR|ARPA|BINARY",
        help="run directories made by nmt-train; several translators are an ensemble, the mean of their "
        "probabilities. "
        "Or one language model: a run, an ARPA file, a binary file of KenLM",
    )
    options.add_compute(parser)
    options.add_precision(parser)
    parser.add_argument(
        "--source", "-s", type=Input, default=None, metavar="FILE", help="source text; plain, gzip, or -"
    )
    parser.add_argument(
        "--target", "-t", type=Input, default=None, metavar="FILE", help="target text, line by line"
    )
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        default=None,
        metavar="FILE",
        help="text for a language model; plain, gzip, or -",
    )
    parser.add_argument(
        "--assume-normalized",
        action="store_true",
        help="language models: take log Z as 0; only for a CSLM trained with lm.normalizer",
    )
    parser.add_argument(
        "--backoff",
        type=Input,
        default="",
        metavar="ARPA",
        help="language models: share p(UNK) among unknown words as this n-gram model does",
    )
    options.add_output(parser)
    parser.add_argument(
        "--word-scores",
        action="store_true",
        help="add ` ||| ` and the log p of each unit and of the end symbol",
    )
    parser.add_argument("--tokenized", action="store_true", help="both texts are tokenized as the run's were")
    options.add_max_line_words(
        parser, "are refused by a translator", ", or what the training allowed if that is more"
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-score", args.quiet)
    if args.input is not None:
        if (
            args.source is not None
            or args.target is not None
            or len(args.runs) > 1
            or args.precision != "fp32"
        ):
            raise ConfigError(
                "--input is scored by one language model, in fp32; a translator needs --source and --target "
                "instead"
            )
        score_text(args)
        return
    if args.source is None or args.target is None:
        raise ConfigError("expected --source and --target for a translator, or --input for a language model")
    if args.assume_normalized or args.backoff:
        raise ConfigError("--assume-normalized and --backoff are for language models, with --input")
    files.check_parallel(args.source, args.target)  # before the first pair is scored
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.run import SCORED, Run

    run = Run.load(*args.runs, which=args.checkpoint, device=args.device)
    for path in (args.source, args.target):  # before the first pair is scored
        run.refuse_long(
            files.preview(path),
            args.tokenized,
            run.limit(args.max_line_words, path),
            SCORED,
            target=path == args.target,
        )
    total, words, lines = 0.0, 0, 0
    with (
        options.products(args.precision, [member.model for member in run.members], args.device),
        files.Writing(args.output) as out,
    ):
        log.info("%s", set_up)
        pairs = files.parallel(args.source, args.target)
        while block := list(islice(pairs, READ_AHEAD)):
            for scores in run.word_scores(
                block, args.tokenized, run.limit(args.max_line_words, files.name_of(args.source), lines)
            ):
                out.write(line_of(scores, args.word_scores))
                total, words, lines = total + sum(scores), words + len(scores), lines + 1
            out.flush()
    if words:
        from math import exp

        log.info(
            "%s pairs, mean log p %.4f, a word %.4f, perplexity %.2f (%s)",
            f"{lines:,}",
            total / lines,
            total / words,
            exp(-total / words),
            run.name,
        )


def score_text(args: Namespace) -> None:
    """log p of each line by a language model."""
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.language_model import load_language_model

    model = load_language_model(
        args.runs[0], args.checkpoint, args.device, args.assume_normalized, args.backoff
    )
    text = iter(files.read_lines(args.input))
    with files.Writing(args.output) as out:
        log.info("%s", set_up)
        while block := list(islice(text, READ_AHEAD)):
            for scored in model.score(block, args.tokenized):
                out.write(line_of(scored.log_probs, args.word_scores))
            out.flush()


def line_of(scores: Sequence[float], words: bool) -> str:
    return (
        f"{sum(scores):.6f}"
        + (" ||| " + " ".join(f"{value:.6f}" for value in scores) if words else "")
        + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
