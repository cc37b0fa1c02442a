"""smt-cache: list or clear the cache of phrase tables and language models that the decoder has loaded."""

import sys
from collections.abc import Sequence
from datetime import datetime

from nmt.cli import options


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    from smt_bridge.decoder.cache import DEFAULT_GB, FOLDER_VARIABLE, LIMIT_VARIABLE

    parser = options.Parser(
        "smt-cache",
        "smt-decode and smt-tune cache the phrase tables and language models that they load, in a form that "
        "loads fast. When the cache is full, the files unused for the longest time are removed. It holds "
        f"{DEFAULT_GB:g} GB, or as many as the environment variable {LIMIT_VARIABLE} says.",
    )
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=options.ActionParser
    )
    for name, description in (
        ("list", "Print the size in MB, the last use and the original files of each cached file."),
        ("clear", "Remove all cached files."),
    ):
        action = actions.add_parser(name, description=description, help=description)
        action.add_argument(
            "--cache",
            metavar="DIR",
            default=None,
            help=f"cache folder; default: ${FOLDER_VARIABLE}, else nmt-smt in $XDG_CACHE_HOME or ~/.cache",
        )
    return parser


def command(argv: Sequence[str] | None) -> None:
    from smt_bridge.decoder.cache import Cache

    args = parser().parse_args(argv)
    options.start_log("smt-cache", args)
    cache = Cache(args.cache or "")
    entries = cache.entries() if args.action == "list" else cache.clear()
    if args.action == "list":
        for entry in entries:
            used = datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d %H:%M")
            print(f"{entry.size / 1e6:.1f}\t{used}\t{' '.join(entry.sources()) or 'damaged'}")
    total = sum(entry.size for entry in entries) / 1e6
    print(
        f"{cache.folder}: {len(entries)} files, {total:.1f} MB "
        f"{'removed' if args.action == 'clear' else f'of at most {cache.limit / 1e6:,.0f}'}"
    )


if __name__ == "__main__":
    sys.exit(main())
