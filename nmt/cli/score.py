"""nmt-score: log p(target | source) of sentence pairs, or log p of lines, one number a line."""

import logging
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from nmt.cli import jobs, options, scorers
from nmt.cli.arguments import InputPath, OutputPath
from nmt.cli.jobs import TextJob
from nmt.cli.scorers import ScoringBlock
from nmt.errors import ConfigError
from nmt.io import files
from nmt.io.progress import Total
from nmt.work.texts import TextChunk

log = logging.getLogger(__name__)

READ_AHEAD = 2000  # pairs sorted by length and scored together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


# ---- options -----------------------------------------------------------------------------------------------


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-score",
        "Score text line by line: natural log p(target | source) of sentence pairs by a translator, or log p "
        "of lines by a language model. Scores include the end of the sentence.",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=InputPath,
        metavar="RUN_DIR|ARPA|BINARY",
        help="run directories made by nmt-train; several translators form an ensemble, which averages their "
        "probabilities. Or one language model: run directory, ARPA file, KenLM binary, or mixture written "
        "by nmt-interpolate",
    )
    options.add_compute(parser)
    options.add_precision(parser)
    parser.add_argument(
        "--source", "-s", type=InputPath, default=None, metavar="FILE", help="source text; plain, gzip, or -"
    )
    parser.add_argument(
        "--target", "-t", type=InputPath, default=None, metavar="FILE", help="target text, line by line"
    )
    parser.add_argument(
        "--alignment",
        "-a",
        type=InputPath,
        default=None,
        metavar="FILE",
        help="for a joint model: word alignment of both texts, lines of points 0-0 1-2",
    )
    options.add_output(parser)
    parser.add_argument(
        "--alignments",
        type=OutputPath,
        default=None,
        metavar="FILE",
        help="also write the word alignment of each pair, 0-0 1-2 ..., from the greatest attention of each "
        "target word; for models with attention",
    )
    parser.add_argument(
        "--word-scores",
        action="store_true",
        help="append ` ||| ` and the log p of each unit and of the end symbol",
    )
    parser.add_argument(
        "--tokenized", action="store_true", help="both texts are tokenized like the training text"
    )
    options.add_max_line_words(
        parser, "are refused by a translator", ", or what the training allowed if that is more"
    )
    add_language_model(parser)
    jobs.add_options(parser.add_argument_group("jobs"))
    options.add_quiet(parser)
    return parser


def add_language_model(parser: options.Parser) -> None:
    """Options of scoring by a language model."""
    group = parser.add_argument_group("language models")
    group.add_argument(
        "--input", "-i", type=InputPath, default=None, metavar="FILE", help="text to score; plain, gzip, or -"
    )
    group.add_argument(
        "--assume-normalized",
        action="store_true",
        help="assume log Z = 0: faster; only for a CSLM trained with lm.normalizer",
    )
    group.add_argument(
        "--backoff",
        type=InputPath,
        default="",
        metavar="ARPA",
        help="divide p(UNK) among unknown words in the proportions of this n-gram model",
    )


def check_options(args: Namespace) -> None:
    """ConfigError for options that exclude each other."""
    pairs = any(path is not None for path in (args.source, args.target, args.alignment))
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
        raise ConfigError("--alignments: a joint model has no attention, it reads the --alignment")
    elif args.alignment is not None and (len(args.runs) > 1 or args.precision != "fp32"):
        raise ConfigError("--alignment is for one joint model, in fp32")


# ---- the command -------------------------------------------------------------------------------------------


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-score", args)
    check_options(args)
    texts = text_paths(args)
    if args.input is not None:
        number: Total = partial(files.number_of_lines, args.input)
    else:
        number = files.check_parallel(*texts)  # before the first pair is scored
    job = TextJob(args, "nmt-score", texts)
    with job.lock():
        score_texts(args, job, number)


def text_paths(args: Namespace) -> list[str]:
    """Paths of the texts, first the one that messages name."""
    if args.input is not None:
        return [args.input]
    return [args.source, args.target, *([args.alignment] if args.alignment else [])]


def score_texts(args: Namespace, job: TextJob, number: Total) -> None:
    """Load the models, score the texts and write the scores."""
    set_up = job.set_up_torch(args.runs[0])
    work = scorers.load_scorer(args)
    work.check(job.in_parts)
    paths = [args.output, *([args.alignments] if args.alignments else [])]
    unit = "pairs" if args.input is None else "lines"
    sums, lines = list[str](), 0
    with (
        job.run(scorers.load_scorer, work) as compute,
        job.open_outputs(paths) as write,
        options.progress(args, unit, number, set_up) as progress,
    ):
        for done in compute(chunks(job.inputs)):
            write(done)
            sums += done.outputs[-1]
            lines += done.count
            jobs.advance(progress, done)
    if summary := work.summary(sums, lines):
        log.info("%s", summary)


def chunks(texts: Sequence[str]) -> Iterator[TextChunk[ScoringBlock]]:
    """Cut the texts into blocks that are scored together."""
    rows, first = files.parallel(*texts), 0
    while block := list(islice(rows, READ_AHEAD)):
        yield TextChunk(first, len(block), ScoringBlock(first, block))
        first += len(block)


if __name__ == "__main__":
    sys.exit(main())
