"""The extended phrase-based system of a build: the phrase-based system with an operation sequence model and a
language model of word classes, which are trained with its tables.

It translates more slowly, and more weights fit any development set better. So by default it is kept only
where it is better beyond chance; networks are then added to it.
"""

import logging

from smt_bridge import train_system
from smt_bridge.build import evaluation, tuning
from smt_bridge.build.config import Build, write_record
from smt_bridge.build.evaluation import corpus_bleu, corpus_statistics
from smt_bridge.build.training import DEV, MODEL, extended_features
from smt_bridge.build.tuning import CHOICE, EXTENDED, PHRASE_BASED, PhraseBasedChoice
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import PATH_KEYS, Ini
from smt_bridge.tuning import loop

log = logging.getLogger(__name__)


def tune_extended(build: Build) -> None:
    """Tune the extended system from the weights of the phrase-based one, compare both on the development
    set, and write to CHOICE which of them the build goes on with."""
    ini = starting_ini(build)
    new = {feature.name for feature in extended_features(ini)}
    tuning.tune(build, EXTENDED, ini, build.plan.tuning.lines, new)
    choice = compare(build)
    write_record(build.work / DEV / CHOICE, choice)


def starting_ini(build: Build) -> Ini:
    """The tuned ini of the phrase-based system with the extended features of the trained model, whose paths
    become relative to DEV. Their weights are those that smt-train writes, in the scale of the tuned ones."""
    ini = moses_ini.read(str(tuning.ini_path(build, PHRASE_BASED)))
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


def compare(build: Build) -> PhraseBasedChoice:
    """Translate the development set by both phrase-based systems, and choose one."""
    references = loop.make_references([evaluation.comparison_lines(build, "dev.target")])
    rows = {
        name: corpus_statistics(list(evaluation.translate_tuned(build, name)), references)
        for name in (PHRASE_BASED, EXTENDED)
    }
    p = evaluation.doubt(rows[EXTENDED], rows[PHRASE_BASED])
    always = build.plan.phrase_features == "all"
    chosen = EXTENDED if always or p <= build.plan.significance else PHRASE_BASED
    choice = PhraseBasedChoice(chosen, {name: corpus_bleu(row) for name, row in rows.items()}, p)
    for name, bleu in choice.whole.items():
        log.info("%s: BLEU %.2f", name, 100 * bleu)
    log.info("p = %.3f of a gain by chance; the build goes on with the %s system", p, chosen)
    return choice
