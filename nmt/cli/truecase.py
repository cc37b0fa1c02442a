"""nmt-truecase: learn the usual case of words, apply it to text, and capitalize sentences again."""

import argparse
import logging
import sys
from collections.abc import Sequence
from itertools import chain

from nmt.cli import options
from nmt.cli.arguments import InputPath
from nmt.errors import DataError
from nmt.io import files
from nmt.text import truecase

log = logging.getLogger(__name__)

ABOUT = {
    "train": "Learn from tokenized text how words are cased inside sentences.",
    "apply": "Write the first word of each sentence, and unknown words, in their most frequent case.",
    "undo": "Capitalize the first word of each sentence.",
}


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-truecase", "Truecasing of tokenized text, with the rules and model files of Moses."
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=options.ActionParser)
    train, apply, undo = (
        actions.add_parser(name, description=about, help=about) for name, about in ABOUT.items()
    )
    train.add_argument(
        "--input",
        "-i",
        nargs="+",
        type=InputPath,
        default=[InputPath("-")],
        metavar="FILE",
        help="tokenized text",
    )
    options.add_output(train)
    apply.add_argument(
        "model", type=InputPath, metavar="MODEL", help="a model trained by this command or by Moses"
    )
    for action in (apply, undo):
        options.add_input_output(action, "tokenized text")
    for action in (train, apply, undo):
        options.add_quiet(action)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    if args.action == "train":
        learn(args)
        return
    model = truecase.load(args.model) if args.action == "apply" else truecase.Truecaser()
    with files.Writing(args.output) as out, options.line_progress(args, args.input) as progress:
        lines = progress.over(files.read_lines(args.input))
        if args.action == "apply":
            out.write_lines(truecase.apply_to_line(model, line) for line in lines)
        else:
            out.write_lines(" ".join(model.undo(files.split_words(line))) for line in lines)


def learn(args: argparse.Namespace) -> None:
    """Learn a model from the texts and write it. DataError if it would be empty."""
    lines = chain.from_iterable(map(files.read_lines, args.input))
    with options.line_progress(args, *args.input) as progress:
        model = truecase.learn(map(truecase.plain_words, progress.over(lines)))
    if not model.forms:
        raise DataError(
            f"{', '.join(map(files.name_of, args.input))}: no word occurs inside a sentence; expected "
            "tokenized text, see nmt-tokenize"
        )
    truecase.save(model, args.output)
    several = sum(len(forms) > 1 for forms in model.forms)
    log.info("%s words, %s with several cases", f"{len(model.forms):,}", f"{several:,}")


if __name__ == "__main__":
    sys.exit(main())
