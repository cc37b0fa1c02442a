"""nmt-score: log p(target | source) of given pairs, one line a pair."""

import logging
import math
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output
from nmt.cli.perplexity import Totals
from nmt.errors import ConfigError
from nmt.formats import pharaoh

if TYPE_CHECKING:
    from nmt.runs.run import Run

log = logging.getLogger(__name__)

READ_AHEAD = 2000  # pairs sorted by length and scored together


def main(argv: Sequence[str] | None = None) -> int:
    """The command's exit status."""
    return options.run(command, argv)


# ---- options -----------------------------------------------------------------------------------------------


def parser() -> options.Parser:
    """The options of nmt-score."""
    parser = options.Parser(
        "nmt-score",
        "Natural log p(target | source) by a translator, one line for each pair, or log p of text by a "
        "language model, one line for each line; the end of the sentence included.",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Input,
        metavar="RUN_DIR|ARPA|BINARY",
        help="run directories made by nmt-train; several translators are an ensemble, the mean of their "
        "probabilities. Or one language model: a run, an ARPA file, a KenLM binary, a mixture of "
        "nmt-interpolate",
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
        "--alignment",
        "-a",
        type=Input,
        default=None,
        metavar="FILE",
        help="for a joint model: the word alignment of both texts, lines of points 0-0 1-2",
    )
    options.add_output(parser)
    parser.add_argument(
        "--alignments",
        type=Output,
        default=None,
        metavar="FILE",
        help="translators with attention: also write source-target word pairs of each pair, 0-0 1-2 ..., by "
        "greatest attention",
    )
    parser.add_argument(
        "--word-scores",
        action="store_true",
        help="add ` ||| ` and the log p of each unit and of the end symbol",
    )
    parser.add_argument("--tokenized", action="store_true", help="both texts are tokenized as the run's were")
    options.add_max_line_words(
        parser, "are refused by a translator", ", or what the training allowed if that is more"
    )
    add_language_model(parser)
    options.add_quiet(parser)
    return parser


def add_language_model(parser: options.Parser) -> None:
    """Options of scoring by a language model."""
    group = parser.add_argument_group("language models")
    group.add_argument(
        "--input", "-i", type=Input, default=None, metavar="FILE", help="text to score; plain, gzip, or -"
    )
    group.add_argument(
        "--assume-normalized",
        action="store_true",
        help="take log Z as 0; only for a CSLM trained with lm.normalizer",
    )
    group.add_argument(
        "--backoff",
        type=Input,
        default="",
        metavar="ARPA",
        help="share p(UNK) among unknown words as this n-gram model does",
    )


def check(args: Namespace) -> None:
    """ConfigError for options that exclude each other."""
    pairs = any(given is not None for given in (args.source, args.target, args.alignment))
    if args.input is not None:
        if pairs or len(args.runs) > 1 or args.precision != "fp32" or args.alignments:
            raise ConfigError(
                "--input is scored by one language model, in fp32; a translator needs --source and --target "
                "instead"
            )
    elif args.source is None or args.target is None:
        raise ConfigError("expected --source and --target for a translator, or --input for a language model")
    elif args.assume_normalized or args.backoff:
        raise ConfigError("--assume-normalized and --backoff are for language models, with --input")
    elif args.alignments and args.alignment is not None:
        raise ConfigError("--alignments: a joint model has no attention; it is given the --alignment")
    elif args.alignment is not None and (len(args.runs) > 1 or args.precision != "fp32"):
        raise ConfigError("--alignment is for one joint model, in fp32")


# ---- the command -------------------------------------------------------------------------------------------


def command(argv: Sequence[str] | None) -> None:
    """Parse, score, write."""
    args = parser().parse_args(argv)
    options.start_log("nmt-score", args)
    check(args)
    if args.input is not None:
        score_text(args)
    elif args.alignment is not None:
        score_aligned(args)
    else:
        score_pairs(args)


def score_pairs(args: Namespace) -> None:
    """log p of each pair by one or several translators."""
    number = files.check_parallel(args.source, args.target)  # before the first pair is scored
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.runs import alignment
    from nmt.runs.run import Run

    run = Run.of(*args.runs, which=args.checkpoint, device=args.device)
    if args.alignments:
        alignment.check(run)
    refuse_long(args, run)
    total, words, lines = 0.0, 0, 0
    with (
        options.products(args.precision, [member.model for member in run.members], args.device),
        files.Writing(args.output) as out,
        files.Writing(args.alignments) if args.alignments else nullcontext() as points,
        options.progress(args, "pairs", number, set_up) as progress,
    ):
        pairs = files.parallel(args.source, args.target)
        while block := list(islice(pairs, READ_AHEAD)):
            limit = run.source_lengths.limit(args.max_line_words, files.name_of(args.source), lines)
            for scores in run.word_scores(block, args.tokenized, limit):
                out.write(line_of(scores, args.word_scores))
                total, words, lines = total + sum(scores), words + len(scores), lines + 1
            if points:
                points.write_lines(map(pharaoh.line_of, alignment.align(run, block, args.tokenized, limit)))
            out.flush()
            progress.add(len(block))
    if words:
        log.info(
            "%s pairs, mean log p %.4f, a word %.4f, perplexity %.2f (%s)",
            f"{lines:,}", total / lines, total / words, math.exp(-total / words), run.name,
        )  # fmt: skip


def score_aligned(args: Namespace) -> None:
    """log p of each pair by a joint model, given the alignment."""
    paths = (args.source, args.target, args.alignment)
    number = files.check_parallel(*paths)
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.runs import aligned

    run = aligned.load(args.runs[0], args.checkpoint, args.device)
    lines, name = 0, files.name_of(args.alignment)
    with files.Writing(args.output) as out, options.progress(args, "pairs", number, set_up) as progress:
        rows = files.parallel(*paths)
        while block := list(islice(rows, READ_AHEAD)):
            for scores in aligned.word_scores(run, block, args.tokenized, name, lines):
                out.write(line_of(scores, args.word_scores))
            out.flush()
            lines += len(block)
            progress.add(len(block))


def refuse_long(args: Namespace, run: "Run") -> None:
    """DataError for a line that is too long, before the first pair is scored."""
    from nmt.runs.run import SCORED

    for path, lengths in ((args.source, run.source_lengths), (args.target, run.target_lengths)):
        limit = lengths.limit(args.max_line_words, path)
        lengths.refuse(files.preview(path), args.tokenized, limit, SCORED)


def score_text(args: Namespace) -> None:
    """log p of each line by a language model."""
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.runs.language_model import line_scorer

    model = line_scorer(args.runs[0], args.checkpoint, args.device, args.assume_normalized, args.backoff)
    text = iter(files.read_lines(args.input))
    number, totals = partial(files.number_of_lines, args.input), Totals()
    with files.Writing(args.output) as out, options.progress(args, "lines", number, set_up) as progress:
        while block := list(islice(text, READ_AHEAD)):
            for line, scored in zip(block, model.score(block, args.tokenized), strict=True):
                out.write(line_of(scored.log_probs, args.word_scores))
                totals.add(line, scored)
            out.flush()
            progress.add(len(block))
    if totals.lines:
        log.info("%s lines, %s (%s)", f"{totals.lines:,}", totals.perplexities(), model.name)


def line_of(scores: Sequence[float], words: bool) -> str:
    """A line of the output: the sum of the scores of the words, and with `words` each of them."""
    each = " ||| " + " ".join(f"{value:.6f}" for value in scores) if words else ""
    return f"{sum(scores):.6f}{each}\n"


if __name__ == "__main__":
    sys.exit(main())
