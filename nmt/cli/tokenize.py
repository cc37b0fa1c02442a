"""nmt-tokenize: normalize, tokenize and lower-case text, or put tokenized text back together."""

import sys
from collections.abc import Sequence

from nmt import files
from nmt.cli import options
from nmt.text import languages
from nmt.text.escapes import escape, unescape
from nmt.text.tokenize import Tokenizer


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    """Parse the options, convert line by line."""
    parser = options.Parser(
        "nmt-tokenize",
        "A filter: Moses' normalization and tokenization. Moses' escapes are written only with --escape.",
    )
    options.add_input_output(parser)
    parser.add_argument("--language", "-l", default="en", help="language of the rules, an ISO 639 code")
    parser.add_argument("--no-normalize", action="store_true", help="leave punctuation as it is")
    parser.add_argument("--lower", action="store_true", help="lower-case the words")
    parser.add_argument("--detokenize", "-d", action="store_true", help="the other direction: words to text")
    parser.add_argument(
        "--escape",
        action="store_true",
        help="write &apos; &#124; ... as Moses' models want them; with --detokenize they are undone",
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-tokenize", args.quiet)
    languages.check(args.language)
    tokenizer = Tokenizer(
        args.language, normalize=not args.no_normalize, case="lower" if args.lower else "keep"
    )
    with files.Writing(args.output) as out:
        for line in files.read_lines(args.input):
            if args.detokenize:
                words = files.split_words(line)
                out.write(tokenizer.text(list(map(unescape, words)) if args.escape else words) + "\n")
            else:
                words = tokenizer.words(line)
                out.write(" ".join(map(escape, words) if args.escape else words) + "\n")


if __name__ == "__main__":
    sys.exit(main())
