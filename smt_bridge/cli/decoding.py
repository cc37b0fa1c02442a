"""Options that smt-decode and smt-tune share, and the way from them to a decoder."""

import argparse
import logging
from typing import TYPE_CHECKING, Any

from nmt.cli import options
from nmt.data.long_lines import MAX_LINE_WORDS
from nmt.settings import ALLOWED

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.weights import Weights

log = logging.getLogger("nmt.decode")


def add_search(parser: argparse.ArgumentParser) -> None:
    from smt_bridge.decoder.config import BY_NAME

    whole: dict[str, Any] = {"type": int, "default": None, "metavar": "N"}
    switch: dict[str, Any] = {"action": argparse.BooleanOptionalAction, "default": None}
    parser.add_argument("--stack", **whole, help="hypotheses kept for each number of translated words; 0: all; default: the ini's, or 200")
    parser.add_argument("--table-limit", **whole, help="best options of a source phrase; 0: all; default: the ini's, or 20")
    parser.add_argument("--distortion-limit", **whole, help="longest jump in words; -1: any; default: the ini's, or any")
    parser.add_argument(
        "--beam-threshold", type=float, default=None, metavar="P", help="drop hypotheses of less than this share of the best one's; default: the ini's, or 1e-5"
    )
    parser.add_argument("--max-phrase-length", **whole, help="source words of an option; default: the ini's, or 20")
    parser.add_argument("--early-distortion-cost", **switch, help="pay for a jump when it leaves a gap; default: the ini's")
    parser.add_argument("--drop-unknown", **switch, help="leave unknown words out, but for those with digits; default: the ini's")
    parser.add_argument("--mark-unknown", **switch, help="write UNK before unknown words, or the ini's prefix and suffix around them; default: the ini's")
    parser.add_argument(
        "--xml-input",
        choices=BY_NAME["xml_input"].metadata[ALLOWED],
        default=None,
        help="what tags in the input do, as in Moses; default: the ini's, or pass-through",
    )
    parser.add_argument("--xml-brackets", type=brackets, default=None, metavar="'< >'", help="what encloses tags; default: the ini's, or < >")
    options.add_max_line_words(parser, "are translated in parts, or refused for an n-best list")
    parser.add_argument("--neural-beam", type=int, default=500, metavar="K", help="candidates of a stack that the neural LMs of the ini score; 0: all")
    parser.add_argument("--buffer", type=options.positive, default=8192, metavar="N", help="n-grams that a neural LM scores at a time")
    parser.add_argument("--workers", type=options.positive, default=1, metavar="N", help="sentences translated at a time; the result does not depend on it")
    parser.add_argument("--cache", metavar="DIR", default=None, help="where tables and LMs are kept, ready to load; default: see smt-cache")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache, which makes loading fast")


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

    config = DecoderConfig(
        stack=args.stack,
        table_limit=args.table_limit,
        distortion_limit=args.distortion_limit,
        beam_threshold=args.beam_threshold,
        max_phrase_length=args.max_phrase_length,
        early_distortion_cost=args.early_distortion_cost,
        drop_unknown=args.drop_unknown,
        mark_unknown=args.mark_unknown,
        xml_input=args.xml_input,
        xml_brackets=args.xml_brackets,
        max_line_words=args.max_line_words or MAX_LINE_WORDS,
        nbest=nbest,
        distinct=distinct,
        neural_beam=args.neural_beam,
        buffer=args.buffer,
    )
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
        log.warning("the package numba is not installed: decoding is many times slower; install it with: pip install 'nmt-smt[smt]'")
    elif not decoder.compiled:
        log.warning("a binary language model is read word by word: decoding is many times slower; give the ARPA file")
    return decoder


def describe(decoder: "Decoder") -> str:
    table = decoder.system.table
    search = decoder.settings
    return (
        f"{table.rows:,} phrase pairs of {len(table.sources):,} sources, "
        f"features {' '.join(f'{name}({size})' for name, size in decoder.system.sizes.items())}; "
        f"stack {search.stack or 'unlimited'}, table limit {search.table_limit or 'none'}, distortion limit {search.distortion_limit}"
    )
