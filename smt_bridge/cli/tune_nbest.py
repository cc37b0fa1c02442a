"""smt-tune-nbest: feature weights from n-best lists, or from the pools of Moses' own tuner."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import smt_bridge.weights as weight_files
from nmt import files, numbers
from nmt.cli import options
from nmt.cli.arguments import Input, Output, add_setting
from nmt.errors import ConfigError, DataError, UserError
from smt_bridge.cli.progress import Progress
from smt_bridge.config import TuneConfig

if TYPE_CHECKING:
    from smt_bridge.tuning.mert import Point
    from smt_bridge.tuning.pool import Floats, Pool

log = logging.getLogger("nmt.tune")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-tune-nbest",
        (
            "Tune the weights of n-best lists for BLEU on their references. Prints 'Best point: w w ... => "
            "BLEU' "
            "as Moses' mert does."
        ),
    )
    parser.add_argument(
        "--nbest",
        "-n",
        type=Input,
        nargs="+",
        default=[],
        metavar="NBEST",
        help="lists of one system; several are pooled",
    )
    parser.add_argument(
        "--reference",
        "-r",
        type=Input,
        nargs="+",
        default=[],
        metavar="FILE",
        help="references, tokenized and escaped as the lists; BLEU keeps case",
    )
    parser.add_argument(
        "--features",
        type=Input,
        nargs="+",
        default=[],
        metavar="FILE",
        help="instead of lists: feature files of Moses' extractor; several are pooled",
    )
    parser.add_argument(
        "--scores", type=Input, nargs="+", default=[], metavar="FILE", help="and its score files, pairwise"
    )
    add_setting(
        parser, TuneConfig, "method", help="mert: line search; kbmira: batch MIRA; pro: pairwise ranking"
    )
    parser.add_argument(
        "--init",
        type=Input,
        metavar="W",
        default=None,
        help="weights to start from: 'Name= v v' lines, a moses.ini, or one line of numbers",
    )
    parser.add_argument(
        "--drop",
        nargs="+",
        default=[],
        metavar="NAME",
        help="features left at weight 0, for the control without them",
    )
    add_setting(parser, TuneConfig, "seed", help="random starts and orders")
    parser.add_argument(
        "--runs",
        type=options.positive,
        default=1,
        help="tune this often, with the following seeds; prints the spread, keeps the best",
    )
    add_setting(parser, TuneConfig, "restarts", help="random starts of mert besides --init and equal weights")
    parser.add_argument(
        "--threads", type=options.positive, default=None, help="of mert; the result does not depend on it"
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Output,
        metavar="W",
        default=None,
        help="weight file, 'Name= v v' lines, for smt-rescore, smt-ini set-weights and moses.ini",
    )
    exported = (
        "tune nothing; write the pool for the tuners of Moses (mert, kbmira): this file has the features"
    )
    parser.add_argument("--export-features", type=Output, metavar="F", default=None, help=exported)
    parser.add_argument(
        "--export-scores", type=Output, metavar="S", default=None, help="and this one the BLEU statistics"
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-tune-nbest", args.quiet)
    check(args)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # before numpy loads: its products are small, the threads are ours
    tune(args)


def check(args: argparse.Namespace) -> None:
    if bool(args.nbest) == bool(args.features):
        raise ConfigError("give either --nbest and --reference, or --features and --scores")
    if bool(args.nbest) != bool(args.reference) or bool(args.features) != bool(args.scores):
        raise ConfigError("--nbest goes with --reference, --features with --scores")
    if bool(args.export_features) != bool(args.export_scores):
        raise ConfigError("--export-features and --export-scores go together")
    if args.export_features and (args.output or args.drop or args.init):
        raise ConfigError(
            "--export-features writes the pool and tunes nothing; leave --output, --init and --drop out"
        )
    paths = [*args.nbest, *args.reference, *args.features, *args.scores, *([args.init] if args.init else [])]
    files.existing(paths)
    if len(set(paths)) < len(paths):
        raise ConfigError("the same file is given twice")


def tune(args: argparse.Namespace) -> None:
    import numpy as np

    from smt_bridge.tuning import moses_pool
    from smt_bridge.tuning import pool as pools
    from smt_bridge.tuning.kbmira import MiraConfig
    from smt_bridge.tuning.mert import POLISHED

    lists = (
        pools.read_nbest(args.nbest, args.reference)
        if args.nbest
        else pools.read_moses(args.features, args.scores)
    )
    pool = pools.make(*lists)
    if args.export_features:
        moses_pool.write(args.export_features, args.export_scores, lists.names, lists.blocks())
        log.info(
            "%s, %s: pool of %s sentences and %d weights",
            args.export_features,
            args.export_scores,
            f"{pool.sentences:,}",
            len(pool.names),
        )
        return
    pools.drop(pool, args.drop)
    log.info(
        "%s sentences, %s distinct hypotheses, %d weights",
        f"{pool.sentences:,}",
        f"{len(pool.features):,}",
        len(pool.names),
    )
    init = read_init(args.init, pool.names) if args.init else None
    start = pools.normalize(np.ones(len(pool.names)) if init is None else init)
    log.info("BLEU %.6f with the weights of %s", pool.bleu(start), args.init or "1 for each feature")
    starts = args.restarts + (2 if init is not None else 1)
    steps = {"mert": starts + min(POLISHED, starts), "kbmira": MiraConfig().passes, "pro": 1}[args.method]
    points = []
    with Progress(steps * args.runs, "steps", args.quiet) as progress:
        for seed in range(args.seed, args.seed + args.runs):
            points.append(run(args, pool, init, seed, progress))
            if args.runs > 1:
                log.info("seed %d: BLEU %.6f", seed, points[-1].bleu)
    best = max(points, key=lambda point: point.bleu)
    if not np.any(best.weights):
        raise UserError(
            "every weight is 0: no direction changes BLEU; are the features of this list all constant?"
        )
    if args.runs > 1:
        print_spread(pool.names, points)
    print(f"Best point: {' '.join(f'{weight:.6g}' for weight in best.weights)}  => {best.bleu:.6g}")
    if args.output:
        header = [
            f"BLEU {best.bleu:.6f} on {pool.sentences} sentences",
            f"{args.method}, seeds {args.seed} to {args.seed + args.runs - 1}",
        ]
        weight_files.write(args.output, pools.to_weights(pool.names, best.weights), header)


def run(
    args: argparse.Namespace, pool: "Pool", init: "Floats | None", seed: int, progress: Progress
) -> "Point":
    import numpy as np

    from smt_bridge.tuning.kbmira import kbmira
    from smt_bridge.tuning.mert import mert
    from smt_bridge.tuning.pro import pro

    equal = np.ones(len(pool.names)) / len(pool.names)
    given = [] if init is None else [init]
    if args.method == "mert":
        return mert(
            pool,
            [*given, equal],
            seed,
            args.restarts,
            args.threads or min(4, os.cpu_count() or 1),
            progress.add,
        )
    if args.method == "kbmira":
        return kbmira(pool, given[0] if given else np.zeros(len(pool.names)), seed, tell=progress.add)
    return pro(pool, seed)


def read_init(path: str, names: Sequence[str]) -> "Floats":
    """Weights by name, or one line of numbers by position, as Moses' weights.txt and init.opt have them."""
    import numpy as np

    from smt_bridge.tuning.pool import from_weights

    first = next((line for line in files.read_lines(path) if line.strip() and not line.startswith("#")), "")
    try:
        values = numbers.reals(files.split_words(first))
    except ValueError:
        try:
            return from_weights(names, weight_files.read(path))
        except DataError as error:
            raise DataError(f"{path}: {error}" if path not in str(error) else str(error)) from error
    if len(values) != len(names):
        raise ConfigError(
            f"{path}: {len(values)} numbers, but the pool has {len(names)} features: {' '.join(names)}"
        )
    return np.array(values)


def print_spread(names: Sequence[str], points: Sequence["Point"]) -> None:
    """How far the runs agree: BLEU and each weight."""
    import numpy as np

    print("value\tmean\tsd\tlowest\thighest")
    table = np.array([[point.bleu, *point.weights] for point in points])
    for name, column in zip(["BLEU", *names], table.T, strict=True):
        print(f"{name}\t{column.mean():.6g}\t{column.std():.3g}\t{column.min():.6g}\t{column.max():.6g}")


if __name__ == "__main__":
    sys.exit(main())
