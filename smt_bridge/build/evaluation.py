"""Translate the development set with each system of a build, choose one, and measure what each part adds.

The extended features and networks cost time in every search, and more weights fit any development set better.
So by default a larger system is chosen only where it is better beyond chance, by a paired bootstrap (Koehn
2004): first the extended phrase-based system or the plain one, then this one with networks or without.

A part's worth is the BLEU that is lost on the n-best lists of the tuning if the weights are tuned again
without it, cross-validated: weights of one half of the sentences choose the translations of the other.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nmt.analysis.statistics import SAMPLES, resampled_sums
from nmt.compute import device
from nmt.io import files
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from smt_bridge.build import tuning
from smt_bridge.build.config import Build, StepProgress, read_record, write_record
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.networks import DESCRIPTIONS, FEATURES, feature_name
from smt_bridge.build.plan import Rates
from smt_bridge.build.training import DEV, EXTENDED_FEATURES, NETWORKS
from smt_bridge.build.tuning import (
    CHOICE,
    EXTENDED,
    HYBRID,
    PHRASE_BASED,
    PhraseBasedChoice,
    ini_path,
    load_decoder,
    make_tuning,
    phrase_based,
    read_result,
    sample_lines,
)
from smt_bridge.hybrid.side import TextSide
from smt_bridge.tuning import loop
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS, BleuReferences, Stats, bleu
from smt_bridge.tuning.expected_bleu import ExpectedBleu
from smt_bridge.tuning.pool import Pool

log = logging.getLogger(__name__)

FILE = "evaluation.json"
OUTPUTS = "outputs"  # below the folder of the development set
NEURAL = "neural"  # the attention model alone
TUNING = "tuning"  # tuning once more, without a part
BEAM = BeamConfig()  # of the attention model alone, and of the student
PARTS = {"LM0": "count language model", "LexicalReordering0": "lexical reordering"}
EXTENDED_PARTS = {f"{kind}0": words for kind, words in EXTENDED_FEATURES.items()}


@dataclass
class Evaluation:
    """The contents of FILE: cased BLEU of the development set, 0 to 1, on the tokens of the phrase table."""

    chosen: str  # the phrase-based system that the build went on with, or HYBRID
    bleu: dict[str, float]  # of each system on `comparison_lines`
    list_bleu: float  # of the chosen system on the n-best lists of its tuning, cross-validated
    list_bleu_without: dict[str, float] = field(default_factory=dict)  # of it without each part, likewise
    # p-values: of the system with networks against each other system, and of each part
    p_values: dict[str, float] = field(default_factory=dict)
    part_p_values: dict[str, float] = field(default_factory=dict)


def comparison_lines(build: Build, name: str) -> list[str]:
    """The lines of file `name` of the development set on which the systems are compared."""
    return sample_lines(BuildTexts(build.work).lines(name), build.plan.evaluated)


def tune_extended(build: Build) -> None:
    """Tune the extended phrase-based system, compare it with the phrase-based one on the development set, and
    write to CHOICE which of them the build goes on with."""
    tuning.tune_extended(build)
    write_record(build.work / DEV / CHOICE, choose_phrase_based(build))


def choose_phrase_based(build: Build) -> PhraseBasedChoice:
    """Translate the development set by both phrase-based systems, and choose one."""
    references = loop.make_references([comparison_lines(build, "dev.target")])
    rows = {
        name: corpus_statistics(list(translate_tuned(build, name)), references)
        for name in (PHRASE_BASED, EXTENDED)
    }
    p = p_value(rows[EXTENDED], rows[PHRASE_BASED])
    always = build.plan.phrase_features == "all"
    chosen = EXTENDED if always or p <= build.plan.significance else PHRASE_BASED
    choice = PhraseBasedChoice(chosen, {name: corpus_bleu(row) for name, row in rows.items()}, p)
    for name, score in choice.bleu.items():
        log.info("%s: BLEU %.2f", name, 100 * score)
    log.info("p = %.3f of a gain by chance; the build goes on with the %s system", p, chosen)
    return choice


def evaluate(build: Build) -> None:
    """Translate the development set with each system, choose one (see `choose`), and measure its parts (see
    `ablation`). Writes the translations to OUTPUTS and the scores to FILE."""
    seconds = expected_seconds(build)
    # One tuning with all parts, which the sum of all values has, and one without each.
    progress = StepProgress(build, sum(seconds.values()) + seconds[TUNING] * len(parts(build)))
    translations = {
        name: list(progress.over(translate_tuned(build, name), seconds[name] / build.plan.evaluated))
        for name in tuned_systems(build)
    }
    if build.plan.has("attention"):
        translations[NEURAL] = translate_alone(build)
        progress.add(seconds[NEURAL])
    references = loop.make_references([comparison_lines(build, "dev.target")])
    rows = {name: corpus_statistics(lines, references) for name, lines in translations.items()}
    for name, lines in translations.items():
        files.write_text(build.work / DEV / OUTPUTS / name, lines)
        log.info("%s: BLEU %.2f on %s lines", name, 100 * corpus_bleu(rows[name]), f"{len(lines):,}")
    others = [name for name in rows if name != HYBRID] if HYBRID in rows else []
    p_values = {name: p_value(rows[HYBRID], rows[name]) for name in others}
    chosen = choose(phrase_based(build), p_values, build.plan.significance)
    all_parts, without, of_parts = ablation(build, chosen, lambda: progress.add(seconds[TUNING]))
    scores = {name: corpus_bleu(row) for name, row in rows.items()}
    write_record(build.work / FILE, Evaluation(chosen, scores, all_parts, without, p_values, of_parts))


def read_evaluation(build: Build) -> Evaluation:
    return read_record(build.work / FILE, Evaluation)


def raw_translations(build: Build, name: str) -> list[str]:
    """Read the translations of the development set by system `name`, as raw text."""
    target = BuildTexts(build.work).sides(build.config)[1]
    return raw_lines(target, files.read_lines(build.work / DEV / OUTPUTS / name))


def raw_lines(target: TextSide, lines: Iterable[str]) -> list[str]:
    """Convert lines of words, as tables and networks have them, to raw text."""
    return [target.text(line.split(" ")) if line else "" for line in lines]


def tuned_systems(build: Build) -> list[str]:
    """Names of the systems that may be chosen: the phrase-based one, and that with networks."""
    return [phrase_based(build), *([HYBRID] if build.plan.networks else [])]


def corpus_statistics(lines: Sequence[str], references: Sequence[BleuReferences]) -> Stats:
    """BLEU statistics of the translation of each sentence, (S, 9), see bleu.py."""
    rows = [reference.statistics(line.split()) for reference, line in zip(references, lines, strict=True)]
    return np.array(rows, np.float64)


def corpus_bleu(rows: Stats) -> float:
    """BLEU, 0 to 1, of statistics of sentences, (S, 9)."""
    return float(bleu(rows.sum(0)))


def p_value(rows: Stats, others: Stats) -> float:
    """The one-sided p-value of a paired bootstrap (Koehn 2004) that one system is better than another: the
    share of resampled texts on which its BLEU is not higher, with the text itself counted among them so that
    it is never 0. `rows`, `others`: statistics of the same sentences by both systems, (S, 9) each."""
    both = np.hstack([rows, others]).astype(np.int64)
    sums = resampled_sums(both, np.zeros(len(both), np.int64), 1, SAMPLES).reshape(SAMPLES, 2, COLUMNS)
    scores = bleu(sums)
    return float((1 + (scores[:, 0] <= scores[:, 1]).sum()) / (1 + SAMPLES))


def choose(name: str, p_values: Mapping[str, float], significance: float) -> str:
    """Name of the system to keep: the one with networks if its p-value against system `name`, the one
    without, is at most `significance`. `p_values`: of the system with networks against others, by
    their names; none if there are no networks."""
    return HYBRID if name in p_values and p_values[name] <= significance else name


def expected_seconds(build: Build) -> dict[str, float]:
    """Estimated seconds, on the reference machine, of translating the development set with each system, by
    its name, and of one tuning, by the name TUNING."""
    plan, rates = build.plan, Rates()
    words = plan.sizes.dev_words * plan.evaluated / plan.sizes.dev_pairs
    name = phrase_based(build)
    searching = rates.searching + (rates.extended if name == EXTENDED else 0)
    seconds = {name: words * searching, TUNING: rates.tuning * plan.tuning.lines_of_hybrid}
    if plan.networks:
        seconds[HYBRID] = words * (searching + sum(network.search for network in plan.networks))
    if plan.has("attention"):
        seconds[NEURAL] = words * rates.translating
    return seconds


def translate_tuned(build: Build, name: str) -> Iterator[str]:
    """Translate the development set with a tuned system; yields a line for each sentence."""
    decoder = load_decoder(build, ini_path(build, name))
    lines = comparison_lines(build, "dev.source")
    return map(decoder.lines.text, decoder.translate_all(lines, build.config.workers))


def translate_alone(build: Build) -> list[str]:
    """Translate the development set with the attention model alone. Sets up torch: CPU, one thread."""
    return load_attention(build.work).translate(comparison_lines(build, "dev.source"), BEAM)


def load_attention(folder: Path) -> TorchRun:
    """Load the attention model of the build in `folder`, to translate the words of the tables. Sets up torch:
    CPU, one thread."""
    device.set_up_device("cpu", 1, "mkl")
    return TorchRun.of(folder / NETWORKS / "attention").for_text(tokenized=True)


def ablation(
    build: Build, name: str, on_tuned: Callable[[], None]
) -> tuple[float, dict[str, float], dict[str, float]]:
    """Measure what each part of a system contributes. Returns cross-validated BLEU, 0 to 1, on the n-best
    lists of its tuning with all parts; the same without each part, by the name of its feature; and p-values
    of the differences. `on_tuned` is called after each measurement.

    Weights are tuned by expected BLEU for each measurement, whichever tuner the system was tuned with: no
    seed then adds to the differences.
    """
    result = read_result(build, name)
    system_tuning = make_tuning(build, name, result.names, result.lines)
    system_tuning.load()
    pool, start = system_tuning.pool(), system_tuning.iterations[system_tuning.best()].weights

    def rows_without(*dropped: str) -> Stats:
        reduced = replace(pool, features=pool.features.copy())
        pools.drop_features(reduced, dropped)
        rows = cross_validated(reduced)
        on_tuned()
        without_what = f" without {', '.join(dropped)}" if dropped else ""
        log.info("%s%s: BLEU %.2f on the lists", name, without_what, 100 * corpus_bleu(rows))
        return rows

    complete, weights = rows_without(), pools.to_weights(result.names, start)
    without = {part: rows_without(part) for part in parts(build) if part in weights}
    return (
        corpus_bleu(complete),
        {part: corpus_bleu(rows) for part, rows in without.items()},
        {part: p_value(complete, rows) for part, rows in without.items()},
    )


def cross_validated(pool: Pool) -> Stats:
    """Statistics of each sentence's best hypothesis, (S, 9), by weights that are tuned on the other half of
    the sentences. One half has the even numbers, the other the odd ones; a single sentence is both halves."""
    halves = [range(first, pool.sentences, 2) for first in (0, 1)] if pool.sentences > 1 else [range(1)] * 2
    stats = np.empty((pool.sentences, COLUMNS))
    for tuned, held_out in (halves, halves[::-1]):
        part = pool.part(held_out)
        weights = ExpectedBleu().tune(pool.part(tuned), None, 0).weights
        stats[list(held_out)] = part.stats[part.best(weights)]
    return stats


def parts(build: Build) -> dict[str, str]:
    """Map the features whose contribution is measured to their descriptions."""
    networks = {
        feature_name(FEATURES[network.name]): DESCRIPTIONS[network.name] for network in build.plan.networks
    }
    return networks | PARTS | (EXTENDED_PARTS if phrase_based(build) == EXTENDED else {})
