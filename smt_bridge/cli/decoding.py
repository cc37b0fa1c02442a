"""Options that smt-decode and smt-tune share, and loading a decoder with them."""

import argparse
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.cli import jobs, options
from nmt.cli.arguments import add_setting, check_separate, parse_settings
from nmt.text.sentences import MAX_LINE_WORDS
from smt_bridge.decoder import xml_input
from smt_bridge.decoder.config import CUBE, DecoderConfig, read_search_settings
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini, find_table

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines
    from smt_bridge.moses.ini import Weights


log = logging.getLogger(__name__)

SEARCH = (
    "search", "stack", "pop_limit", "diversity", "table_limit", "distortion_limit", "beam_threshold",
    "max_phrase_length", "early_distortion_cost", "drop_unknown", "mark_unknown", "xml_input",
    "xml_brackets", "neural_beam", "buffer",
)  # fmt: skip
SWITCHES = ("early_distortion_cost", "drop_unknown", "mark_unknown")


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the options of the search, of its workers and of the cache."""
    for name in SEARCH:
        if name in SWITCHES:
            add_setting(parser, DecoderConfig, name, action=argparse.BooleanOptionalAction)
        elif name == "xml_brackets":
            add_setting(parser, DecoderConfig, name, type=parse_brackets, metavar="'< >'")
        else:
            add_setting(parser, DecoderConfig, name)
    options.add_max_line_words(parser, "are translated in parts, or refused for an n-best list")
    jobs.add_executor(
        parser,
        help="number of threads that translate, or with --executor processes, of processes; the result does "
        "not depend on it",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        default=None,
        help="cache folder of tables and language models; default: see smt-cache",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write the cache; loading is slower"
    )


def refuse_unused(parser: argparse.ArgumentParser, args: argparse.Namespace, ini: Ini) -> None:
    """ConfigError for an option of cube pruning if neither the options nor the ini choose that search."""
    if (args.search or read_search_settings(ini).get("search")) != CUBE:
        options.refuse_alone(parser, args, ("pop_limit", "diversity"), f"--search {CUBE}")


def uses_threads(args: argparse.Namespace) -> bool:
    """Whether threads of this process decode, which share tables and models."""
    return not args.cluster and args.executor in ("", "local")


def absolute_ini(ini: Ini) -> Ini:
    """An ini with absolute paths, for other processes."""
    return moses_ini.with_absolute_paths(ini, ini.roots)


def check_tables(ini: Ini, outputs: Sequence[tuple[str, str]]) -> None:
    """ConfigError if an output, (option, path), is the moses.ini or a file that it names. A warning is logged
    if a path leads to one file from the ini's folder and to another one from the current folder."""
    named: list[tuple[str, str]] = []
    for path in ini.paths:
        files = [file for root in ini.roots if (file := find_table(path, root))]
        if any(not file.samefile(files[0]) for file in files):
            log.warning(
                "%s: %s is there twice: %s beside the ini is read, not %s in the current folder, which Moses "
                "would read; write an absolute path to read that",
                ini.path, path, files[0], files[1],
            )  # fmt: skip
        named += [("MODEL", str(file)) for file in files]
    check_separate([("MODEL", ini.path), *named], outputs)


def parse_brackets(text: str) -> tuple[str, str]:
    """Argument type: the brackets around a tag, such as `< >`."""
    try:
        return xml_input.brackets(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def load_decoder(
    args: argparse.Namespace,
    ini: Ini,
    nbest: int,
    distinct: bool,
    weights: "Weights | None" = None,
    *,
    explain: bool = False,
    lines: "Lines | None" = None,
) -> "Decoder":
    """Load the decoder of an ini with the options of `add_search`. Sets up torch for this process if a
    feature needs it. Logs a description of the decoder, and a warning if it will be slow.

    `nbest`, `distinct`, `explain`: see DecoderConfig; `weights`: replace those of the ini; needed for every
    feature that n-best lists print. `lines`: converts lines of raw text, or applies a glossary. ConfigError
    for options out of range, for weights that do not fit, and for cube pruning with networks; UserError for a
    model or feature that cannot be used, or if the disk of the cache is full.
    """
    from nmt.compute.compiled import HAVE_NUMBA
    from smt_bridge.decoder import system as systems
    from smt_bridge.decoder.cache import Cache
    from smt_bridge.decoder.decoder import Decoder

    more = {"max_line_words": longest_line(args), "nbest": nbest, "distinct": distinct, "explain": explain}
    config = parse_settings(DecoderConfig, args, **more)
    config.check()
    system = systems.load_ini(ini, not args.no_cache and Cache(args.cache or ""))
    if any(kind.needs_torch for kind, _ in system.feature_lines):
        options.set_up_torch("cpu", 1, "mkl")
    decoder = Decoder(system, config, weights, lines=lines)
    log.info("%s", describe_decoder(decoder))
    if not HAVE_NUMBA:
        log.warning(
            "decoding is many times slower without the package numba; install it with: pip install "
            "'nmt-smt[smt]'"
        )
    elif decoder.compiled is None:
        log.warning("decoding is many times slower with a binary language model; give the ARPA file instead")
    return decoder


def longest_line(args: argparse.Namespace) -> int:
    """The maximum number of words of a line that is translated as a whole."""
    return int(args.max_line_words or MAX_LINE_WORDS)


def describe_decoder(decoder: "Decoder") -> str:
    """Describe the model and the settings of the search, for the log."""
    table, search = decoder.system.table, decoder.settings
    features = " ".join(f"{name}({size})" for name, size in decoder.system.sizes.items())
    return (
        f"{table.rows:,} phrase pairs of {table.source_count:,} sources, features {features}; stack "
        f"{search.stack or 'unlimited'}, table limit {search.table_limit or 'none'}, distortion limit "
        f"{search.distortion_limit}"
    )
