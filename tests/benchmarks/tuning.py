"""How tunings of a hybrid system go, with several tuners and seeds; the networks are trained once:

    python tests/benchmarks/tuning.py SYSTEM_DIR OUT_DIR [--seeds 5] [--lines 200] [--methods mert kbmira]

SYSTEM_DIR is what smt-build wrote, with its folder build. A line for each tuning: BLEU of each decoding, in
brackets what the lists promised; the best; the lines for which a list holds a translation of a higher score
than the search finds with these weights, and BLEU with these translations; BLEU of the lines of the
development set that were not tuned on. --alone: without the lists of the search without networks. A stopped
run goes on.
"""

import argparse
import json
from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np

from smt_bridge.build import tuning
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.plan import read_plan
from smt_bridge.build.training import DEV
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.moses.ini import Weights
from smt_bridge.tuning import loop, pool
from smt_bridge.tuning.bleu import BleuReferences, bleu
from smt_bridge.tuning.registry import TUNERS, TuneConfig
from smt_bridge.tuning.loop import Tuning, decode, starting_weights
from smt_bridge.tuning.pool import Floats


class Study:
    """A system, and the two parts of its development set."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        work = Path(args.system) / "build"
        self.build = Build(BuildConfig("", "", "", "", args.system), read_plan(work / "plan.json"))
        source, target = (BuildTexts(work).lines(f"dev.{side}") for side in ("source", "target"))
        tuned = set(tuning.sample_lines([str(number) for number in range(len(source))], args.lines))
        parts = [
            [at for at in range(len(source)) if (str(at) in tuned) == wanted] for wanted in (True, False)
        ]
        self.sources, self.others = ([source[at] for at in part] for part in parts)
        self.references, self.unseen = (
            loop.make_references([[target[at] for at in part]]) if part else [] for part in parts
        )
        self.decoder = self.load(self.build.plan.tuning.n_best)
        self.names = pool.column_names(self.decoder.system.sizes)
        self.first: dict[str, list[PhraseTranslation]] = {}  # of the weights that all start with

    def load(self, n_best: int = 0) -> Decoder:
        return tuning.load_decoder(self.build, self.build.work / DEV / "hybrid.start.ini", n_best)

    def decode(self, weights: Weights) -> Generator[PhraseTranslation]:
        yield from decode(self.decoder, weights, self.sources, self.args.workers, "dev")

    def decode_first(self, weights: Weights) -> Generator[PhraseTranslation]:
        key = json.dumps(weights)
        if key not in self.first and len(self.first) < 2:
            self.first[key] = list(self.decode(weights))
        yield from self.first.get(key) or self.decode(weights)

    def tune(self, method: str, seed: int) -> str:
        """A tuning as a line."""
        folder = Path(self.args.out) / f"{method}-{seed}{'-alone' * self.args.alone}"
        folder.mkdir(parents=True, exist_ok=True)
        config = TuneConfig(method=method, iterations=self.args.iterations, seed=seed)
        tuning = Tuning(folder, self.names, len(self.sources), config, TUNERS[method](), self.args.workers)
        given = starting_weights(self.decoder, self.names)[-1 if self.args.alone else 0 :]
        loop.run(tuning, given, self.decode_first, self.references)
        best = tuning.iterations[tuning.best()]
        shown = [
            f"{100 * one.bleu:.2f}" + f" ({100 * one.promised:.2f})" * bool(one.promised)
            for one in tuning.iterations
        ]
        lost, of_lists = tuning.search_errors()
        unseen = self.scored(best.weights) if self.others else ""
        results = f"{100 * best.bleu:.2f}", str(lost), f"{100 * of_lists:.2f}", unseen
        return "\t".join([method, str(seed), ", ".join(shown), *results])

    def scored(self, weights: Floats) -> str:
        """BLEU of the lines that are not tuned on."""
        decoder = self.load()
        found = decode(decoder, pool.to_weights(self.names, weights), self.others, self.args.workers, "dev")
        return f"{100 * of(self.unseen, [one.text for one in found]):.2f}"


def of(references: Sequence[BleuReferences], texts: Sequence[Sequence[str]]) -> float:
    """BLEU of translations, 0 to 1."""
    rows = [one.statistics(text) for one, text in zip(references, texts, strict=True)]
    return float(bleu(np.array(rows, np.float64).sum(0)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system")
    parser.add_argument("out")
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--methods", nargs="+", default=["mert", "kbmira"])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    study = Study(parser.parse_args())
    for method in study.args.methods:
        for seed in range(1, study.args.seeds + 1):
            print(study.tune(method, seed), flush=True)


if __name__ == "__main__":
    main()
