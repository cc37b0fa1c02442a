"""The development set translated by each system, and what each part of the hybrid is worth: weights found
again without it, on the lists of the tuning (as smt-tune-nbest --drop does)."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from nmt.compute import device
from nmt.io import files
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from smt_bridge.build import tuning
from smt_bridge.build.config import Build
from smt_bridge.build.networks import FEATURES, WORDS
from smt_bridge.build.plan import Rates
from smt_bridge.build.tables import DEV
from smt_bridge.build.training import NETWORKS
from smt_bridge.build.tuning import HYBRID, PHRASE_BASED
from smt_bridge.tuning import loop, tuner
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.tuner import silent

log = logging.getLogger(__name__)

FILE = "evaluation.json"
OUTPUTS = "outputs"  # below the folder of the development set
NEURAL = "neural"  # the attention model alone
TUNING = "tuning"  # without a part
BEAM = BeamConfig(beam_size=5)
PARTS = {"LM0": "count language model", "LexicalReordering0": "lexical reordering"}


@dataclass
class Evaluation:
    """BLEU of the development set, 0 to 1: cased, of the words of the tables."""

    chosen: str
    whole: dict[str, float]  # each system on the lines of `tuning.compared`
    lists: float  # the chosen system on the lists of its tuning
    without: dict[str, float] = field(default_factory=dict)  # each part, on the same lists


def evaluate(build: Build) -> None:
    """Translate, and find the weights again without each part."""
    seconds = expected_seconds(build)
    work = Advance(build, sum(seconds.values()) + seconds[TUNING] * len(parts(build)))
    found = {
        name: list(work.over(decoded(build, name), seconds[name] / build.plan.evaluated))
        for name in systems(build)
    }
    if build.plan.has("attention"):
        found[NEURAL] = translated(build)
        work.add(seconds[NEURAL])
    references = loop.references_of([tuning.compared(build, "dev.target")])
    whole = {}
    for name, lines in found.items():
        files.write_text(build.work / DEV / OUTPUTS / name, lines)
        rows = [one.statistics(line.split()) for one, line in zip(references, lines, strict=True)]
        whole[name] = float(bleu(np.array(rows, np.float64).sum(0)))
        log.info("%s: BLEU %.2f on %s lines", name, 100 * whole[name], f"{len(lines):,}")
    chosen = choose({name: whole[name] for name in systems(build)})
    lists, without = ablation(build, chosen, lambda: work.add(seconds[TUNING]))
    made = Evaluation(chosen, whole, lists, without)
    files.write_text(build.work / FILE, [json.dumps(asdict(made))])


def read(build: Build) -> Evaluation:
    """What was found."""
    return Evaluation(**json.loads((build.work / FILE).read_text(encoding="utf-8")))


def systems(build: Build) -> list[str]:
    """Those that were tuned."""
    return [PHRASE_BASED, *([HYBRID] if build.plan.networks else [])]


def choose(scores: dict[str, float]) -> str:
    """The system that decodes the development set best; of equals the last, which has networks."""
    return max(reversed(scores), key=lambda name: scores[name])


def expected_seconds(build: Build) -> dict[str, float]:
    """About how long the parts of the evaluation take, of the tunings each."""
    plan, rates = build.plan, Rates()
    words = plan.sizes.dev_words * plan.evaluated / plan.sizes.dev_pairs
    seconds = {PHRASE_BASED: words * rates.searching, TUNING: rates.tuning * plan.tuning.lines_of_hybrid}
    if plan.networks:
        seconds[HYBRID] = words * (rates.searching + sum(network.search for network in plan.networks))
    if plan.has("attention"):
        seconds[NEURAL] = words * rates.translating
    return seconds


@dataclass
class Advance:
    """How much of the evaluation is done, for the progress of the build."""

    build: Build
    total: float  # seconds, as expected
    done: float = 0.0

    def add(self, seconds: float) -> None:
        """Advance by work that was expected to take so long."""
        self.done += seconds
        self.build.share = min(1.0, self.done / max(1e-9, self.total))

    def over(self, items: Iterable[str], seconds: float) -> Iterator[str]:
        """The items, each of which was expected to take so long."""
        for item in items:
            yield item
            self.add(seconds)


def decoded(build: Build, name: str) -> Iterator[str]:
    """The development set by a tuned system."""
    decoder = tuning.load(build, tuning.ini_path(build, name))
    lines = tuning.compared(build, "dev.source")
    return map(decoder.lines.text, decoder.translate_all(lines, build.config.workers))


def translated(build: Build) -> list[str]:
    """The development set by the attention model alone."""
    device.set_up_device("cpu", 1, "mkl")
    run = Run.of(build.work / NETWORKS / "attention")
    lines = tuning.compared(build, "dev.source")
    return run.translate(lines, BEAM, tokenized=True)


def ablation(
    build: Build, name: str, passed: Callable[[], None] = lambda: None
) -> tuple[float, dict[str, float]]:
    """BLEU of a system on the lists of its tuning, and without each part: the most that any weights reach
    there, whatever tuned the system. `passed` is called after each."""
    found = tuning.tuned(build, name)
    held = tuning.held(build, name, found.names, found.lines)
    held.load()
    pool, start = held.pool(), held.iterations[held.best()].weights

    def best(*parts: str) -> float:
        without = replace(pool, features=pool.features.copy())
        pools.drop(without, parts)
        seeds = [build.config.seed]
        points = tuner.run_seeds(without, Mert(), start, seeds, held.threads, silent)
        passed()
        without_what = f" without {', '.join(parts)}" if parts else ""
        log.info("%s%s: BLEU %.2f on the lists", name, without_what, 100 * points[0].bleu)
        return points[0].bleu

    heads = pools.to_weights(found.names, start)
    return best(), {part: best(part) for part in parts(build) if part in heads}


def parts(build: Build) -> dict[str, str]:
    """The features whose worth is measured, and what they are."""
    networks = {feature_name(FEATURES[one.name]): WORDS[one.name] for one in build.plan.networks}
    return networks | PARTS


def feature_name(line: str) -> str:
    """`CSLM name=CSLM0 ...` -> CSLM0"""
    return next(word.removeprefix("name=") for word in line.split() if word.startswith("name="))
