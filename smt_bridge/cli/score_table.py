"""smt-score-table: append neural scores to a Moses phrase table."""

import logging
import sys
from collections.abc import Iterator, Sequence

from nmt import files, phrase_table
from nmt.cli import options
from nmt.errors import ConfigError, DataError
from nmt.phrase_table import PhrasePair

log = logging.getLogger("nmt.score_table")

TYPES = ("translation",)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("smt-score-table", "Append a column of scores, exp(log p), to a Moses phrase table; everything else stays byte for byte.")
    parser.add_argument("table", metavar="TABLE", help="phrase table; plain, gzip, or -")
    parser.add_argument("--feature", "-f", action="append", required=True, metavar="TYPE=PATH", help="translation=RUN_DIR: p(target | source); may be repeated")
    options.add_output(parser)
    options.add_compute(parser)
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-score-table", args.quiet)
    paths = [parse_feature(text) for text in args.feature]
    files.existing([args.table])
    set_up = options.set_up_torch(args.device, args.threads, args.matmul)
    from nmt import checkpoint
    from smt_bridge.features.translation import Translation
    from smt_bridge.score_table import add_columns

    features = [Translation(checkpoint.load(path, args.checkpoint, args.device)) for path in paths]
    count = 0
    with files.Writing(args.output) as out:
        log.info("%s", set_up)
        for line in add_columns(checked(args.table), features):
            out.write(line + b"\n")
            count += 1
    log.info("%s phrase pairs scored; add %d to num-features and as many weights in moses.ini", f"{count:,}", len(features))


def checked(path: str) -> Iterator[PhrasePair]:
    """The pairs of a table, all with the same number of scores."""
    expected = 0
    for number, pair in enumerate(phrase_table.read(path), 1):
        found = len(pair.scores.split())
        expected = expected or found
        if found != expected:
            raise DataError(f"{files.name_of(path)}:{number}: {found} scores, but the lines above have {expected}; Moses refuses such a table")
        yield pair
    if not expected:
        raise DataError(f"{files.name_of(path)}: empty file, expected a phrase table")


def parse_feature(text: str) -> str:
    kind, equals, path = text.partition("=")
    if not equals or not path:
        raise ConfigError(f"--feature {text}: expected TYPE=PATH, e.g. translation=runs/first")
    if kind not in TYPES:
        raise ConfigError(f"--feature {text}: type {kind!r} is unknown, expected one of {', '.join(TYPES)}")
    return path


if __name__ == "__main__":
    sys.exit(main())
