"""Translate the development set with each system of a build, choose the best, and measure what each part
adds.

A part's worth is the BLEU that is lost on the n-best lists of the tuning if the weights are tuned again
without it, as smt-tune-nbest --drop does.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from nmt.compute import device
from nmt.io import files
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.networks import FEATURES, WORDS
from smt_bridge.build.plan import Rates
from smt_bridge.build.training import DEV, NETWORKS
from smt_bridge.build.tuning import (
    HYBRID,
    PHRASE_BASED,
    ini_path,
    load_decoder,
    make_tuning,
    read_result,
    sample_lines,
)
from smt_bridge.tuning import loop, tuner
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.tuner import silent

log = logging.getLogger(__name__)

FILE = "evaluation.json"
OUTPUTS = "outputs"  # below the folder of the development set
NEURAL = "neural"  # the attention model alone
TUNING = "tuning"  # tuning once more, without a part
BEAM = BeamConfig(beam_size=5)
PARTS = {"LM0": "count language model", "LexicalReordering0": "lexical reordering"}


@dataclass
class Evaluation:
    """Cased BLEU of the development set, 0 to 1, computed on the tokens that the phrase table uses. This is
    what FILE stores."""

    chosen: str  # PHRASE_BASED or HYBRID
    whole: dict[str, float]  # of each system on `comparison_lines`
    lists: float  # of the chosen system on the n-best lists of its tuning
    without: dict[str, float] = field(default_factory=dict)  # of it without each part, on the same lists


def comparison_lines(build: Build, name: str) -> list[str]:
    """The lines of file `name` of the development set on which the systems are compared."""
    return sample_lines(BuildTexts(build.work).lines(name), build.plan.evaluated)


def evaluate(build: Build) -> None:
    """Translate the development set with each system, choose the best, and tune again without each part.
    Writes the translations to OUTPUTS and the scores to FILE."""
    seconds = expected_seconds(build)
    progress = EvaluationProgress(build, sum(seconds.values()) + seconds[TUNING] * len(parts(build)))
    translations = {
        name: list(progress.over(translate_tuned(build, name), seconds[name] / build.plan.evaluated))
        for name in tuned_systems(build)
    }
    if build.plan.has("attention"):
        translations[NEURAL] = translate_alone(build)
        progress.add(seconds[NEURAL])
    references = loop.make_references([comparison_lines(build, "dev.target")])
    whole = {}
    for name, lines in translations.items():
        files.write_text(build.work / DEV / OUTPUTS / name, lines)
        statistics = [
            reference.statistics(line.split()) for reference, line in zip(references, lines, strict=True)
        ]
        whole[name] = float(bleu(np.array(statistics, np.float64).sum(0)))
        log.info("%s: BLEU %.2f on %s lines", name, 100 * whole[name], f"{len(lines):,}")
    chosen = choose({name: whole[name] for name in tuned_systems(build)})
    lists, without = ablation(build, chosen, lambda: progress.add(seconds[TUNING]))
    result = Evaluation(chosen, whole, lists, without)
    files.write_text(build.work / FILE, [json.dumps(asdict(result))])


def read_evaluation(build: Build) -> Evaluation:
    """Read the scores that `evaluate` wrote."""
    return Evaluation(**json.loads((build.work / FILE).read_text(encoding="utf-8")))


def tuned_systems(build: Build) -> list[str]:
    """Names of the systems that were tuned."""
    return [PHRASE_BASED, *([HYBRID] if build.plan.networks else [])]


def choose(scores: dict[str, float]) -> str:
    """Name of the system with the highest BLEU; on ties the last one, which has networks. `scores`: BLEU by
    name."""
    return max(reversed(scores), key=lambda name: scores[name])


def expected_seconds(build: Build) -> dict[str, float]:
    """Estimated seconds, on the reference machine, of translating the development set with each system, by
    its name, and of one tuning, by the name TUNING."""
    plan, rates = build.plan, Rates()
    words = plan.sizes.dev_words * plan.evaluated / plan.sizes.dev_pairs
    seconds = {PHRASE_BASED: words * rates.searching, TUNING: rates.tuning * plan.tuning.lines_of_hybrid}
    if plan.networks:
        seconds[HYBRID] = words * (rates.searching + sum(network.search for network in plan.networks))
    if plan.has("attention"):
        seconds[NEURAL] = words * rates.translating
    return seconds


@dataclass
class EvaluationProgress:
    """Reports the completed share of the evaluation to the build."""

    build: Build
    total: float  # expected seconds
    done: float = 0.0  # expected seconds of the work that is completed

    def add(self, seconds: float) -> None:
        """Advance by work that was expected to take `seconds`."""
        self.done += seconds
        self.build.share = min(1.0, self.done / max(1e-9, self.total))

    def over(self, items: Iterable[str], seconds: float) -> Iterator[str]:
        """Yield the items, each expected to take `seconds`, and advance after each."""
        for item in items:
            yield item
            self.add(seconds)


def translate_tuned(build: Build, name: str) -> Iterator[str]:
    """Translate the development set with a tuned system; yields a line for each sentence."""
    decoder = load_decoder(build, ini_path(build, name))
    lines = comparison_lines(build, "dev.source")
    return map(decoder.lines.text, decoder.translate_all(lines, build.config.workers))


def translate_alone(build: Build) -> list[str]:
    """Translate the development set with the attention model alone. Sets up torch for this process: the CPU,
    with one thread."""
    device.set_up_device("cpu", 1, "mkl")
    run = TorchRun.of(build.work / NETWORKS / "attention").for_text(tokenized=True)
    lines = comparison_lines(build, "dev.source")
    return run.translate(lines, BEAM)


def ablation(
    build: Build, name: str, on_tuned: Callable[[], None] = lambda: None
) -> tuple[float, dict[str, float]]:
    """Measure what each part of a system contributes. Returns BLEU, 0 to 1, on the n-best lists of its tuning
    with all parts, and BLEU without each part, by the name of its feature.

    Weights are tuned again by MERT for each measurement, whichever tuner the system was tuned with, so that
    the numbers can be compared. `on_tuned` is called after each tuning.
    """
    result = read_result(build, name)
    system_tuning = make_tuning(build, name, result.names, result.lines)
    system_tuning.load()
    pool, start = system_tuning.pool(), system_tuning.iterations[system_tuning.best()].weights

    def bleu_without(*dropped: str) -> float:
        reduced = replace(pool, features=pool.features.copy())
        pools.drop_features(reduced, dropped)
        seeds = [build.config.seed]
        points = tuner.run_seeds(reduced, Mert(), start, seeds, system_tuning.threads, silent)
        on_tuned()
        without_what = f" without {', '.join(dropped)}" if dropped else ""
        log.info("%s%s: BLEU %.2f on the lists", name, without_what, 100 * points[0].bleu)
        return points[0].bleu

    weights = pools.to_weights(result.names, start)
    return bleu_without(), {part: bleu_without(part) for part in parts(build) if part in weights}


def parts(build: Build) -> dict[str, str]:
    """Map the features whose contribution is measured to their descriptions."""
    networks = {feature_name(FEATURES[network.name]): WORDS[network.name] for network in build.plan.networks}
    return networks | PARTS


def feature_name(line: str) -> str:
    """Name of the feature that a line of an ini defines: `CSLM name=CSLM0 ...` -> `CSLM0`"""
    return next(word.removeprefix("name=") for word in line.split() if word.startswith("name="))
