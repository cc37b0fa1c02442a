"""Options that smt-decode and smt-tune share, and the way from them to a decoder."""

import argparse
import logging
from typing import TYPE_CHECKING

from nmt.cli import options

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.weights import Weights

log = logging.getLogger("nmt.decode")


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stack", type=int, default=200, metavar="N", help="hypotheses kept for each number of translated words; 0: all")
    parser.add_argument("--table-limit", type=int, default=None, metavar="N", help="best options of a source phrase; 0: all; default: the ini's, or 20")
    parser.add_argument("--distortion-limit", type=int, default=None, metavar="N", help="longest jump in words; -1: any; default: the ini's, or 6")
    parser.add_argument("--beam-threshold", type=float, default=1e-5, metavar="P", help="drop hypotheses of less than this share of the best one's probability")
    parser.add_argument("--neural-beam", type=int, default=500, metavar="K", help="candidates of a stack that the neural LMs of the ini score; 0: all")
    parser.add_argument("--buffer", type=options.positive, default=8192, metavar="N", help="n-grams that a neural LM scores at a time")
    parser.add_argument("--workers", type=options.positive, default=1, metavar="N", help="sentences translated at a time; the result does not depend on it")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write TABLE.cache and LM.cache, which make loading fast")


def load(args: argparse.Namespace, nbest: int, distinct: bool, weights: "Weights | None" = None) -> "Decoder":
    """The decoder that the options ask for."""
    from smt_bridge.decoder import system as systems
    from smt_bridge.decoder.compiled import HAVE_NUMBA
    from smt_bridge.decoder.config import DecoderConfig
    from smt_bridge.decoder.decoder import Decoder

    config = DecoderConfig(
        args.stack, args.table_limit, args.distortion_limit, args.beam_threshold, nbest, distinct, neural_beam=args.neural_beam, buffer=args.buffer
    )
    config.check()
    system = systems.load(args.model, not args.no_cache)
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
    return (
        f"{table.rows:,} phrase pairs of {len(table.sources):,} sources, "
        f"features {' '.join(f'{name}({size})' for name, size in decoder.system.sizes.items())}; "
        f"stack {decoder.config.stack or 'unlimited'}, table limit {decoder.table_limit or 'none'}, distortion limit {decoder.distortion_limit}"
    )
