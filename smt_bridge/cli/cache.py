"""smt-cache: list or clear the cache of phrase tables and language models that the decoder has loaded, and of
runs that the server has exported."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from nmt.cli import options
from nmt.io import files

if TYPE_CHECKING:
    from nmt.serve.export_cache import CachedExport
    from smt_bridge.decoder.cache import CacheEntry


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    from nmt.serve.export_cache import UNUSED_DAYS
    from smt_bridge.decoder.cache import DEFAULT_GB, LIMIT_VARIABLE

    parser = options.Parser(
        "smt-cache",
        "smt-decode and smt-tune cache the phrase tables and language models that they load, in a form that "
        "opens at once. When the cache is full, the entries unused for the longest time are removed. It "
        f"holds {DEFAULT_GB:g} GB, or as many as the environment variable {LIMIT_VARIABLE} says. Beside them "
        f"nmt-serve caches the runs that it exports; those unused for {UNUSED_DAYS} days are removed.",
    )
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=options.ActionParser
    )
    for name, description in (
        (
            "list",
            "Print the size in MB and the last use of each entry and export, with the original files of an "
            "entry or the folder of an export.",
        ),
        ("clear", "Remove all entries and exports."),
    ):
        action = actions.add_parser(name, description=description, help=description)
        action.add_argument(
            "--cache",
            metavar="DIR",
            default=None,
            help=f"cache folder; default: ${files.CACHE_VARIABLE}, else nmt-smt in $XDG_CACHE_HOME or "
            "~/.cache",
        )
    return parser


def command(argv: Sequence[str] | None) -> None:
    from nmt.serve import export_cache
    from smt_bridge.decoder.cache import Cache

    args = options.parse(parser(), argv)
    cache = Cache(args.cache or "")
    if args.action == "list":
        entries, exports = cache.entries(), export_cache.entries(cache.folder)
        rows: list[tuple[CacheEntry | CachedExport, str]] = [
            *((entry, " ".join(entry.sources()) or "damaged") for entry in entries),
            *((export, str(export.path)) for export in exports),
        ]
        for row, name in rows:
            used = datetime.fromtimestamp(row.used).strftime("%Y-%m-%d %H:%M")
            print(f"{row.size / 1e6:.1f}\t{used}\t{name}")
    else:
        exports, entries = export_cache.clear(cache.folder), cache.clear()
    print(
        f"{cache.folder}: {len(entries)} entries, {megabytes(entries):.1f} MB "
        f"{'removed' if args.action == 'clear' else f'of at most {cache.limit / 1e6:,.0f}'}; "
        f"{len(exports)} exports, {megabytes(exports):.1f} MB"
    )


def megabytes(entries: "Sequence[CacheEntry | CachedExport]") -> float:
    return sum(entry.size for entry in entries) / 1e6


if __name__ == "__main__":
    sys.exit(main())
