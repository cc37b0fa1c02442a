"""nmt-subword: learn byte-pair codes from one or more texts, apply them, undo them."""

import logging
import sys
from collections import Counter
from collections.abc import Sequence

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, positive
from nmt.errors import DataError
from nmt.text import subword

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    """Parse the options; learn codes, or convert lines."""
    parser = options.Parser("nmt-subword", "Byte-pair encoding of tokenized text (subword-nmt's files).")
    actions = parser.add_subparsers(dest="action", required=True, parser_class=options.Action)
    about = "Learn codes; several inputs give joint codes."
    learn = actions.add_parser("learn", description=about, help=about)
    learn.add_argument(
        "--input", "-i", nargs="+", type=Input, default=[Input("-")], metavar="FILE", help="tokenized text"
    )
    options.add_output(learn)
    learn.add_argument("--merges", type=positive, default=10000, help="number of merges")
    learn.add_argument(
        "--min-frequency", type=positive, default=subword.MIN_FREQUENCY, help="rarer pairs are not merged"
    )
    apply = actions.add_parser("apply", description="Cut words into units.", help="Cut words into units.")
    apply.add_argument("codes", type=Input, help="file of codes")
    options.add_input_output(apply, "tokenized text")
    undo = actions.add_parser("undo", description="Join units to words.", help="Join units to words.")
    options.add_input_output(undo, "text in units")
    for action in (learn, apply, undo):
        options.add_quiet(action)
    args = parser.parse_args(argv)
    options.start_log("nmt-subword", args.quiet)
    if args.action == "learn":
        counts: Counter[str] = Counter()
        for path in args.input:
            counts.update(subword.count_words(map(files.split_words, files.read_lines(path))))
        if not counts:
            raise DataError(f"{', '.join(args.input)}: no words, expected tokenized text")
        codes = subword.learn(counts, args.merges, args.min_frequency)
        files.write_text(args.output, codes)
        log.info("%s merges from %s different words", f"{len(codes) - 1:,}", f"{len(counts):,}")
        return
    codes_of = subword.load_codes(args.codes).apply if args.action == "apply" else subword.undo
    with files.Writing(args.output) as out:
        out.write_lines(" ".join(codes_of(files.split_words(line))) for line in files.read_lines(args.input))


if __name__ == "__main__":
    sys.exit(main())
