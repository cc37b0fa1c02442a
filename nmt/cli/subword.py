"""nmt-subword: learn subword units, segment words into units, and join units to words."""

import argparse
import logging
import sys
from collections.abc import Sequence
from itertools import chain

from nmt.cli import options
from nmt.cli.arguments import InputPath, add_setting, positive
from nmt.data.corpus import DataConfig
from nmt.errors import DataError
from nmt.io import files
from nmt.text import subwords
from nmt.text.pipeline import SideConfig
from nmt.text.subwords import SUBWORDS, LearnSettings, TrainingText
from nmt.text.subwords.protocol import MIN_FREQUENCY

log = logging.getLogger(__name__)

MERGES = 10000
OF_BPE, OF_SENTENCEPIECE = ("merges", "min_frequency"), ("pieces", "byte_fallback", "unicode")
KINDS = "bpe: as in subword-nmt, for tokenized text; unigram, sentencepiece-bpe: SentencePiece, for raw text"
ABOUT = {
    "learn": "Learn subword units, joint ones from several inputs.",
    "apply": "Segment words into units.",
    "undo": "Join units into words.",
}


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    if args.action == "learn":
        learn(args)
        return
    convert = subwords.load(args.codes).apply if args.action == "apply" else SUBWORDS[args.kind].undo
    with files.Writing(args.output) as out, options.line_progress(args, args.input) as progress:
        lines = progress.over(files.read_lines(args.input))
        out.write_lines(" ".join(convert(files.split_words(line))) for line in lines)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-subword", "Subword units: BPE as in subword-nmt, unigram models and BPE as in SentencePiece."
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=options.ActionParser)
    learn, apply, undo = (
        actions.add_parser(name, description=about, help=about) for name, about in ABOUT.items()
    )
    learn.add_argument(
        "--input", "-i", nargs="+", type=InputPath, default=[InputPath("-")], metavar="FILE", help="text"
    )
    options.add_output(learn)
    learn.set_defaults(parser=learn)
    add_kind(learn)
    learn.add_argument("--merges", type=positive, default=MERGES, help="bpe: number of merge operations")
    learn.add_argument(
        "--min-frequency", type=positive, default=MIN_FREQUENCY, help="bpe: do not merge rarer pairs"
    )
    for config, name in ((DataConfig, "pieces"), (DataConfig, "byte_fallback"), (SideConfig, "unicode")):
        add_setting(learn, config, name)
    apply.add_argument("codes", type=InputPath, help="file of BPE codes, or SentencePiece model")
    options.add_input_output(apply, "text")
    add_kind(undo)
    options.add_input_output(undo, "text segmented into units")
    for action in (learn, apply, undo):
        options.add_quiet(action)
    return parser


def add_kind(parser: options.Parser) -> None:
    parser.add_argument("--kind", choices=tuple(SUBWORDS), default=next(iter(SUBWORDS)), help=KINDS)


def learn(args: argparse.Namespace) -> None:
    """Learn units from the inputs and write them. ConfigError for options of another kind; DataError for
    text without words."""
    kind = SUBWORDS[args.kind]
    others, partner = (OF_BPE, "--kind bpe") if kind.raw else (OF_SENTENCEPIECE, "--kind unigram")
    options.refuse_alone(args.parser, args, others, partner)
    text = TrainingText(kind.raw)
    with options.line_progress(args, *args.input) as progress:
        for line in progress.over(chain.from_iterable(map(files.read_lines, args.input))):
            text.add(files.split_words(line))
    if not (text.words or any(text.lines)):
        raise DataError(
            f"{', '.join(map(files.name_of, args.input))}: no words, expected "
            f"{'raw' if kind.raw else 'tokenized'} text"
        )
    total = 0 if kind.raw else args.merges  # SentencePiece reports no progress
    with options.progress(args, "merges", total) as progress:
        learning = LearnSettings(
            args.merges, args.pieces, args.byte_fallback, args.unicode, args.min_frequency, progress.over
        )
        learned = kind.learn(text, learning)
    learned.save(args.output)
    log.info("%s from %s", learned.summary, text.summary)


if __name__ == "__main__":
    sys.exit(main())
