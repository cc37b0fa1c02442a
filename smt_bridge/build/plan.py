"""Decide what a build does: which networks, how many updates, how many seconds each step takes.

A plan is made before anything runs and kept in `plan.json`, which a resumed build reads; another build can be
given the file. `budget.shorten_late` may shorten steps that have not begun, once each, and the plan records
why. Work is planned in updates, iterations and lines, never in minutes, so that a plan gives the same system
on a slower machine.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product, takewhile
from pathlib import Path
from typing import Literal

from nmt.config import typed_json
from nmt.config.settings import problems
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.io.progress import duration
from nmt.training.proposal import preset_file
from smt_bridge.build.networks import ORDER, Name, recipe
from smt_bridge.config import TrainConfig
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.extraction.config import ExtractConfig, PruneConfig
from smt_bridge.moses.reordering import trained_type
from smt_bridge.tuning.registry import TuneConfig

# ---- speeds ------------------------------------------------------------------------------------------------
# All rates are measured on one core of the reference machine (an AMD EPYC, 90 billion floating-point
# operations a second in products of 64 x 512 by 512 x 1,536) with Multi30k: 29,000 pairs, 13 source and 15
# target words a line. The rates of the networks are in networks.py, with their settings.


REFERENCE_FLOPS = 90e9  # floating-point operations a second
PRODUCT_SHAPE = (64, 512, 1536)  # a layer of a network on a batch
ROUNDS, ROUND_SECONDS = 5, 0.2  # of the measurement; the fastest round counts, slower ones were disturbed
GRADES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # of speed; coarse, so that repeated measurements agree


@dataclass(frozen=True)
class Rates:
    """Throughput (units per second) or cost (seconds per unit) of one core of the reference machine, and the
    speedup by a second one."""

    preparing: float = 3000  # pairs cleaned, tokenized and truecased
    aligning: float = 25_000  # target words, both directions
    extracting: float = 20_000  # target words, both tables
    counting: float = 60_000  # words of the text that the count model learns
    pruning: float = 17_000  # target words of the training text whose table is pruned
    extending: float = 24_000  # target words: operations and their model, word classes and theirs
    filtering: float = 100_000  # target words of the training text whose table is filtered
    searching: float = 0.002  # seconds per source word: no networks, lists of 100, 39 sentences a second
    extended: float = 0.004  # seconds that the extended features add to the search for each source word
    translating_back: float = 0.0007  # seconds per word: no networks, no lists, stack 30
    translating: float = 0.005  # seconds per source word by the attention model alone, beam 5
    tuning: float = 0.010  # seconds of the tuner per sentence and iteration
    packing: float = 100_000  # target words of the training text whose tables are copied and read
    starting: float = 5  # seconds of each process and each step that loads models
    two_threads: float = 1.6  # speedup of the search by a second thread


def grade_speed(flops: float) -> float:
    """Speed of a machine as a multiple of the reference machine's, rounded to one of GRADES. `flops`: its
    floating-point operations per second, see `measure_speed`."""
    return min(GRADES, key=lambda grade: abs(flops / REFERENCE_FLOPS / grade - 1))


def measure_speed() -> float:
    """Measure the floating-point operations per second of CPU time, on one thread; takes a second.

    CPU time rather than wall-clock time, so that other load on the machine matters little.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows, inner, columns = PRODUCT_SHAPE
    left, right = torch.ones(rows, inner), torch.ones(inner, columns)
    best = 0.0
    for _ in range(ROUNDS):
        start, products = time.process_time(), 0
        while (elapsed := time.process_time() - start) < ROUND_SECONDS:
            left @ right
            products += 1
        best = max(best, 2 * rows * inner * columns * products / elapsed)
    torch.set_num_threads(threads)
    return best


# ---- plan --------------------------------------------------------------------------------------------------


FILE = "plan.json"
PARALLEL_TRAININGS = 2  # that every plan assumes, so that --workers does not change the result
SHARES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)  # of a recipe's most updates
ITERATIONS = ((10, 8), (6, 6), (4, 5))  # of the tuning: phrase-based, hybrid
LINES = (2000, 1000, 500, 250, 200)  # of the development set, for tuning
# The tunings that are tried first, as shorter ones cost less BLEU than half the updates of a network. The
# shortest tunings are tried before a network is left out.
LONGER = (ITERATIONS[:2], LINES[:3])
EXTENDED_ITERATIONS = (6, 4)  # of the tuning of the extended phrase-based system
EXTENDED_SYSTEM = "extended phrase-based system"
# Lines for comparing systems per line of tuning; those not tuned on show how weights generalize.
EVALUATED = 2
PRUNED = 1.25  # prune_entropy times target words: by that a pair counts alike, however large the corpus is
MOST_PRUNED = 10_000_000  # target words; the pairs of more would take over 3 GB of memory to prune
MOST_MONOLINGUAL = 4  # the CSLM ignores monolingual text of more than this many times the target words
MOST_BACK = 4  # monolingual lines that are translated back, per pair of the training text

# auto: the extended system is kept if it is better beyond chance; all: in any case; none: there is none
PhraseFeatures = Literal["auto", "none", "all"]


@dataclass(frozen=True)
class CorpusSizes:
    """Sizes of the texts after cleaning; words are estimated from raw text."""

    pairs: int
    source_words: int
    target_words: int
    dev_pairs: int
    dev_words: int  # of the source side
    monolingual_lines: int = 0
    monolingual_words: int = 0


@dataclass(frozen=True)
class NetworkPlan:
    """Training settings of one network, and the time that it will take."""

    name: Name
    what: str  # a description
    preset: str  # of nmt-train; empty for none
    sections: Mapping[str, Mapping[str, object]]  # of the configuration, without data
    batch: int  # sentences
    updates: int
    every: int  # updates from one validation, and save, to the next
    epochs: float
    seconds: float
    search: float  # seconds that the network adds to the search for each source word


@dataclass(frozen=True)
class TuningPlan:
    """Tuning of both systems: lines, iterations, method, and the search that makes the n-best lists."""

    lines: int  # of the development set, evenly chosen
    iterations: int = 10  # at most, of the phrase-based system
    hybrid_iterations: int = 6
    n_best: int = 100
    neural_beam: int = 200
    # kbmira decodes closer to the BLEU on its lists than mert does. On lines not tuned on, it gains 0.5 BLEU
    # for the phrase-based system of a small corpus, and loses nothing for a larger one and for hybrids.
    method: str = "kbmira"
    hybrid_method: str = "kbmira"
    hybrid_lines: int = 0  # for the system with networks; 0: as many as `lines`

    @property
    def lines_of_hybrid(self) -> int:
        """Lines of the development set for tuning the system with networks."""
        return self.hybrid_lines or self.lines


@dataclass(frozen=True)
class ExtendedPlan:
    """Settings of the features of the extended phrase-based system, as in TrainConfig, and of its tuning. The
    defaults are those that docs/search-features.md and docs/smt.md have measured."""

    osm: int = 5  # order of the operation sequence model; 0: none
    class_lm: int = 200  # word classes of the second language model; 0: none
    # of both phrase-based systems, which share their tables
    reordering_type: str = "hier-mslr-bidirectional-fe"
    count_feature: str = "bins"
    iterations: int = EXTENDED_ITERATIONS[0]  # at most; 0: trained, but not tuned, as the build was late


@dataclass(frozen=True)
class Plan:
    """Everything that a build will do, with the estimated seconds of each step."""

    sizes: CorpusSizes
    speed: float  # of this machine, as a multiple of the reference machine's
    matmul: str  # back end of matrix products in training
    networks: list[NetworkPlan]
    tuning: TuningPlan
    monolingual_network: bool  # whether the CSLM also learns the monolingual text
    seconds: dict[str, float] = field(default_factory=dict)  # of each step
    # lines of the development set for comparing the systems; 0: EVALUATED times those of tuning
    compared: int = 0
    back_translated: int = 0  # monolingual lines that are translated back for the attention model
    significance: float = 0.05  # the largest p-value at which a larger system is kept; 1 keeps it in any case
    phrase_features: PhraseFeatures = "none"  # whether there is an extended phrase-based system
    extended: ExtendedPlan | None = None  # None with `auto`: the budget is too small
    prune_entropy: float = 0.0  # of the phrase table, see PruneConfig; 0: it is not pruned
    # step -> what was shortened before it began, in words; empty where the build was on time
    decisions: dict[str, str] = field(default_factory=dict)

    @property
    def evaluated(self) -> int:
        """Lines of the development set on which the systems are compared."""
        return min(self.sizes.dev_pairs, self.compared or EVALUATED * self.tuning.lines)

    def total(self) -> float:
        """Estimated seconds of all steps."""
        return sum(self.seconds.values())

    def has(self, name: str) -> bool:
        """Whether the plan includes this network."""
        return any(network.name == name for network in self.networks)


@dataclass(frozen=True)
class PlanCandidate:
    """A candidate plan. Candidates are tried in order until one fits into the budget."""

    names: tuple[Name, ...]
    share: float  # of the updates of each network's recipe
    iterations: tuple[int, int]  # of tuning, as in ITERATIONS
    lines: int  # of the development set, for tuning
    extended: ExtendedPlan | None = None


# ---- deciding ----------------------------------------------------------------------------------------------


def decide(
    sizes: CorpusSizes, budget: float, speed: float, matmul: str, features: PhraseFeatures = "none"
) -> Plan:
    """Choose the first candidate that fits into the budget (in seconds), else the last, which is the
    smallest. `speed`, `matmul`: see Plan; `features`: its phrase_features."""
    plans = (make_plan(sizes, trial, speed, matmul) for trial in plan_candidates(sizes, features))
    for plan in filter(None, plans):
        if plan.total() <= budget:
            break
    return replace(plan, phrase_features=features)  # the last candidate, without networks, has a plan


def plan_candidates(sizes: CorpusSizes, features: PhraseFeatures = "none") -> Iterator[PlanCandidate]:
    """Yield all candidates in the order in which they are tried. `features`: phrase_features of Plan; with
    `all` each candidate has the extended phrase-based system, with `auto` only those whose networks get all
    updates and whose tunings are long."""
    without = list(network_candidates(sizes))
    if features != "none":
        extended = without if features == "all" else [*takewhile(is_full, without)]
        for trial, iterations in product(extended, EXTENDED_ITERATIONS):
            yield replace(trial, extended=ExtendedPlan(iterations=iterations))
    if features != "all":
        yield from without


def is_full(trial: PlanCandidate) -> bool:
    """Whether the networks of a candidate get all updates of their recipes, and its tunings are long. The
    first candidate is full."""
    iterations, lines = LONGER
    return trial.share in (0, SHARES[0]) and trial.iterations in iterations and trial.lines in lines


def network_candidates(sizes: CorpusSizes) -> Iterator[PlanCandidate]:
    """Yield the candidates without the extended phrase-based system.

    Slightly shorter tunings come first, then fewer updates, then the shortest tunings; last, networks are
    left out, the most expensive one first.
    """
    available = tuple(name for name in ORDER if recipe(name, training_lines(name, sizes)))
    for first, tunings in product(range(len(available)), (LONGER, (ITERATIONS, LINES))):
        for share, iterations, lines in product(SHARES, *tunings):
            yield PlanCandidate(available[first:], share, iterations, lines)
    for iterations, lines in product(ITERATIONS, LINES):
        yield PlanCandidate((), 0, iterations, lines)


def make_plan(sizes: CorpusSizes, trial: PlanCandidate, speed: float, matmul: str) -> Plan | None:
    """Make the plan of the candidate `trial`; None if a network would get too few updates to be worth
    training. `speed`, `matmul`: see Plan."""
    monolingual = 0 < sizes.monolingual_words <= MOST_MONOLINGUAL * sizes.target_words
    threshold = PRUNED / max(1, sizes.target_words) if sizes.target_words <= MOST_PRUNED else 0.0
    planned = [network_plan(name, sizes, trial.share, speed, monolingual) for name in trial.names]
    networks = [network for network in planned if network]
    if len(networks) < len(planned):
        return None
    tuning = TuningPlan(min(sizes.dev_pairs, trial.lines), *trial.iterations)
    back = back_translated_lines(sizes) if "attention" in trial.names else 0
    plan = Plan(
        sizes, speed, matmul, networks, tuning, monolingual and bool(networks),
        back_translated=back, extended=trial.extended,
        prune_entropy=float(f"{threshold:.2g}"),
    )  # fmt: skip
    return replace(plan, seconds=estimate_seconds(plan))


def back_translated_lines(sizes: CorpusSizes) -> int:
    """Number of monolingual lines that are translated back, if there is an attention model."""
    return min(sizes.monolingual_lines, MOST_BACK * sizes.pairs)


def training_lines(name: Name, sizes: CorpusSizes) -> int:
    """Number of pairs by which a network gets its recipe, for attention with those translated back."""
    return sizes.pairs + (back_translated_lines(sizes) if name == "attention" else 0)


def network_plan(
    name: Name, sizes: CorpusSizes, share: float, speed: float, monolingual: bool
) -> NetworkPlan | None:
    """Plan one network with the share `share` of its recipe's updates; None if these are too few to be worth
    training. The corpus must be large enough for a recipe. `speed`: see Plan; `monolingual`: whether the CSLM
    also learns the monolingual text."""
    lines, words = training_lines(name, sizes), sizes.target_words
    settings = recipe(name, lines)
    assert settings
    if lines > sizes.pairs:
        words += round(sizes.monolingual_words * (lines - sizes.pairs) / sizes.monolingual_lines)
    if monolingual and name == "cslm":
        lines, words = lines + sizes.monolingual_lines, words + sizes.monolingual_words
    epoch = max(1, -(-lines // settings.batch))
    updates = max(1, round(share * settings.most * epoch))
    if updates < settings.least:
        return None
    epochs = updates / epoch
    if name == "attention":
        every = max(1, updates // 20)
    else:
        every = epoch if epochs >= 5 else max(1, updates // 10)
    training = settings.batch * updates * (words / max(1, lines) + 1) / (settings.rate * speed)
    validating = updates / every * sizes.dev_words / (4 * settings.rate * speed)
    return NetworkPlan(
        name=name, what=settings.what, preset=settings.preset, sections=settings.sections,
        batch=settings.batch, updates=updates, every=every,
        epochs=round(epochs, 1), seconds=round(training + validating + Rates.starting),
        search=settings.search,
    )  # fmt: skip


def estimate_seconds(plan: Plan) -> dict[str, float]:
    """Estimate the seconds of each step of a plan on its machine: step -> seconds, in order."""
    sizes, networks, tuning, extended = plan.sizes, plan.networks, plan.tuning, plan.extended
    rates = Rates()
    words = sizes.target_words
    length = sizes.dev_words / max(1, sizes.dev_pairs)  # words of a line
    dev, hybrid_dev, compared = (
        length * lines for lines in (tuning.lines, tuning.lines_of_hybrid, plan.evaluated)
    )
    plain, start = rates.searching, rates.starting
    tuned = extended is not None and extended.iterations > 0
    phrase_based = plain + (rates.extended if tuned else 0)  # of the system that is extended by networks
    neural = phrase_based + sum(network.search for network in networks)
    tuner, hybrid_tuner = rates.tuning * tuning.lines, rates.tuning * tuning.lines_of_hybrid
    estimates = {
        "corpus": sizes.pairs / rates.preparing + sizes.monolingual_lines / rates.preparing / 2,
        "alignment": words / rates.aligning,
        "model": words / rates.extracting + (words + sizes.monolingual_words) / rates.counting,
        "filter": start + words / rates.filtering,
        "tune": 3 * start + tuning.iterations * (dev * plain / rates.two_threads + tuner),
    }
    if plan.prune_entropy:
        estimates["model"] += words / rates.pruning
    if extended:
        estimates["model"] += words / rates.extending
    if extended and tuned:
        estimates["tune-extended"] = (
            5 * start
            + extended.iterations * (dev * phrase_based / rates.two_threads + tuner)
            + compared * (plain + phrase_based) / rates.two_threads
        )
    if plan.back_translated:
        line = sizes.monolingual_words / max(1, sizes.monolingual_lines)  # words of a line
        estimates["back-translate"] = (
            3 * start
            + sizes.source_words * (1 / rates.extracting + 1 / rates.counting)
            + plan.back_translated * line * rates.translating_back / rates.two_threads
        )
    if networks:
        # Their seconds are those of this machine; all estimates are divided by its speed below.
        estimates["networks"] = plan.speed * side_by_side([network.seconds for network in networks])
        estimates["tune-hybrid"] = 2 * start + tuning.hybrid_iterations * (
            hybrid_dev * neural / rates.two_threads + hybrid_tuner
        )
    estimates["evaluate"] = (
        2 * start
        + compared * (phrase_based + neural) / rates.two_threads
        + (len(networks) + (4 if tuned else 2)) * hybrid_tuner
    )
    estimates["package"] = start + words / rates.packing
    return {name: round(value / plan.speed) for name, value in estimates.items()}


def side_by_side(times: list[float], workers: int = PARALLEL_TRAININGS) -> float:
    """Seconds until `workers` processes have finished tasks of `times` seconds, started in order."""
    busy = [0.0] * workers
    for task in times:
        busy[busy.index(min(busy))] += task
    return max(busy)


def seconds_with_workers(plan: Plan, workers: int) -> dict[str, float]:
    """Estimated seconds of each step for another number of workers than the plan assumes."""
    if "networks" not in plan.seconds:
        return plan.seconds
    return plan.seconds | {"networks": side_by_side([network.seconds for network in plan.networks], workers)}


# ---- description -------------------------------------------------------------------------------------------


def plan_lines(plan: Plan, workers: int, budget: float) -> Iterator[str]:
    """Yield a description of the plan, line by line, for the terminal. `workers`: networks trained at a
    time; `budget`: seconds."""
    sizes, tuning, seconds = plan.sizes, plan.tuning, seconds_with_workers(plan, workers)
    yield (
        f"{sizes.pairs:,} pairs, {sizes.source_words:,} and {sizes.target_words:,} words; development set "
        f"{sizes.dev_pairs:,} pairs, {tuning.lines:,} of them for the tuning"
    )
    if sizes.monolingual_lines:
        users = "count model and CSLM" if plan.monolingual_network and plan.has("cslm") else "count model"
        yield f"{sizes.monolingual_lines:,} more lines of the target language, for the {users}"
    if plan.back_translated:
        yield f"{plan.back_translated:,} of these lines are translated back, for the attention model"
    yield f"this machine: {plan.speed:g} times the speed of the reference machine"
    if plan.prune_entropy:
        yield (
            "phrase table: without pairs that shorter ones translate almost as well, as by smt-train "
            f"--prune-entropy {plan.prune_entropy:g}"
        )
    yield from extended_lines(plan)
    for network in plan.networks:
        trained = f"{network.updates:,} updates, {network.epochs:g} epochs, {duration(network.seconds)}"
        yield f"{network.name}: {network.what}; {trained}"
    for name in ORDER:
        if not plan.has(name):
            yield f"{name}: left out, {reason_left_out(name, plan)}"
    yield from (decision for decision in plan.decisions.values() if decision)
    yield ""
    for step, value in seconds.items():
        yield f"{step:13} {duration(value)}"
    total = sum(seconds.values())
    over = ""
    if total > budget:
        over = "; over the budget, and nothing more can be left out"
        if sum(plan.seconds.values()) <= budget:
            over = (
                f"; over the budget, because plans assume {PARALLEL_TRAININGS} workers, so that --workers "
                "does not change the result; for less work give a smaller --budget"
            )
    yield f"{'all steps':13} {duration(total)} of {duration(budget)}{over}"


def extended_lines(plan: Plan) -> Iterator[str]:
    """Yield a line on the extended phrase-based system; none if it is not wanted."""
    extended = plan.extended
    if extended and extended.iterations:
        condition = "" if plan.phrase_features == "all" else "; kept if it is better beyond chance"
        yield (
            f"{EXTENDED_SYSTEM}: operation sequences of order {extended.osm}, {extended.class_lm} word "
            f"classes, reordering {extended.reordering_type}, count feature {extended.count_feature}"
            f"{condition}"
        )
    elif extended:
        yield f"{EXTENDED_SYSTEM}: left out, the build was behind its plan"
    elif plan.phrase_features != "none":
        reason = larger_budget(plan, lambda trial: trial.extended is not None)
        yield f"{EXTENDED_SYSTEM}: left out, {reason}"


def reason_left_out(name: Name, plan: Plan) -> str:
    """Explain why a network is not in the plan, and which budget would include it: the end of a sentence.
    `plan`: a plan without it."""
    if not recipe(name, training_lines(name, plan.sizes)):
        return f"{plan.sizes.pairs:,} pairs are too few"
    if plan.decisions.get("networks"):
        return "the build was behind its plan"
    return larger_budget(plan, lambda trial: name in trial.names)


def larger_budget(plan: Plan, includes: Callable[[PlanCandidate], bool]) -> str:
    """Say which budget would include what a plan lacks: the end of a sentence. `includes`: whether a
    candidate has it; the corpus must be large enough for one that has."""
    candidates = filter(includes, plan_candidates(plan.sizes, plan.phrase_features))
    plans = (make_plan(plan.sizes, candidate, plan.speed, plan.matmul) for candidate in candidates)
    minutes = math.ceil(min(longer.total() for longer in plans if longer) / 60)
    return f"the budget is too small; --budget {minutes}m or more includes it"


# ---- plan file ---------------------------------------------------------------------------------------------


FORMAT = "smt-build plan 1"
SECTIONS = {"model", "lm", "training"}  # of a network's configuration; its data are those of the build
BACK_ENDS = ("mkl", "onednn")  # of matrix products
LONGEST_TUNING = 100  # most iterations: their files are numbered with two digits


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan as JSON, atomically. UserError if that fails."""
    files.write_text(path, [json.dumps({"format": FORMAT, **asdict(plan)}, indent=1)])


def read_plan(path: str | Path) -> Plan:
    """Read a plan. DataError, with the key, for a file that is damaged or not a plan."""
    try:
        plan = typed_json.parse(Plan, "\n".join(files.read_lines(path)), {"format": FORMAT})
        for mistake in mistakes(plan):
            raise ValueError(mistake)
    except (ValueError, ConfigError) as error:
        raise DataError(
            f"{path}: not a plan of smt-build, or damaged ({error}); give the plan.json of a build"
        ) from error
    return plan


def mistakes(plan: Plan) -> Iterator[str]:
    """Yield a description of each value of a plan that is out of range. ConfigError for an unknown preset."""
    sizes, tuning = plan.sizes, plan.tuning
    least = {
        "tuning.lines": (tuning.lines, 1),
        "tuning.hybrid_lines": (tuning.hybrid_lines, 0),
        "tuning.n_best": (tuning.n_best, 1),
        "compared": (plan.compared, 0),
        "back_translated": (plan.back_translated, 0),
        **{f"sizes.{name}": (value, int(name.endswith("pairs"))) for name, value in asdict(sizes).items()},
        **{f"seconds.{name}": (value, 0) for name, value in plan.seconds.items()},
    }
    yield from values_below(least)
    if not 0 < plan.speed <= 1e6:
        yield f"speed: {plan.speed:g} is out of range"
    if not 0 <= plan.significance <= 1:
        yield f"significance: {plan.significance:g} is out of range, expected 0 to 1"
    if plan.matmul not in BACK_ENDS:
        yield f"matmul: expected one of {', '.join(BACK_ENDS)}"
    for name in ("iterations", "hybrid_iterations"):
        if not 1 <= getattr(tuning, name) <= LONGEST_TUNING:
            yield f"tuning.{name}: expected 1 to {LONGEST_TUNING}"
    yield from problems(TuneConfig(method=tuning.method), "tuning.")
    yield from problems(TuneConfig(method=tuning.hybrid_method), "tuning.hybrid_")
    yield from problems(PruneConfig(prune_entropy=plan.prune_entropy), "")
    yield from problems(DecoderConfig(neural_beam=tuning.neural_beam, nbest=tuning.n_best), "tuning.")
    if plan.extended:
        yield from extended_mistakes(plan.extended, plan.phrase_features)
    names = [network.name for network in plan.networks]
    if len({*names}) < len(names):
        yield "networks: a network is listed twice"
    for number, network in enumerate(plan.networks):
        yield from network_mistakes(network, f"networks[{number}]")
    needed = set(estimate_seconds(plan))
    if needed != set(plan.seconds):
        yield f"seconds: expected those of {', '.join(sorted(needed))}"


def extended_mistakes(extended: ExtendedPlan, features: PhraseFeatures) -> Iterator[str]:
    """Yield a description of each mistake in a plan's extended phrase-based system. `features`: the plan's
    phrase_features. ConfigError for a type of reordering model that cannot be trained."""
    if features == "none":
        yield "extended: expected null, as phrase_features is none"
    yield from problems(TrainConfig("", "", osm=extended.osm, class_lm=extended.class_lm), "extended.")
    yield from problems(ExtractConfig(count_feature=extended.count_feature), "extended.")
    if not extended.osm and not extended.class_lm:
        yield "extended: expected osm or class_lm above 0"
    if not 0 <= extended.iterations <= LONGEST_TUNING:
        yield f"extended.iterations: expected 0 to {LONGEST_TUNING}"
    trained_type(extended.reordering_type)


def network_mistakes(network: NetworkPlan, key: str) -> Iterator[str]:
    """Yield a description of each value of a network's plan that is out of range, and of a section that no
    network has. `key`: prefix of messages. ConfigError for an unknown preset."""
    least = {"batch": 1, "updates": 1, "every": 1, "epochs": 0, "seconds": 0, "search": 0}
    yield from values_below(
        {f"{key}.{name}": (getattr(network, name), bound) for name, bound in least.items()}
    )
    if unknown := network.sections.keys() - SECTIONS:
        yield f"{key}.sections: {min(unknown)} is unknown, expected one of {', '.join(sorted(SECTIONS))}"
    if network.preset:
        preset_file(network.preset)


def values_below(least: dict[str, tuple[float, int]]) -> Iterator[str]:
    """Yield a description of each number below its lower bound. `least`: key -> (value, bound)."""
    for key, (value, bound) in least.items():
        if value < bound:
            yield f"{key}: {value:g} is out of range, expected {bound} or more"
