"""nmt-tokenize: normalize, tokenize and lower-case text, or put tokenized text back together."""

import sys
from collections.abc import Sequence

from nmt import files
from nmt.cli import options
from nmt.data.tokenize import Tokenizer


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("nmt-tokenize", "Moses' normalization and tokenization, without escapes; a filter.")
    options.add_input_output(parser)
    parser.add_argument("--language", "-l", default="en", help="language of the rules")
    parser.add_argument("--no-normalize", action="store_true", help="leave punctuation as it is")
    parser.add_argument("--lower", action="store_true", help="lower-case the words")
    parser.add_argument("--detokenize", "-d", action="store_true", help="the way back: words to text")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-tokenize", args.quiet)
    tokenizer = Tokenizer(args.language, normalize=not args.no_normalize, case="lower" if args.lower else "keep")
    with files.Writing(args.output) as out:
        for line in files.read_lines(args.input):
            out.write((tokenizer.text(files.split_words(line)) if args.detokenize else " ".join(tokenizer.words(line))) + "\n")


if __name__ == "__main__":
    sys.exit(main())
