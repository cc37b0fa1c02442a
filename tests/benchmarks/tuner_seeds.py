"""How much the seed of a tuner changes BLEU of sentences that it has not seen, with the lists decoded once:

    python tests/benchmarks/tuner_seeds.py NBEST REFERENCE [--methods xbleu kbmira mert] [--seeds 5] [--both]

The sentences are cut at random into two halves. Weights are tuned on the first one, and choose from the lists
of the second: a line for each seed, then mean, standard deviation and range; --both: and the other way round.
The last figure of a tuner is BLEU with the average of all seeds' weights.
"""

import argparse
import time

import numpy as np

from smt_bridge.tuning.pool import Pool, read_nbest
from smt_bridge.tuning.registry import TUNERS


def study(method: str, seeds: int, tuned: Pool, other: Pool) -> None:
    """Print BLEU, 0 to 100, of both halves by each seed."""
    start = np.full(len(tuned.names), 1 / len(tuned.names))
    began, weights = time.process_time(), []
    for seed in range(1, seeds + 1):
        weights.append(TUNERS[method]().tune(tuned, start, seed).weights)
        print(f"{method}\t{seed}\t{100 * tuned.bleu(weights[-1]):.2f}\t{100 * other.bleu(weights[-1]):.2f}")
    seconds = (time.process_time() - began) / seeds
    for name, half in (("tuned", tuned), ("other", other)):
        scores = 100 * np.array([half.bleu(point) for point in weights])
        deviation = scores.std(ddof=1) if seeds > 1 else 0.0
        print(
            f"{method}, {name} half: mean {scores.mean():.2f}, deviation {deviation:.2f}, range "
            f"{np.ptp(scores):.2f}, average of the weights {100 * half.bleu(np.mean(weights, 0)):.2f}"
        )
    print(f"{method}: {seconds:.1f} CPU seconds a tuning", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nbest")
    parser.add_argument("reference")
    parser.add_argument("--methods", nargs="+", default=["xbleu", "kbmira", "mert"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--both", action="store_true")
    args = parser.parse_args()
    pool = read_nbest([args.nbest], [args.reference]).pool()
    order, middle = np.random.default_rng(1).permutation(pool.sentences), pool.sentences // 2
    halves = [pool.part(sorted(part.tolist())) for part in (order[:middle], order[middle:])]
    for tuned, other in (halves, halves[::-1])[: 1 + args.both]:
        for method in args.methods:
            study(method, args.seeds, tuned, other)


if __name__ == "__main__":
    main()
