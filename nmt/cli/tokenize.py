"""nmt-tokenize: normalize, tokenize and lower-case text, or put tokenized text back together."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.cli import arguments, options
from nmt.cli.arguments import positive
from nmt.errors import ConfigError
from nmt.io import files
from nmt.text import scripts
from nmt.text.checks import warn_of_tokenized
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import Tokenizer, escape, unescape
from nmt.work.executors import convert_lines

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-tokenize",
        "Normalize and tokenize text as Moses does, and segment scripts without spaces, line by line. Moses' "
        "escapes are written only with --escape.",
    )
    options.add_input_output(parser)
    parser.add_argument(
        "--language",
        "-l",
        metavar="CODE",
        help="ISO 639 code of the language; default: the ending of the input's name, news.de or news.de.gz",
    )
    arguments.add_settings(parser, SideConfig, "segment", "protect")
    parser.add_argument("--no-normalize", action="store_true", help="leave punctuation as it is")
    parser.add_argument("--lower", action="store_true", help="lower-case the words")
    parser.add_argument("--detokenize", "-d", action="store_true", help="turn tokenized text back into text")
    parser.add_argument(
        "--escape",
        action="store_true",
        help="write Moses' escapes (&apos; &#124; ...); with --detokenize, undo them",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="number of processes; the result does not depend on it",
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    conversion = Conversion(
        language=find_language(args),
        normalize=not args.no_normalize,
        case="lower" if args.lower else "keep",
        protect=args.protect,
        # detokenization needs no dictionary
        segment="character" if args.detokenize and args.segment == "word" else args.segment,
        detokenize=args.detokenize,
        escape=args.escape,
    )
    with files.Writing(args.output) as out, options.line_progress(args, args.input) as progress:
        text = files.read_lines(args.input)
        lines = convert_lines(
            conversion.make_converter,
            text if args.detokenize else warn_of_tokenized(text, args.input),
            args.workers,
        )
        out.write_lines(progress.over(lines))


@dataclass(frozen=True)
class Conversion:
    """The conversion of lines that the options describe."""

    language: str  # code
    normalize: bool  # normalize punctuation
    case: str  # keep or lower
    protect: bool  # see SideConfig
    segment: str  # how scripts without spaces are segmented, see SideConfig
    detokenize: bool
    escape: bool  # write Moses' escapes, or undo them when detokenizing

    def make_converter(self) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that converts lines. Each process calls this once."""
        tokenizer = Tokenizer(
            self.language, self.normalize, case=self.case, segment=self.segment, protect=self.protect
        )
        convert = self.join if self.detokenize else self.split
        return lambda lines: [convert(tokenizer, line) for line in lines]

    def split(self, tokenizer: Tokenizer, line: str) -> str:
        """Tokenize a line; its words are separated by spaces, and escaped if `escape` is set."""
        words = tokenizer.words(line)
        return " ".join(map(escape, words) if self.escape else words)

    def join(self, tokenizer: Tokenizer, line: str) -> str:
        """Detokenize a line of words separated by spaces; escapes are undone if `escape` is set."""
        words = files.split_words(line)
        return tokenizer.text(list(map(unescape, words)) if self.escape else words)


def find_language(args: argparse.Namespace) -> str:
    """The language given by --language or by the input's name. ConfigError if it is missing or unknown."""
    language: str = scripts.language_of_file(args.input) if args.language is None else args.language
    if args.language is None and not language:
        raise ConfigError(
            f"--language: missing, and the name {files.name_of(args.input)} does not end in a language code "
            "as in news.de; give it, e.g. --language de"
        )
    scripts.check_language_code(language, "--language")
    if args.language is None:
        log.info("language: %s", language)
    return language


if __name__ == "__main__":
    sys.exit(main())
