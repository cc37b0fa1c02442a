"""Tune the weights of the phrase-based system, and of the system with networks, as smt-tune does."""

import hashlib
import json
import logging
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from nmt.compute import device
from nmt.io import files, locks, manifest
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.networks import FEATURES, START
from smt_bridge.build.plan import TuningPlan
from smt_bridge.build.tables import BASE, DEV
from smt_bridge.build.training import NETWORKS
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.hybrid.folder import Value
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini
from smt_bridge.moses.weights import Weights
from smt_bridge.tuning import loop, pool
from smt_bridge.tuning.decoding import decode, starting_weights, whole_weights
from smt_bridge.tuning.loop import Tuning
from smt_bridge.tuning.registry import TUNERS, TuneConfig

log = logging.getLogger(__name__)

PHRASE_BASED, HYBRID = "phrase-based", "hybrid"
STACK = 100


@dataclass
class TuningResult:
    """BLEU, weight names and warnings of a finished tuning."""

    bleu: float  # of the best decoding, 0 to 1
    iterations: list[float]  # BLEU of each
    lines: int
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
        ini = moses_ini.add_feature(
            ini, FEATURES[network.name].format(path=f"../{NETWORKS}/{network.name}"), [START]
        )
    tune(build, HYBRID, ini, build.plan.tuning.lines_of_hybrid)


def ini_path(build: Build, name: str) -> Path:
    """Path of the tuned ini of a system."""
    return build.work / DEV / f"{name}.ini"


def read_result(build: Build, name: str) -> TuningResult:
    """Read the result of a system's tuning."""
    return TuningResult(**json.loads((build.work / DEV / f"{name}.json").read_text(encoding="utf-8")))


def tune(build: Build, name: str, start: Ini, lines: int) -> None:
    """Tune an ini, whose paths are relative to DEV, on `lines` lines, and write it with the tuned weights."""
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
    if warning := tuning.nothing_gained():
        log.warning("%s: %s", name, warning)
    bleus = [iteration.bleu for iteration in tuning.iterations]
    result = TuningResult(best.bleu, bleus, len(source), tuning.names, warning)
    write_result(build, name, start, whole_weights(decoder.system, tuning.names, best.weights), result)


def report_progress(
    build: Build, tuning: Tuning, translations: Generator[PhraseTranslation]
) -> Generator[PhraseTranslation]:
    """Yield the translations of an iteration, and report the completed share of the tuning to the build."""
    with closing(translations):
        for number, translation in enumerate(translations, 1):
            yield translation
            done = len(tuning.iterations) + number / tuning.sentences
            build.share = min(1.0, done / tuning.config.iterations)


def write_result(build: Build, name: str, ini: Ini, weights: Weights, result: TuningResult) -> None:
    """Write the result, then the tuned ini, which marks the step as finished."""
    files.write_text(build.work / DEV / f"{name}.json", [json.dumps(asdict(result))])
    header = f"# BLEU {100 * result.bleu:.2f} on {result.lines} lines of the development set"
    moses_ini.write(ini_path(build, name), moses_ini.set_weights(ini, weights), header)


def sample_lines(lines: Sequence[str], count: int) -> list[str]:
    """Select `count` lines, spaced evenly over a text."""
    count = min(count, len(lines))
    return [lines[number * len(lines) // count] for number in range(count)]


def comparison_lines(build: Build, name: str) -> list[str]:
    """Lines of a text of the development set on which the systems are compared."""
    return sample_lines(BuildTexts(build.work).lines(name), build.plan.evaluated)


def load_decoder(build: Build, path: Path, n_best: int = 0) -> Decoder:
    """Load the decoder of an ini of the build. `n_best`: length of its lists of distinct texts."""
    system = systems.load_ini(moses_ini.read(str(path)), False, beside=True)
    if system.feature_lines:
        device.set_up_device("cpu", 1, "mkl")
    config = DecoderConfig(
        stack=STACK, neural_beam=build.plan.tuning.neural_beam, nbest=n_best, distinct=n_best > 0
    )
    return Decoder(system, config)


def open_tuning(build: Build, name: str, decoder: Decoder, source: list[str], target: list[str]) -> Tuning:
    """Create or resume the tuning of a system in its folder."""
    plan = build.plan.tuning
    tuning = make_tuning(build, name, pool.column_names(decoder.system.sizes), len(source))
    settings = {
        "model": manifest.digest(decoder.system.ini.path),
        "texts": hashlib.sha256("\n".join(source + target).encode()).hexdigest(),
        "n_best": plan.n_best,
        **search_settings(plan),
    }
    loop.open_folder(tuning.folder, settings, tuning.config, tuning.tuner)
    return tuning


def make_tuning(build: Build, name: str, names: list[str], sentences: int) -> Tuning:
    """Tuning of a system, without its finished iterations."""
    plan, seed = build.plan.tuning, build.config.seed
    config = TuneConfig(method=plan.method, iterations=plan.iterations, seed=seed)
    if name == HYBRID:
        config = TuneConfig(method=plan.hybrid_method, iterations=plan.hybrid_iterations, seed=seed)
    return Tuning(
        folder=tuning_folder(build, name),
        names=names,
        sentences=sentences,
        config=config,
        tuner=TUNERS[config.method](),
        threads=build.config.workers,
    )


def tuning_folder(build: Build, name: str) -> Path:
    """Folder in which a system is tuned."""
    return build.work / DEV / f"{name}.tuning"
