"""Tune the systems of a build, translate the development set with each, and measure what each part adds.

A part's worth is the BLEU that is lost on the n-best lists of the tuning if the weights are tuned again
without it, as smt-tune-nbest --drop does.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from nmt.compute import device
from nmt.io import files, locks, manifest
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.networks import FEATURES, START, WORDS
from smt_bridge.build.plan import Rates, TuningPlan
from smt_bridge.build.training import BASE, DEV, NETWORKS
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.hybrid.folder import Value
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini
from smt_bridge.tuning import loop, tuner
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.loop import Tuning, decode, starting_weights, whole_weights
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.registry import TUNERS, TuneConfig
from smt_bridge.tuning.tuner import silent

# ---- tuning ------------------------------------------------------------------------------------------------
# Tune the weights of the phrase-based system, and of the system with networks, as smt-tune does.


log = logging.getLogger(__name__)

PHRASE_BASED, HYBRID = "phrase-based", "hybrid"
STACK = 100


@dataclass
class TuningResult:
    """Results of a finished tuning, as they are stored in NAME.json."""

    bleu: float  # of the best decoding, 0 to 1
    iterations: list[float]  # BLEU of each, 0 to 1
    lines: int  # of the development set
    names: list[str]  # of the D weights, such as LM0_0
    warning: str = ""  # not empty if the tuning gained nothing


def search_settings(plan: TuningPlan) -> dict[str, Value]:
    """Search settings of tuning and decoding."""
    return {"stack": STACK, "neural_beam": plan.neural_beam}


def tune_phrase_based(build: Build) -> None:
    """Tune the system without networks."""
    start = moses_ini.read(str(build.work / DEV / BASE))
    tune(build, PHRASE_BASED, start, build.plan.tuning.lines)


def tune_hybrid(build: Build) -> None:
    """Tune the system with all networks, starting from the weights of the phrase-based system."""
    ini = moses_ini.read(str(ini_path(build, PHRASE_BASED)))
    for network in build.plan.networks:
        line = FEATURES[network.name].format(path=f"../{NETWORKS}/{network.name}")
        ini = moses_ini.add_feature(ini, line, [START])
    tune(build, HYBRID, ini, build.plan.tuning.lines_of_hybrid)


def ini_path(build: Build, name: str) -> Path:
    """Path of the tuned ini of a system, PHRASE_BASED or HYBRID."""
    return build.work / DEV / f"{name}.ini"


def read_result(build: Build, name: str) -> TuningResult:
    """Read the result of a system's tuning."""
    return TuningResult(**json.loads((build.work / DEV / f"{name}.json").read_text(encoding="utf-8")))


def tune(build: Build, name: str, start: Ini, lines: int) -> None:
    """Tune system `name` on `lines` lines of the development set, and write its ini with the tuned weights
    and its result. `start`: the ini to tune, with paths relative to DEV. Logs a warning if nothing is
    gained."""
    plan = build.plan.tuning
    moses_ini.write(build.work / DEV / f"{name}.start.ini", start)
    with locks.locked(tuning_folder(build, name), "smt-build"):
        decoder = load_decoder(build, build.work / DEV / f"{name}.start.ini", plan.n_best)
        source, target = (
            sample_lines(BuildTexts(build.work).lines(f"dev.{side}"), lines) for side in ("source", "target")
        )
        tuning = open_tuning(build, name, decoder, source, target)
        reason = loop.run(
            tuning,
            starting_weights(decoder, tuning.names),
            lambda weights: report_progress(
                build, tuning, decode(decoder, weights, source, build.config.workers, "dev.source")
            ),
            loop.make_references([target]),
        )
    best = tuning.iterations[tuning.best()]
    log.info("%s: %s; BLEU %.2f on the development set", name, reason, 100 * best.bleu)
    if warning := tuning.gain_warning():
        log.warning("%s: %s", name, warning)
    bleus = [iteration.bleu for iteration in tuning.iterations]
    result = TuningResult(best.bleu, bleus, len(source), tuning.names, warning)
    files.write_text(build.work / DEV / f"{name}.json", [json.dumps(asdict(result))])
    header = f"# BLEU {100 * result.bleu:.2f} on {result.lines} lines of the development set"
    ini = moses_ini.set_weights(start, whole_weights(decoder.system, tuning.names, best.weights))
    moses_ini.write(ini_path(build, name), ini, header)  # last: it marks the step as finished


def report_progress(
    build: Build, tuning: Tuning, translations: Generator[PhraseTranslation]
) -> Generator[PhraseTranslation]:
    """Yield the translations of an iteration, and report the completed share of the tuning to the build."""
    with closing(translations):
        for number, translation in enumerate(translations, 1):
            yield translation
            done = len(tuning.iterations) + number / tuning.sentences
            build.share = min(1.0, done / tuning.config.iterations)


def sample_lines(lines: Sequence[str], count: int) -> list[str]:
    """Select `count` lines, spaced evenly over a text; all if it has fewer."""
    count = min(count, len(lines))
    return [lines[number * len(lines) // count] for number in range(count)]


def comparison_lines(build: Build, name: str) -> list[str]:
    """The lines of file `name` of the development set on which the systems are compared."""
    return sample_lines(BuildTexts(build.work).lines(name), build.plan.evaluated)


def load_decoder(build: Build, path: Path, n_best: int = 0) -> Decoder:
    """Load the decoder of an ini of the build. `n_best`: length of its lists of distinct texts; 0 for the
    best translation only. Sets up torch if the ini has networks."""
    system = systems.load_ini(moses_ini.read(str(path)), False, beside=True)
    if system.feature_lines:
        device.set_up_device("cpu", 1, "mkl")
    config = DecoderConfig(
        stack=STACK, neural_beam=build.plan.tuning.neural_beam, nbest=n_best, distinct=n_best > 0
    )
    return Decoder(system, config)


def open_tuning(build: Build, name: str, decoder: Decoder, source: list[str], target: list[str]) -> Tuning:
    """Create or resume the tuning of system `name` in its folder. `source`, `target`: the lines to tune on.
    ConfigError if the folder belongs to other lines or settings."""
    plan = build.plan.tuning
    tuning = make_tuning(build, name, pools.column_names(decoder.system.sizes), len(source))
    settings = {
        "model": manifest.digest(decoder.system.ini.path),
        "texts": hashlib.sha256("\n".join(source + target).encode()).hexdigest(),
        "n_best": plan.n_best,
        **search_settings(plan),
    }
    loop.open_folder(tuning.folder, settings, tuning.config, tuning.tuner)
    return tuning


def make_tuning(build: Build, name: str, names: list[str], sentences: int) -> Tuning:
    """Create the tuning of system `name`, without its finished iterations. `names`: of the D weights."""
    plan, seed = build.plan.tuning, build.config.seed
    config = TuneConfig(method=plan.method, iterations=plan.iterations, seed=seed)
    if name == HYBRID:
        config = TuneConfig(method=plan.hybrid_method, iterations=plan.hybrid_iterations, seed=seed)
    folder, method = tuning_folder(build, name), TUNERS[config.method]()
    return Tuning(folder, names, sentences, config, method, build.config.workers)


def tuning_folder(build: Build, name: str) -> Path:
    """Folder in which a system is tuned."""
    return build.work / DEV / f"{name}.tuning"


# ---- evaluation --------------------------------------------------------------------------------------------


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
    """Estimated seconds, on the reference machine, of each translation of the development set and of one
    tuning, by name."""
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
    """Translate the development set with a tuned system."""
    decoder = load_decoder(build, ini_path(build, name))
    lines = comparison_lines(build, "dev.source")
    return map(decoder.lines.text, decoder.translate_all(lines, build.config.workers))


def translate_alone(build: Build) -> list[str]:
    """Translate the development set with the attention model alone."""
    device.set_up_device("cpu", 1, "mkl")
    run = TorchRun.of(build.work / NETWORKS / "attention").for_text(tokenized=True)
    lines = comparison_lines(build, "dev.source")
    return run.translate(lines, BEAM)


def ablation(
    build: Build, name: str, on_tuned: Callable[[], None] = lambda: None
) -> tuple[float, dict[str, float]]:
    """Measure what each part of a system contributes: BLEU (0 to 1) on the n-best lists of its tuning with
    all parts, and BLEU without each part.

    Weights are tuned again by MERT for each measurement, whichever tuner the system was tuned with, so that
    the numbers can be compared. `on_tuned` is called after each tuning.
    """
    result = read_result(build, name)
    system_tuning = make_tuning(build, name, result.names, result.lines)
    system_tuning.load()
    pool, start = system_tuning.pool(), system_tuning.iterations[system_tuning.best()].weights

    def best(*parts: str) -> float:
        without = replace(pool, features=pool.features.copy())
        pools.drop_features(without, parts)
        seeds = [build.config.seed]
        points = tuner.run_seeds(without, Mert(), start, seeds, system_tuning.threads, silent)
        on_tuned()
        without_what = f" without {', '.join(parts)}" if parts else ""
        log.info("%s%s: BLEU %.2f on the lists", name, without_what, 100 * points[0].bleu)
        return points[0].bleu

    heads = pools.to_weights(result.names, start)
    return best(), {part: best(part) for part in parts(build) if part in heads}


def parts(build: Build) -> dict[str, str]:
    """The features whose contribution is measured: name -> description."""
    networks = {feature_name(FEATURES[network.name]): WORDS[network.name] for network in build.plan.networks}
    return networks | PARTS


def feature_name(line: str) -> str:
    """Name of the feature that a line of an ini defines: `CSLM name=CSLM0 ...` -> `CSLM0`"""
    return next(word.removeprefix("name=") for word in line.split() if word.startswith("name="))
