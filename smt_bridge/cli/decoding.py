"""Options that smt-decode and smt-tune share, and the way from them to a decoder."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli import options
from nmt.cli.arguments import add_setting, check_separate, settings_of
from nmt.data.long_lines import MAX_LINE_WORDS
from smt_bridge.moses_ini import Ini, find_table

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.weights import Weights

log = logging.getLogger("nmt.decode")


def add_search(parser: argparse.ArgumentParser) -> None:
    from smt_bridge.decoder.config import DecoderConfig

    def add(name: str, what: str) -> None:
        add_setting(parser, DecoderConfig, name, help=what)

    switch: dict[str, Any] = {"action": argparse.BooleanOptionalAction, "default": None}
    add("stack", "hypotheses kept for each number of translated words; 0: all; without it the ini's, or 200")
    add("table_limit", "best options of a source phrase; 0: all; without it the ini's, or 20")
    add("distortion_limit", "longest jump in words; -1: any; without it the ini's, or any")
    add(
        "beam_threshold",
        "drop hypotheses of less than this share of the best one's; without it the ini's, or 1e-5",
    )
    add("max_phrase_length", "source words of an option; without it the ini's, or 20")
    parser.add_argument(
        "--early-distortion-cost",
        **switch,
        help="pay for a jump when it leaves a gap; without it as the ini says",
    )
    parser.add_argument(
        "--drop-unknown",
        **switch,
        help="leave unknown words out, but for those with digits; without it as the ini says",
    )
    parser.add_argument(
        "--mark-unknown",
        **switch,
        help="write UNK before unknown words, or what the ini has for it; without it as the ini says",
    )
    add("xml_input", "what tags in the input do, as in Moses; without it the ini's, or pass-through")
    parser.add_argument(
        "--xml-brackets",
        type=brackets,
        default=None,
        metavar="'< >'",
        help="what encloses tags; without it the ini's, or < >",
    )
    options.add_max_line_words(parser, "are translated in parts, or refused for an n-best list")
    add("neural_beam", "candidates of a stack that the neural LMs of the ini score; 0: all")
    add("buffer", "n-grams that a neural LM scores at a time")
    parser.add_argument(
        "--workers",
        type=options.positive,
        default=1,
        metavar="N",
        help="sentences translated at a time; the result does not depend on it",
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


def check_tables(ini: Ini, outputs: Sequence[tuple[str, str]]) -> None:
    """ConfigError when an output, (option, path), is a moses.ini that is read, or one of its tables and
    models."""
    roots = (".", str(Path(ini.path).parent))
    found = [
        find_table(feature.options["path"], root)
        for feature in ini.features
        if "path" in feature.options
        for root in roots
    ]
    tables = [("MODEL", str(place)) for place in found if place]
    check_separate([("MODEL", ini.path), *tables], outputs)


def brackets(text: str) -> tuple[str, str]:
    from smt_bridge.decoder import xml_input

    try:
        return xml_input.brackets(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def load(args: argparse.Namespace, nbest: int, distinct: bool, weights: "Weights | None" = None) -> "Decoder":
    """The decoder that the options ask for."""
    from smt_bridge.decoder import system as systems
    from smt_bridge.decoder.cache import Cache
    from smt_bridge.decoder.compiled import HAVE_NUMBA
    from smt_bridge.decoder.config import DecoderConfig
    from smt_bridge.decoder.decoder import Decoder

    lines = args.max_line_words or MAX_LINE_WORDS
    config = settings_of(DecoderConfig, args, max_line_words=lines, nbest=nbest, distinct=distinct)
    config.check()
    system = systems.load(args.model, not args.no_cache and Cache(args.cache or ""))
    networks = []
    if system.neural:
        options.set_up_torch("cpu", 1, "mkl")
        from smt_bridge.decoder import neural

        networks = neural.load(system)
    decoder = Decoder(system, config, weights, networks)
    log.info("%s", describe(decoder))
    if not HAVE_NUMBA:
        log.warning(
            "the package numba is not installed: decoding is many times slower; install it with: pip "
            "install "
            "'nmt-smt[smt]'"
        )
    elif not decoder.compiled:
        log.warning(
            "a binary language model is read word by word: decoding is many times slower; give the ARPA file"
        )
    return decoder


def describe(decoder: "Decoder") -> str:
    table = decoder.system.table
    search = decoder.settings
    return (
        f"{table.rows:,} phrase pairs of {len(table.sources):,} sources, "
        f"features {' '.join(f'{name}({size})' for name, size in decoder.system.sizes.items())}; "
        f"stack {search.stack or 'unlimited'}, table limit {search.table_limit or 'none'}, distortion limit "
        f"{search.distortion_limit}"
    )
