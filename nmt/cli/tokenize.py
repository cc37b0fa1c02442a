"""nmt-tokenize: normalize, tokenize and lower-case text, or put tokenized text back together."""

import argparse
import logging
import sys
from collections.abc import Sequence

from nmt import files
from nmt.cli import arguments, options
from nmt.errors import ConfigError
from nmt.text import languages
from nmt.text.escapes import escape, unescape
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import Tokenizer

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return options.run(command, argv)


def parser() -> options.Parser:
    """The options."""
    parser = options.Parser(
        "nmt-tokenize",
        "Moses' normalization and tokenization, and segmentation of scripts without spaces, line by line. "
        "Moses' escapes are written only with --escape.",
    )
    options.add_input_output(parser)
    parser.add_argument(
        "--language",
        "-l",
        default=None,
        metavar="CODE",
        help="ISO 639 code of the language; default: as the name of the input ends, news.de or news.de.gz",
    )
    arguments.add_setting(parser, SideConfig, "segment")
    parser.add_argument("--no-normalize", action="store_true", help="leave punctuation as it is")
    parser.add_argument("--lower", action="store_true", help="lower-case the words")
    parser.add_argument("--detokenize", "-d", action="store_true", help="the other direction: words to text")
    parser.add_argument(
        "--escape",
        action="store_true",
        help="write &apos; &#124; ... as Moses' models want them; with --detokenize they are undone",
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    """Parse the options, convert line by line."""
    args = parser().parse_args(argv)
    options.start_log("nmt-tokenize", args)
    tokenizer = Tokenizer(
        language_of(args),
        normalize=not args.no_normalize,
        case="lower" if args.lower else "keep",
        # the way back needs no dictionary
        segment="character" if args.detokenize and args.segment == "word" else args.segment,
    )
    with files.Writing(args.output) as out, options.line_progress(args, args.input) as progress:
        for line in progress.over(files.read_lines(args.input)):
            if args.detokenize:
                words = files.split_words(line)
                out.write(tokenizer.text(list(map(unescape, words)) if args.escape else words) + "\n")
            else:
                words = tokenizer.words(line)
                out.write(" ".join(map(escape, words) if args.escape else words) + "\n")


def language_of(args: argparse.Namespace) -> str:
    """The language that the options give. ConfigError for an unknown one, or none."""
    language: str = languages.of_file(args.input) if args.language is None else args.language
    if args.language is None and not language:
        raise ConfigError(
            f"--language: missing, and {files.name_of(args.input)} does not end in the code of a language, "
            "as news.de does; give it, e.g. --language de"
        )
    languages.check(language, "--language")
    if args.language is None:
        log.info("language: %s", language)
    return language


if __name__ == "__main__":
    sys.exit(main())
