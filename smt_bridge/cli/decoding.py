"""Options that smt-decode and smt-tune share, and the way from them to a decoder."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import jobs, options
from nmt.cli.arguments import add_setting, check_separate, settings_of
from nmt.text.long_lines import MAX_LINE_WORDS
from smt_bridge.decoder import xml_input
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.moses import ini as ini_paths
from smt_bridge.moses.ini import Ini, find_table

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines
    from smt_bridge.moses.weights import Weights

log = logging.getLogger(__name__)

SEARCH = (
    "stack", "table_limit", "distortion_limit", "beam_threshold", "max_phrase_length",
    "early_distortion_cost", "drop_unknown", "mark_unknown", "xml_input", "xml_brackets", "neural_beam",
    "buffer",
)  # fmt: skip
SWITCHES = ("early_distortion_cost", "drop_unknown", "mark_unknown")


def add_search(parser: argparse.ArgumentParser) -> None:
    """Options of the search, of its workers and of the cache."""
    for name in SEARCH:
        if name in SWITCHES:
            add_setting(parser, DecoderConfig, name, action=argparse.BooleanOptionalAction)
        elif name == "xml_brackets":
            add_setting(parser, DecoderConfig, name, type=brackets, metavar="'< >'")
        else:
            add_setting(parser, DecoderConfig, name)
    options.add_max_line_words(parser, "are translated in parts, or refused for an n-best list")
    jobs.add_executor(
        parser,
        help="sentences translated at a time, by threads of this process, or with --executor processes by "
        "others; the result does not depend on it",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        default=None,
        help="where tables and LMs are kept, ready to load; default: see smt-cache",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write the cache, which makes loading fast"
    )


def in_threads(args: argparse.Namespace) -> bool:
    """Do threads of this process decode, which share tables and models?"""
    return not args.cluster and args.executor in ("", "local")


def elsewhere(ini: Ini, beside: bool = False) -> Ini:
    """An ini as other processes find its tables: with absolute paths. `beside`: only those beside it."""
    folder = Path(ini.path).parent
    return ini_paths.with_absolute_paths(ini, [folder] if beside else [".", folder])


def check_tables(ini: Ini, outputs: Sequence[tuple[str, str]], beside: bool = False) -> None:
    """ConfigError when an output, (option, path), is a moses.ini that is read, or one of its tables and
    models. `beside`: only those beside the ini."""
    roots = [*([] if beside else ["."]), str(Path(ini.path).parent)]
    found = [
        find_table(feature.options["path"], root)
        for feature in ini.features
        if "path" in feature.options
        for root in roots
    ]
    tables = [("MODEL", str(place)) for place in found if place]
    check_separate([("MODEL", ini.path), *tables], outputs)


def brackets(text: str) -> tuple[str, str]:
    """An argument type: what tags begin and end with."""
    try:
        return xml_input.brackets(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def load(
    args: argparse.Namespace,
    ini: Ini,
    nbest: int,
    distinct: bool,
    weights: "Weights | None" = None,
    *,
    explain: bool = False,
    lines: "Lines | None" = None,
    beside: bool = False,
) -> "Decoder":
    """The decoder that the options ask for, of an ini that has been read. `lines`: of text that is not
    tokenized, or has a glossary. `beside`: tables and models are those beside the ini."""
    from smt_bridge.decoder import system as systems
    from smt_bridge.decoder.cache import Cache
    from smt_bridge.decoder.compiled import HAVE_NUMBA
    from smt_bridge.decoder.decoder import Decoder

    asked = {"max_line_words": longest_line(args), "nbest": nbest, "distinct": distinct, "explain": explain}
    config = settings_of(DecoderConfig, args, **asked)
    config.check()
    system = systems.load_ini(ini, not args.no_cache and Cache(args.cache or ""), beside)
    if any(getattr(kind, "needs_torch", False) for kind, _ in system.feature_lines):
        options.set_up_torch("cpu", 1, "mkl")
    decoder = Decoder(system, config, weights, lines=lines)
    log.info("%s", describe(decoder))
    if not HAVE_NUMBA:
        log.warning(
            "the package numba is not installed: decoding is many times slower; install it with: pip "
            "install 'nmt-smt[smt]'"
        )
    elif decoder.compiled is None:
        log.warning(
            "a binary language model is read word by word: decoding is many times slower; give the ARPA file"
        )
    return decoder


def longest_line(args: argparse.Namespace) -> int:
    """The most words of a line that is not cut."""
    return int(args.max_line_words or MAX_LINE_WORDS)


def describe(decoder: "Decoder") -> str:
    """The model and the settings of the search, as the log reports them."""
    table, search = decoder.system.table, decoder.settings
    features = " ".join(f"{name}({size})" for name, size in decoder.system.sizes.items())
    return (
        f"{table.rows:,} phrase pairs of {len(table.sources):,} sources, features {features}; stack "
        f"{search.stack or 'unlimited'}, table limit {search.table_limit or 'none'}, distortion limit "
        f"{search.distortion_limit}"
    )
