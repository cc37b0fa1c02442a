"""Decide what a build does: which networks, how many updates, how many seconds each step takes.

A plan is made before anything runs and kept in `plan.json`, which a resumed build reads. `shorten_late` may
shorten steps that have not begun, once each, and the plan records why. Sizes are updates, iterations and
lines, never minutes.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from nmt.io.progress import duration
from smt_bridge.build.networks import ORDER, Name, recipe

# ---- speeds ------------------------------------------------------------------------------------------------
# All rates are measured on one core of the reference machine (an AMD EPYC, 90 billion floating-point
# operations a second in products of 64 x 512 by 512 x 1,536) with Multi30k: 29,000 pairs, 13 source and 15
# target words a line. The rates of the networks stand beside their settings in networks.py.


REFERENCE_FLOPS = 90e9  # floating-point operations a second
PRODUCT_SHAPE = (64, 512, 1536)  # a layer of a network on a batch
ROUNDS, ROUND_SECONDS = 5, 0.2  # of the measurement; the fastest round counts, slower ones were disturbed
GRADES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # coarse, so that repeated measurements agree


@dataclass(frozen=True)
class Rates:
    """Throughput (units per second) or cost (seconds per unit) of one core of the reference machine."""

    preparing: float = 3000  # pairs cleaned, tokenized and truecased
    aligning: float = 25_000  # target words, both directions
    extracting: float = 20_000  # target words, both tables
    counting: float = 60_000  # words of the count model
    filtering: float = 100_000  # target words of the training text whose table is filtered
    searching: float = 0.002  # seconds a source word: no networks, lists of 100, 39 sentences a second
    translating: float = 0.005  # seconds a source word by the attention model alone, beam 5
    tuning: float = 0.010  # seconds of MERT a sentence and iteration
    packing: float = 100_000  # target words of the training text whose tables are copied and read
    starting: float = 5  # seconds of each process and each step that loads models
    two_threads: float = 1.6  # speed of two threads of the search


def grade_speed(flops: float) -> float:
    """Speed of a machine as a multiple of the reference machine's, rounded to one of GRADES."""
    return min(GRADES, key=lambda grade: abs(flops / REFERENCE_FLOPS / grade - 1))


def measure_speed() -> float:
    """Floating-point operations per second of CPU time, on one thread; takes a second.

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
SIDE_BY_SIDE = 2  # trainings at a time that a plan assumes; --workers must not change the result
SHARES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)  # of a recipe's most updates
ITERATIONS = ((10, 8), (6, 6), (4, 5))  # of the tuning: phrase-based, hybrid
LINES = (2000, 1000, 500, 250, 200)  # of the development set, for tuning
# Tried first: a tuning that is a little shorter costs less BLEU than a network with half the updates.
# The shortest tunings are tried before a network is left out.
LONGER = (ITERATIONS[:2], LINES[:3])
EVALUATED = 2  # times as many lines as tuning reads; lines it did not read show how well weights generalize
SENSIBLE = 4  # times the target words; the CSLM ignores monolingual text that is larger


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
    """Settings of one network's training and the time that it will take."""

    name: Name
    what: str
    preset: str
    sections: Mapping[str, Mapping[str, object]]  # of the configuration, without data
    batch: int  # sentences
    updates: int
    every: int  # updates from one validation, and save, to the next
    epochs: float
    seconds: float
    search: float  # seconds a source word


@dataclass(frozen=True)
class TuningPlan:
    """Tuning of both systems: lines, iterations, method, and the search that makes the n-best lists."""

    lines: int  # of the development set, evenly chosen
    iterations: int = 10  # at most, of the phrase-based system
    hybrid_iterations: int = 6
    n_best: int = 100
    neural_beam: int = 200
    method: str = "mert"
    hybrid_method: str = "kbmira"  # closer to what its lists promise, and as good on new text
    hybrid_lines: int = 0  # for the system with networks; 0: as many as `lines`

    @property
    def lines_of_hybrid(self) -> int:
        """Lines of the development set for tuning the system with networks."""
        return self.hybrid_lines or self.lines


@dataclass(frozen=True)
class Plan:
    """Everything that a build will do, with the estimated seconds of each step."""

    sizes: CorpusSizes
    speed: float  # of this machine, as a multiple of the reference machine's
    matmul: str  # back end of matrix products in training
    networks: list[NetworkPlan]
    tuning: TuningPlan
    monolingual_network: bool  # does the CSLM learn the monolingual text, too?
    seconds: dict[str, float] = field(default_factory=dict)  # of each step
    compared: int = (
        0  # lines of the development set for comparing the systems; 0: EVALUATED times those of tuning
    )
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
    share: float  # of the most updates
    iterations: tuple[int, int]
    lines: int


# ---- deciding ----------------------------------------------------------------------------------------------


def decide(sizes: CorpusSizes, budget: float, speed: float, matmul: str) -> Plan:
    """The first candidate that fits into the budget (in seconds), else the smallest."""
    plan = None
    for trial in plan_candidates(sizes):
        plan = make_plan(sizes, trial, speed, matmul)
        if plan and plan.total() <= budget:
            return plan
    assert plan  # the last trial has no networks
    return plan


def plan_candidates(sizes: CorpusSizes) -> Iterator[PlanCandidate]:
    """All candidates, the most expensive first.

    Slightly shorter tunings come first, then fewer updates, then the shortest tunings; last, networks are
    left out, the most expensive one first.
    """
    available = tuple(name for name in ORDER if recipe(name, sizes.pairs))
    for first, tunings in product(range(len(available)), (LONGER, (ITERATIONS, LINES))):
        for share, iterations, lines in product(SHARES, *tunings):
            yield PlanCandidate(available[first:], share, iterations, lines)
    for iterations, lines in product(ITERATIONS, LINES):
        yield PlanCandidate((), 0, iterations, lines)


def make_plan(sizes: CorpusSizes, trial: PlanCandidate, speed: float, matmul: str) -> Plan | None:
    """The plan of a candidate; None if a network would get fewer updates than make it worth having."""
    sensible = 0 < sizes.monolingual_words <= SENSIBLE * sizes.target_words
    networks = [network_plan(name, sizes, trial.share, speed, sensible) for name in trial.names]
    if None in networks:
        return None
    complete = [network for network in networks if network]
    lines = min(sizes.dev_pairs, trial.lines)
    tuning = TuningPlan(lines, *trial.iterations)
    step_times = estimate_seconds(sizes, complete, tuning, speed, min(sizes.dev_pairs, EVALUATED * lines))
    return Plan(sizes, speed, matmul, complete, tuning, sensible and bool(complete), step_times)


def network_plan(
    name: Name, sizes: CorpusSizes, share: float, speed: float, monolingual: bool
) -> NetworkPlan | None:
    """Plan one network with a share of its recipe's most updates; None if that is too few to be worth
    having."""
    settings = recipe(name, sizes.pairs)
    assert settings
    lines, words = sizes.pairs, sizes.target_words
    if monolingual and name == "cslm":
        lines, words = lines + sizes.monolingual_lines, words + sizes.monolingual_words
    epoch = max(1, -(-lines // settings.batch))
    updates = max(1, round(share * settings.most * epoch))
    if updates < min(settings.least, settings.most * epoch):
        return None
    epochs = updates / epoch
    every = max(1, updates // 20 if name == "attention" else epoch if epochs >= 5 else updates // 10)
    training = settings.batch * updates * (words / max(1, lines) + 1) / (settings.rate * speed)
    validating = updates / every * sizes.dev_words / (4 * settings.rate * speed)
    return NetworkPlan(
        name=name, what=settings.what, preset=settings.preset, sections=settings.sections,
        batch=settings.batch, updates=updates, every=every,
        epochs=round(epochs, 1), seconds=round(training + validating + Rates.starting),
        search=settings.search,
    )  # fmt: skip


def estimate_seconds(
    sizes: CorpusSizes, networks: list[NetworkPlan], tuning: TuningPlan, speed: float, evaluated: int
) -> dict[str, float]:
    """Estimated seconds of each step. `evaluated`: lines on which the systems are compared."""
    rates = Rates()
    words = sizes.target_words
    length = sizes.dev_words / max(1, sizes.dev_pairs)  # words of a line
    dev, hybrid_dev, compared = (
        length * lines for lines in (tuning.lines, tuning.lines_of_hybrid, evaluated)
    )
    plain, start = rates.searching, rates.starting
    neural = plain + sum(network.search for network in networks)
    mert, hybrid_mert = rates.tuning * tuning.lines, rates.tuning * tuning.lines_of_hybrid
    estimates = {
        "corpus": sizes.pairs / rates.preparing + sizes.monolingual_lines / rates.preparing / 2,
        "alignment": words / rates.aligning,
        "model": words / rates.extracting + (words + sizes.monolingual_words) / rates.counting,
        "filter": start + words / rates.filtering,
        "tune": 3 * start + tuning.iterations * (dev * plain / rates.two_threads + mert),
    }
    if networks:
        estimates["networks"] = speed * side_by_side([network.seconds for network in networks])
        estimates["tune-hybrid"] = 2 * start + tuning.hybrid_iterations * (
            hybrid_dev * neural / rates.two_threads + hybrid_mert
        )
    estimates["evaluate"] = (
        2 * start + compared * (plain + neural) / rates.two_threads + (len(networks) + 2) * hybrid_mert
    )
    estimates["package"] = start + words / rates.packing
    return {name: round(value / speed) for name, value in estimates.items()}


def side_by_side(times: list[float], workers: int = SIDE_BY_SIDE) -> float:
    """Seconds for tasks that `workers` processes take up in order."""
    busy = [0.0] * workers
    for task in times:
        busy[busy.index(min(busy))] += task
    return max(busy)


def seconds_with_workers(plan: Plan, workers: int) -> dict[str, float]:
    """Estimated seconds of each step for another number of workers than the plan assumes."""
    if "networks" not in plan.seconds:
        return plan.seconds
    return plan.seconds | {"networks": side_by_side([network.seconds for network in plan.networks], workers)}


# ---- showing and keeping -----------------------------------------------------------------------------------


def plan_lines(plan: Plan, seconds: Mapping[str, float], budget: float) -> Iterator[str]:
    """Describe the plan, line by line, for the terminal."""
    sizes, tuning = plan.sizes, plan.tuning
    yield (
        f"{sizes.pairs:,} pairs, {sizes.source_words:,} and {sizes.target_words:,} words; development set "
        + (f"{sizes.dev_pairs:,} pairs, {tuning.lines:,} of them for the tuning")
    )
    if sizes.monolingual_lines:
        users = "count model and CSLM" if plan.monolingual_network and plan.has("cslm") else "count model"
        yield f"{sizes.monolingual_lines:,} more lines of the target language, for the {users}"
    yield f"this machine: {plan.speed:g} times the speed of the reference machine"
    for network in plan.networks:
        trained = f"{network.updates:,} updates, {network.epochs:g} epochs, {duration(network.seconds)}"
        yield f"{network.name}: {network.what}; {trained}"
    for name in ORDER:
        if not plan.has(name):
            yield f"{name}: left out, {reason_left_out(name, plan)}"
    yield from (decision for decision in plan.decisions.values() if decision)
    yield ""
    for step, value in seconds.items():
        yield f"{step:12} {duration(value)}"
    total = sum(seconds.values())
    over = ""
    if total > budget:
        over = "; more than the budget, and nothing is left to leave out"
        if sum(plan.seconds.values()) <= budget:
            over = (
                f"; more than the budget: a plan counts with {SIDE_BY_SIDE} workers, so that --workers "
                "changes no result; a smaller --budget plans less"
            )
    yield f"{'all steps':12} {duration(total)} of {duration(budget)}{over}"


def reason_left_out(name: Name, plan: Plan) -> str:
    """Explain why a network is left out, and which budget would include it."""
    if not recipe(name, plan.sizes.pairs):
        return f"{plan.sizes.pairs:,} pairs are too few"
    if plan.decisions.get("networks"):
        return "the build was behind its plan"
    minutes = math.ceil(least_budget(name, plan) / 60)
    return f"the budget is too small; --budget {minutes}m or more brings it"


def least_budget(name: Name, plan: Plan) -> float:
    """Seconds of the shortest plan that includes a network. The corpus must be large enough for its
    recipe."""
    tries = (
        make_plan(plan.sizes, trial, plan.speed, plan.matmul)
        for trial in plan_candidates(plan.sizes)
        if name in trial.names
    )
    return min(plan.total() for plan in tries if plan)


# ---- a build that is late ----------------------------------------------------------------------------------
# A build that is behind its plan shortens its later steps so that it ends within its budget. The decision is
# made before a step begins and written into the plan: another build by that plan gives the same system.


SHORTENED_STEPS = ("networks", "tune-hybrid", "evaluate")  # decided before each of these
LATE = 1.05, 15.0  # factor of the time left, and seconds: a smaller excess counts as on time


def is_late(plan: Plan, step: str, left: float, pace: float, workers: int) -> bool:
    """Whether a step and those after it clearly need more than the time left.

    `left`: seconds; `pace`: actual seconds per planned second.
    """
    factor, slack = LATE
    return pace * remaining_seconds(plan, step, workers) > factor * max(0.0, left) + slack


def remaining_seconds(plan: Plan, step: str, workers: int) -> float:
    """Planned seconds of a step and all later ones."""
    seconds = seconds_with_workers(plan, workers)
    names = list(seconds)
    first = next((number for number, name in enumerate(names) if name == step), len(names))
    return sum(seconds[name] for name in names[first:])


def shorten(plan: Plan, step: str, left: float, pace: float, workers: int) -> Plan:
    """The plan with as much of the remaining work as fits into the time left, else with the least."""
    shortest = plan
    for shortest in shorter_plans(plan, step):
        following = next(name for name in shortest.seconds if name not in earlier_steps(plan, step))
        if pace * remaining_seconds(shortest, following, workers) <= left:
            break
    return shortest


def earlier_steps(plan: Plan, step: str) -> list[str]:
    """Names of the steps before this one."""
    names = list(plan.seconds)
    return names[: names.index(step)]


def shorter_plans(plan: Plan, step: str) -> Iterator[Plan]:
    """Plans that need no more time from this step on than `plan`, the longest first."""
    names = tuple(network.name for network in plan.networks)
    most = plan.tuning.hybrid_iterations
    if step == "networks":
        for trial in plan_candidates(plan.sizes):
            if trial.names == names[len(names) - len(trial.names) :] and trial.iterations[1] <= most:
                shorter_plan = make_plan(plan.sizes, trial, plan.speed, plan.matmul)
                if shorter_plan and no_longer(shorter_plan.networks, plan.networks):
                    yield change_plan(plan, step, shorter_plan.networks, trial.iterations[1], trial.lines)
    elif step == "tune-hybrid":
        for (_, iterations), lines in product(ITERATIONS, LINES):
            if iterations <= most:
                yield change_plan(plan, step, plan.networks, iterations, lines)
    else:
        for lines in LINES:
            if lines < plan.evaluated:
                yield estimate_again(replace(plan, compared=lines), step)


def no_longer(networks: list[NetworkPlan], than: list[NetworkPlan]) -> bool:
    """Whether no network gets more updates than in `than`."""
    updates = {network.name: network.updates for network in than}
    return all(network.updates <= updates[network.name] for network in networks)


def change_plan(plan: Plan, step: str, networks: list[NetworkPlan], iterations: int, lines: int) -> Plan:
    """Replace the networks and the tuning of the system with networks; at most `lines` lines for the
    latter."""
    lines = min(lines, plan.tuning.lines_of_hybrid)
    compared = min(plan.evaluated, EVALUATED * lines)
    tuning = replace(plan.tuning, hybrid_iterations=iterations, hybrid_lines=lines)
    uses = plan.monolingual_network and bool(networks)
    return estimate_again(
        replace(plan, networks=networks, tuning=tuning, compared=compared, monolingual_network=uses), step
    )


def estimate_again(plan: Plan, step: str) -> Plan:
    """Estimate a changed plan anew from this step on; earlier steps keep their seconds."""
    now = estimate_seconds(plan.sizes, plan.networks, plan.tuning, plan.speed, plan.evaluated)
    done = earlier_steps(plan, step)
    return replace(
        plan, seconds={name: plan.seconds[name] if name in done else value for name, value in now.items()}
    )


def difference(longer: Plan, shorter_plan: Plan) -> str:
    """Describe the work that `shorter_plan` drops."""
    parts = []
    updates = {network.name: network.updates for network in shorter_plan.networks}
    for network in longer.networks:
        if network.name not in updates:
            parts.append(f"no {network.name}")
        elif updates[network.name] < network.updates:
            parts.append(f"{network.name}: {updates[network.name]:,} updates instead of {network.updates:,}")
    old, new = longer.tuning, shorter_plan.tuning
    if shorter_plan.networks and new.hybrid_iterations < old.hybrid_iterations:
        parts.append(
            f"tuning with networks: {new.hybrid_iterations} iterations instead of {old.hybrid_iterations}"
        )
    if shorter_plan.networks and new.lines_of_hybrid < old.lines_of_hybrid:
        parts.append(
            f"tuning with networks on {new.lines_of_hybrid:,} lines instead of {old.lines_of_hybrid:,}"
        )
    if shorter_plan.evaluated < longer.evaluated:
        parts.append(f"compared on {shorter_plan.evaluated:,} lines instead of {longer.evaluated:,}")
    return ", ".join(parts)


def shorten_late(
    plan: Plan, step: str, spent: float, budget: float, pace: float, workers: int
) -> tuple[Plan, str]:
    """Shorten the plan before a step if the build is late.

    Returns the plan with the decision recorded, and an explanation; the latter is empty if the build is on
    time or nothing is left to shorten. `spent`: seconds so far; `budget`: seconds of the whole build.
    """
    new, why = plan, ""
    if is_late(plan, step, budget - spent, pace, workers):
        shorter_plan = shorten(plan, step, budget - spent, pace, workers)
        if what := difference(plan, shorter_plan):
            new = shorter_plan
            late = spent + pace * remaining_seconds(plan, step, workers)
            why = (
                f"behind its plan before {step}: {duration(late)} in all at this pace instead of "
                f"{duration(budget)}; shortened: {what}"
            )
    return replace(new, decisions=plan.decisions | {step: why}), why
