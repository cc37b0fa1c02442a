"""Tune the weights of the systems of a build, as smt-tune does: of the phrase-based system, of the extended
one, and of the system with networks."""

import hashlib
import logging
from collections.abc import Container, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from nmt.compute import device
from nmt.io import locks, manifest
from smt_bridge import train_system
from smt_bridge.build.config import Build, read_record, write_record
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.networks import FEATURES, START, feature_name
from smt_bridge.build.plan import TuningPlan
from smt_bridge.build.training import BASE, DEV, MODEL, NETWORKS, extended_features
from smt_bridge.decoder import feature_lines
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.hybrid.folder import Value
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import PATH_KEYS, Ini
from smt_bridge.tuning import loop
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.loop import Tuning, decode, starting_weights, whole_weights
from smt_bridge.tuning.mert import fit_alone
from smt_bridge.tuning.registry import TUNERS, TuneConfig

log = logging.getLogger(__name__)

Line = TypeVar("Line")

PHRASE_BASED, EXTENDED, HYBRID = "phrase-based", "extended", "hybrid"
CHOICE = f"{EXTENDED}.choice.json"  # in the folder of the development set
STACK = 100


@dataclass
class PhraseBasedChoice:
    """Which phrase-based system a build goes on with, as it is stored in CHOICE."""

    chosen: str  # PHRASE_BASED or EXTENDED
    bleu: dict[str, float]  # of each on the lines of the comparison, 0 to 1
    p: float  # p-value of what the extended one gains


@dataclass
class TuningResult:
    """Results of a finished tuning, as they are stored in NAME.json."""

    bleu: float  # of the best decoding, 0 to 1
    iterations: list[float]  # BLEU of each, 0 to 1
    lines: int  # of the development set that it was tuned on
    names: list[str]  # of the D weights, such as LM0_0
    warning: str = ""  # not empty if the tuning gained nothing


def search_settings(plan: TuningPlan) -> dict[str, Value]:
    return {"stack": STACK, "neural_beam": plan.neural_beam}


def tune_phrase_based(build: Build) -> None:
    """Tune the system with neither networks nor extended features."""
    start = moses_ini.read(str(build.work / DEV / BASE))
    tune(build, PHRASE_BASED, start, build.plan.tuning.lines)


def tune_extended(build: Build) -> None:
    """Tune the extended phrase-based system: the phrase-based one with an operation sequence model and a
    language model of word classes, which are trained with its tables. It starts from the phrase-based
    system's weights."""
    ini = extended_ini(build)
    new = {feature.name for feature in extended_features(ini)}
    tune(build, EXTENDED, ini, build.plan.tuning.lines, new)


def extended_ini(build: Build) -> Ini:
    """The tuned ini of the phrase-based system with the extended features of the trained model, whose paths
    become relative to DEV. Their weights are those that smt-train writes, in the scale of the tuned ones."""
    ini = moses_ini.read(str(ini_path(build, PHRASE_BASED)))
    trained = moses_ini.read(str(build.work / MODEL / train_system.INI))
    scale = total_weight(ini, ini) / total_weight(trained, ini)
    for feature in extended_features(trained):
        weights = [scale * weight for weight in trained.weights[feature.name]]
        ini = moses_ini.add_feature(ini, trained.lines[feature.row], weights)
        for key in feature.options.keys() & PATH_KEYS:
            ini = moses_ini.set_path(ini, feature.name, f"../{MODEL}/{feature.options[key]}", key)
    return ini


def total_weight(ini: Ini, named: Ini) -> float:
    """The sum of the absolute weights of an ini, of those features that `named` has too."""
    return sum(abs(weight) for name in named.weights for weight in ini.weights[name])


def tune_hybrid(build: Build) -> None:
    """Tune the system with all networks, starting from the weights of the chosen phrase-based system. Each
    network has weight START in the first decoding only: `fit_alone` replaces it, on the lists of this
    decoding."""
    ini = moses_ini.read(str(ini_path(build, phrase_based(build))))
    for network in build.plan.networks:
        line = FEATURES[network.name].format(path=f"../{NETWORKS}/{network.name}")
        ini = moses_ini.add_feature(ini, line, [START])
    networks = {feature_name(line) for line in FEATURES.values()}
    tune(build, HYBRID, ini, build.plan.tuning.lines_of_hybrid, networks)


def new_columns(names: Sequence[str], features: Container[str]) -> list[int]:
    """Indices of the first weight of each of these features among all weights. `names`: such as LM0_0."""
    owners = pools.feature_names(names)
    return [owners.index(owner) for owner in dict.fromkeys(owners) if owner in features]


def phrase_based(build: Build) -> str:
    """Name of the phrase-based system that the build goes on with, PHRASE_BASED or EXTENDED."""
    choice = read_choice(build)
    return choice.chosen if choice else PHRASE_BASED


def read_choice(build: Build) -> PhraseBasedChoice | None:
    """Read the comparison of the two phrase-based systems; None if there is only one."""
    if build.plan.extended and build.plan.extended.iterations:
        return read_record(build.work / DEV / CHOICE, PhraseBasedChoice)
    return None


def ini_path(build: Build, name: str) -> Path:
    """Path of the tuned ini of a system: PHRASE_BASED, EXTENDED or HYBRID."""
    return build.work / DEV / f"{name}.ini"


def read_result(build: Build, name: str) -> TuningResult:
    return read_record(build.work / DEV / f"{name}.json", TuningResult)


def tune(build: Build, name: str, start: Ini, lines: int, new: Container[str] = ()) -> None:
    """Tune system `name` on `lines` lines of the development set, and write its ini with the tuned weights
    and its result to the folder DEV; resumes an unfinished tuning. `start`: the ini to tune, with paths
    relative to DEV; `new`: names of the features whose weights have not been tuned yet. Logs a warning if
    nothing is gained. Errors as from `open_tuning` and `loop.run`."""
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
            partial(fit_alone, columns=new_columns(tuning.names, new)),
        )
    best = tuning.iterations[tuning.best()]
    log.info("%s: %s; BLEU %.2f on the development set", name, reason, 100 * best.bleu)
    if warning := tuning.gain_warning():
        log.warning("%s: %s", name, warning)
    bleus = [iteration.bleu for iteration in tuning.iterations]
    result = TuningResult(best.bleu, bleus, len(source), tuning.names, warning)
    write_record(build.work / DEV / f"{name}.json", result)
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


def sample_lines(lines: Sequence[Line], count: int) -> list[Line]:
    """Select `count` lines, spaced evenly over a text; all if it has fewer."""
    count = min(count, len(lines))
    return [lines[number * len(lines) // count] for number in range(count)]


def load_decoder(build: Build, path: Path, n_best: int = 0) -> Decoder:
    """Load the decoder of an ini of the build. `n_best`: length of its lists of distinct texts; 0 for the
    best translation only. If the ini has networks, torch is set up for this process: the CPU, with one
    thread."""
    ini = moses_ini.read(str(path))
    system = systems.load_ini(ini, False)
    if feature_lines.needs_torch(ini):
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
    plan, extended = build.plan.tuning, build.plan.extended
    method, iterations = plan.hybrid_method, plan.hybrid_iterations
    if name == PHRASE_BASED:
        method, iterations = plan.method, plan.iterations
    elif extended and name == EXTENDED:
        iterations = extended.iterations
    config = TuneConfig(method=method, iterations=iterations, seed=build.config.seed)
    return Tuning(
        tuning_folder(build, name), names, sentences, config, TUNERS[method](), build.config.workers
    )


def tuning_folder(build: Build, name: str) -> Path:
    return build.work / DEV / f"{name}.tuning"
