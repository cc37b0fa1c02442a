"""nmt-mrf: train a Markov random field on text; score lines by it."""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath
from nmt.config import settings
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.papers.mrf import MRFConfig
from nmt.text.tokenize import unescape
from nmt.text.vocab import Vocab

log = logging.getLogger(__name__)
LINES = 1000  # scored at a time


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-mrf", args, times=args.action == "train")
    log.info(options.set_up_torch("cpu", args.threads, "auto"))
    {"train": train, "score": score}[args.action](args)


def parser() -> options.Parser:
    root = options.Parser(
        "nmt-mrf",
        "A Markov random field over the words of a text: each word depends on its neighbors on both sides. "
        "smt-rescore --feature mrf=FILE adds its pseudo-log-likelihood to n-best lists.",
    )
    actions = root.add_subparsers(
        dest="action", required=True, parser_class=options.ActionParser, metavar="ACTION"
    )
    training = actions.add_parser(
        "train", help="make a model", description="Train a model on tokenized text."
    )
    training.add_argument(
        "--input", "-i", type=InputPath, required=True, metavar="TEXT", help="the training text"
    )
    training.add_argument("--output", "-o", type=OutputPath, required=True, metavar="FILE", help="the model")
    for item in fields(MRFConfig):
        arguments.add_setting(training, MRFConfig, item.name)
    scoring = actions.add_parser(
        "score",
        help="score lines",
        description="The pseudo-log-likelihood (natural) of each line: the sum of log p of each symbol given "
        "its neighbors, separators included.",
    )
    scoring.add_argument("model", type=InputPath, metavar="FILE", help="a model of nmt-mrf train")
    options.add_input_output(scoring, "tokenized text")
    for part in (training, scoring):
        part.add_argument("--threads", type=arguments.positive, default=None, help="default: chosen by torch")
        options.add_quiet(part)
    return root


def read_words(path: str) -> Iterator[list[str]]:
    """Yield the words of each line of a file, without Moses' escapes."""
    return (list(map(unescape, files.split_words(line))) for line in files.read_lines(path))


def train(args: argparse.Namespace) -> None:
    """Train a Markov random field on a text and write it to a file. DataError for a text without words,
    ConfigError for a file that would be compressed."""
    from nmt.papers.mrf.model import field_bytes, train_field

    config = arguments.parse_settings(MRFConfig, args)
    settings.check(config)
    if args.output.endswith(".gz"):
        raise ConfigError(f"--output {args.output}: models are not compressed; leave out .gz")
    lines = [line for line in read_words(args.input) if line]
    if not lines:
        raise DataError(f"{files.name_of(args.input)}: no words, expected a training text")
    vocab = Vocab.count(lines, config.vocabulary)
    log.info(
        "%s lines, %s words kept, which cover %.2f%%",
        f"{len(lines):,}",
        f"{vocab.word_count:,}",
        100 * vocab.coverage(),
    )

    def report(done: int, value: float) -> None:
        log.info("%d: %s %.4f a symbol", done, config.objective, value)

    with files.Writing(args.output) as out:  # opened first: no model is lost for a bad path
        model = train_field(config, [vocab.encode(line) for line in lines], len(vocab), report)
        out.write(field_bytes(model, vocab))


def score(args: argparse.Namespace) -> None:
    """Write the pseudo-log-likelihood (natural) of each line. CheckpointError for a file that is no model."""
    from nmt.papers.mrf.model import load_field

    model, vocab = load_field(Path(args.model))
    texts = map(vocab.encode, read_words(args.input))
    with files.Writing(args.output) as output:
        while block := list(islice(texts, LINES)):
            output.write_lines(f"{value:.6f}" for value in model.score_sentences(block))


if __name__ == "__main__":
    sys.exit(main())
