"""nmt-vocab: count the words of a text, write a vocabulary file, and report its coverage."""

import logging
import sys
from collections.abc import Sequence

from nmt.cli import options
from nmt.cli.arguments import positive
from nmt.io import files
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import unescape
from nmt.text.vocab import Vocab

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-vocab",
        "Make a vocabulary of the most frequent words of tokenized text; the file also records the counts of "
        "all other words.",
    )
    options.add_input_output(parser, "tokenized text (see nmt-tokenize, nmt-subword)")
    parser.add_argument(
        "--size",
        type=positive,
        default=SideConfig.vocabulary,
        help="number of words in the vocabulary; 15,000 to 30,000 are usual without subwords",
    )
    parser.add_argument("--min-count", type=positive, default=1, help="leave out rarer words")
    parser.add_argument(
        "--unescape",
        action="store_true",
        help="undo Moses' escapes (&apos; ...), as is done for models that score phrase tables",
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    with options.line_progress(args, args.input) as progress:
        lines = map(files.split_words, progress.over(files.read_lines(args.input)))
        vocab = Vocab.count(
            ([unescape(word) for word in line] for line in lines) if args.unescape else lines,
            args.size,
            args.min_count,
        )
    vocab.save(args.output)
    total = sum(vocab.counts.values())
    log.info(
        "%s of %s words kept; they cover %.2f%% of %s running words",
        f"{vocab.word_count:,}",
        f"{len(vocab.counts):,}",
        100 * vocab.coverage(),
        f"{total:,}",
    )


if __name__ == "__main__":
    sys.exit(main())
