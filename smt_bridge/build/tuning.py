"""Weights by decoding the development set again and again, as smt-tune finds them: of the phrase-based
system, and of the system with its networks in the search."""

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
from smt_bridge.build.corpus import Texts
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
from smt_bridge.tuning.decoding import decoded, starts, whole_weights
from smt_bridge.tuning.loop import Tuning
from smt_bridge.tuning.registry import TUNERS, TuneConfig

log = logging.getLogger(__name__)

PHRASE_BASED, HYBRID = "phrase-based", "hybrid"
STACK = 100


@dataclass
class Tuned:
    """What a tuning found."""

    bleu: float  # of the best decoding, 0 to 1
    iterations: list[float]  # BLEU of each
    lines: int
    names: list[str]  # of the single weights
    warning: str = ""  # that it gained nothing


def search(plan: TuningPlan) -> dict[str, Value]:
    """How the system searches, in tuning and afterwards."""
    return {"stack": STACK, "neural_beam": plan.neural_beam}


def tune_phrase_based(build: Build) -> None:
    """The weights of the system without networks."""
    start = moses_ini.read(str(build.work / DEV / BASE))
    tune(build, PHRASE_BASED, start, build.plan.tuning.lines)


def tune_hybrid(build: Build) -> None:
    """The weights of the system with all networks, from those that it has without."""
    ini = moses_ini.read(str(ini_path(build, PHRASE_BASED)))
    for one in build.plan.networks:
        ini = moses_ini.add_feature(ini, FEATURES[one.name].format(path=f"../{NETWORKS}/{one.name}"), [START])
    tune(build, HYBRID, ini, build.plan.tuning.lines_of_hybrid)


def ini_path(build: Build, name: str) -> Path:
    """The tuned ini of a system."""
    return build.work / DEV / f"{name}.ini"


def tuned(build: Build, name: str) -> Tuned:
    """What the tuning of a system found."""
    return Tuned(**json.loads((build.work / DEV / f"{name}.json").read_text(encoding="utf-8")))


def tune(build: Build, name: str, start: Ini, lines: int) -> None:
    """Tune an ini, whose paths are relative to the folder DEV, on so many lines, and write it with its
    weights."""
    plan = build.plan.tuning
    moses_ini.write(build.work / DEV / f"{name}.start.ini", start)
    with locks.locked(folder(build, name), "smt-build"):
        decoder = load(build, build.work / DEV / f"{name}.start.ini", plan.n_best)
        source, target = (
            chosen(Texts(build.work).lines(f"dev.{side}"), lines) for side in ("source", "target")
        )
        tuning = opened(build, name, decoder, source, target)
        reason = loop.run(
            tuning,
            starts(decoder, tuning.names),
            lambda weights: counted(
                build, tuning, decoded(decoder, weights, source, build.config.workers, "dev.source")
            ),
            loop.references_of([target]),
        )
    best = tuning.iterations[tuning.best()]
    log.info("%s: %s; BLEU %.2f on the development set", name, reason, 100 * best.bleu)
    if said := tuning.nothing_gained():
        log.warning("%s: %s", name, said)
    bleus = [one.bleu for one in tuning.iterations]
    found = Tuned(best.bleu, bleus, len(source), tuning.names, said)
    write(build, name, start, whole_weights(decoder.system, tuning.names, best.weights), found)


def counted(
    build: Build, tuning: Tuning, translations: Generator[PhraseTranslation]
) -> Generator[PhraseTranslation]:
    """The translations of an iteration, while the build is told how much of the tuning is done."""
    with closing(translations):
        for number, translation in enumerate(translations, 1):
            yield translation
            done = len(tuning.iterations) + number / tuning.sentences
            build.share = min(1.0, done / tuning.config.iterations)


def write(build: Build, name: str, ini: Ini, weights: Weights, found: Tuned) -> None:
    """The tuned ini, last, and what was found."""
    files.write_text(build.work / DEV / f"{name}.json", [json.dumps(asdict(found))])
    header = f"# BLEU {100 * found.bleu:.2f} on {found.lines} lines of the development set"
    moses_ini.write(ini_path(build, name), moses_ini.set_weights(ini, weights), header)


def chosen(lines: Sequence[str], count: int) -> list[str]:
    """So many lines, evenly from all of a text."""
    count = min(count, len(lines))
    return [lines[number * len(lines) // count] for number in range(count)]


def compared(build: Build, name: str) -> list[str]:
    """The lines of a text of the development set on which systems are compared."""
    return chosen(Texts(build.work).lines(name), build.plan.evaluated)


def load(build: Build, path: Path, n_best: int = 0) -> Decoder:
    """The decoder of an ini of the build. `n_best`: the length of lists of different texts."""
    system = systems.load_ini(moses_ini.read(str(path)), False, beside=True)
    if system.feature_lines:
        device.set_up_device("cpu", 1, "mkl")
    config = DecoderConfig(
        stack=STACK, neural_beam=build.plan.tuning.neural_beam, nbest=n_best, distinct=n_best > 0
    )
    return Decoder(system, config)


def opened(build: Build, name: str, decoder: Decoder, source: list[str], target: list[str]) -> Tuning:
    """The folder of a tuning, new or resumed."""
    plan = build.plan.tuning
    tuning = held(build, name, pool.columns(decoder.system.sizes), len(source))
    settings = {
        "model": manifest.digest(decoder.system.ini.path),
        "texts": hashlib.sha256("\n".join(source + target).encode()).hexdigest(),
        "n_best": plan.n_best,
        **search(plan),
    }
    loop.open_folder(tuning.folder, settings, tuning.config, tuning.tuner)
    return tuning


def held(build: Build, name: str, names: list[str], sentences: int) -> Tuning:
    """The tuning of a system that its folder holds, or will hold."""
    plan, seed = build.plan.tuning, build.config.seed
    config = TuneConfig(method=plan.method, iterations=plan.iterations, seed=seed)
    if name == HYBRID:
        config = TuneConfig(method=plan.hybrid_method, iterations=plan.hybrid_iterations, seed=seed)
    return Tuning(
        folder=folder(build, name),
        names=names,
        sentences=sentences,
        config=config,
        tuner=TUNERS[config.method](),
        threads=build.config.workers,
    )


def folder(build: Build, name: str) -> Path:
    """Where a system is tuned."""
    return build.work / DEV / f"{name}.tuning"
