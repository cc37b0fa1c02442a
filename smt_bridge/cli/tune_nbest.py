"""smt-tune-nbest: tune feature weights on n-best lists, or on the pools of Moses' own tuner."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath
from nmt.errors import ConfigError
from nmt.io import files
from smt_bridge.moses import ini

if TYPE_CHECKING:
    from smt_bridge.tuning.pool import Pool
    from smt_bridge.tuning.tuner import TuningPoint

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    # Set before numpy loads: its products are small, and the tuner has threads of its own.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    from smt_bridge.cli import tuners

    own_parser = parser()
    args = options.parse(own_parser, argv)
    tuners.refuse_unused(own_parser, args)
    check_options(args)
    import numpy as np

    from smt_bridge.tuning import pool as pools

    if args.n_best:
        lists = pools.read_nbest(args.n_best, args.reference)
    else:
        lists = pools.read_moses(args.features, args.scores)
    pool = lists.pool()
    if args.export_features:
        pools.write_moses(args.export_features, args.export_scores, lists.names, lists.blocks())
        log.info(
            "%s, %s: pool of %s sentences and %d weights",
            args.export_features,
            args.export_scores,
            f"{pool.sentences:,}",
            len(pool.names),
        )
        return
    pools.warn_of_few(pool.sentences, len(pool.names))
    pools.drop_features(pool, args.drop)
    best = tune(args, pool)
    dense, sparse = np.split(best.weights, [len(pool.names)])
    print(f"Best point: {' '.join(f'{weight:.6g}' for weight in dense)}  => {best.bleu:.6g}")
    if args.output:
        header = [
            f"BLEU {best.bleu:.6f} on {pool.sentences} sentences",
            f"{args.method}, seeds {args.seed} to {args.seed + args.runs - 1}",
        ]
        weights = pools.to_weights(pool.names, dense)
        if pool.sparse:
            named = zip(pool.sparse.names, sparse.tolist(), strict=True)
            weights |= {name: [value] for name, value in named if value}
        ini.write_weights(args.output, weights, header)


def parser() -> options.Parser:
    from smt_bridge.cli.tuners import add_tuner

    parser = options.Parser(
        "smt-tune-nbest",
        "Tune the feature weights of n-best lists for BLEU. Prints 'Best point: w w ... => BLEU' as Moses' "
        "mert does.",
    )
    add_pools(parser)
    add_tuner(parser)
    parser.add_argument(
        "--init", type=InputPath, metavar="W",
        help="initial weights: lines 'Name= v v', a moses.ini, or one line of numbers",
    )  # fmt: skip
    parser.add_argument(
        "--drop", nargs="+", default=[], metavar="NAME",
        help="features whose weights stay 0, for comparison without them",
    )  # fmt: skip
    parser.add_argument(
        "--runs", type=options.positive, default=1,
        help="number of runs, each with the next seed; prints the spread and keeps the best weights",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=options.positive, help="number of threads of mert; the result does not depend on it"
    )
    parser.add_argument(
        "--output", "-o", type=OutputPath, metavar="W",
        help="write weights as lines 'Name= v v', for smt-rescore, smt-ini set-weights and moses.ini",
    )  # fmt: skip
    options.add_quiet(parser)
    return parser


def add_pools(parser: argparse.ArgumentParser) -> None:
    """Add the options of the lists to tune on, and of their export."""

    def add(name: str, metavar: str, help_text: str) -> None:
        parser.add_argument(name, type=InputPath, nargs="+", default=[], metavar=metavar, help=help_text)

    add("--n-best", "NBEST", "n-best lists of a system; several are pooled")
    parser.add_argument(
        "--reference", "-r", type=InputPath, nargs="+", default=[], metavar="FILE",
        help="references, tokenized and escaped like the lists; BLEU is cased",
    )  # fmt: skip
    add("--features", "FILE", "instead of lists: feature files of Moses' extractor; several are pooled")
    add("--scores", "FILE", "score files that belong to --features, in the same order")
    parser.add_argument(
        "--export-features", type=OutputPath, metavar="F",
        help="do not tune, but write the features of the pool to this file, for Moses' tuners (mert, kbmira)",
    )  # fmt: skip
    parser.add_argument(
        "--export-scores", type=OutputPath, metavar="S", help="and write its BLEU statistics to this file"
    )


def check_options(args: argparse.Namespace) -> None:
    """ConfigError for options that do not go together, for weights on stdout, and for a file that is given
    twice; DataError for a missing file."""
    if bool(args.n_best) == bool(args.features):
        raise ConfigError("give either --n-best and --reference, or --features and --scores")
    if bool(args.n_best) != bool(args.reference) or bool(args.features) != bool(args.scores):
        raise ConfigError("--n-best requires --reference, and --features requires --scores")
    if bool(args.export_features) != bool(args.export_scores):
        raise ConfigError("--export-features and --export-scores go together")
    if args.export_features and (args.output or args.drop or args.init):
        raise ConfigError(
            "--export-features writes the pool and does not tune; leave out --output, --init and --drop"
        )
    if args.output == "-":
        raise ConfigError("--output - (stdout): the line 'Best point' is printed there; name a file")
    paths = [*args.n_best, *args.reference, *args.features, *args.scores, *([args.init] if args.init else [])]
    files.existing(paths)
    if len(set(paths)) < len(paths):
        raise ConfigError("the same file is given twice")


def tune(args: argparse.Namespace, pool: "Pool") -> "TuningPoint":
    """Tune with each seed; returns the best point of all runs and of their start. Prints the spread of
    several runs. Errors as from `read_start` and `run_seeds`, and ConfigError for a setting out of range."""
    from smt_bridge.cli.tuners import parse_tuner
    from smt_bridge.tuning import tuner

    method, sparse = parse_tuner(args), pool.sparse.names if pool.sparse else ()
    tuner.check_sparse(method, sparse, args.method)
    log.info(
        "%s sentences, %s distinct hypotheses, %d weights",
        f"{pool.sentences:,}",
        f"{len(pool.features):,}",
        len(pool.all_names),
    )
    start = tuner.read_start(args.init, pool.names, sparse) if args.init else None
    start_point = tuner.starting_point(pool, start)
    whose = f"the weights of {args.init}" if args.init else "equal weights"
    log.info("BLEU %.6f with %s", start_point.bleu, whose)
    seeds = range(args.seed, args.seed + args.runs)
    threads = args.threads or min(4, os.cpu_count() or 1)
    with options.progress(args, "steps", 0) as progress:
        points = tuner.run_seeds(pool, method, start, seeds, threads, progress.reach)
    if args.runs > 1:
        print("\n".join(tuner.spread_table(pool.all_names, points)))
    return tuner.better_point(start_point, points)


if __name__ == "__main__":
    sys.exit(main())
