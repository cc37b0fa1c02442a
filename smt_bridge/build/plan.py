"""The plan of a build: which networks, how many updates, how long each step takes.

It is decided before anything runs, and kept (plan_file.py): a resumed build reads it. What comes later may be
shortened (`shorten_late`), before it begins and never again; the plan that is kept says so. All sizes are in
updates, iterations and lines, none in minutes.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from nmt.io.progress import duration
from smt_bridge.build.networks import ORDER, Name, recipe

# ---- speeds ------------------------------------------------------------------------------------------------
# How fast the steps of a build are, and how fast this machine is.
#
# All rates are those of one core of the reference machine (an AMD EPYC, 90 billion floating-point operations
# a second in products of 64 x 512 by 512 x 1,536), measured on Multi30k: 29,000 pairs, 13 source and 15
# target words a line. Those of the networks stand beside their settings in networks.py.


REFERENCE_FLOPS = 90e9  # floating-point operations a second
PRODUCT_SHAPE = (64, 512, 1536)  # a layer of a network on a batch
ROUNDS, ROUND_SECONDS = 5, 0.2  # of the measurement; the fastest round counts, the others were disturbed
GRADES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # coarse, so that two measurements agree


@dataclass(frozen=True)
class Rates:
    """Units a second, and seconds a unit, of one core of the reference machine."""

    preparing: float = 3000  # pairs cleaned, tokenized and truecased
    aligning: float = 25_000  # target words, both directions
    extracting: float = 20_000  # target words, both tables
    counting: float = 60_000  # words of the count model
    filtering: float = 100_000  # target words of the training text whose table is filtered
    searching: float = (
        0.002  # seconds a source word without networks, with a list of 100: 39 sentences a second
    )
    translating: float = 0.005  # seconds a source word by the attention model alone, beam 5
    tuning: float = 0.010  # seconds of MERT a sentence and iteration
    packing: float = 100_000  # target words of the training text whose tables are copied and read
    starting: float = 5  # seconds of each process and each step that loads models
    two_threads: float = 1.6  # speed of two threads of the search


def grade_speed(flops: float) -> float:
    """The speed of a machine as a multiple of the reference machine's, coarsely."""
    return min(GRADES, key=lambda grade: abs(flops / REFERENCE_FLOPS / grade - 1))


def measure_speed() -> float:
    """Floating-point operations of one thread in a second of its own time, so that what else the machine does
    matters little; takes a second."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows, inner, columns = PRODUCT_SHAPE
    left, right = torch.ones(rows, inner), torch.ones(inner, columns)
    best = 0.0
    for _ in range(ROUNDS):
        start, products = time.process_time(), 0
        while (passed := time.process_time() - start) < ROUND_SECONDS:
            left @ right
            products += 1
        best = max(best, 2 * rows * inner * columns * products / passed)
    torch.set_num_threads(threads)
    return best


# ---- plan --------------------------------------------------------------------------------------------------


FILE = "plan.json"
SIDE_BY_SIDE = 2  # trainings that a plan counts with, whatever --workers is: it may not change the result
SHARES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)  # of the most updates
ITERATIONS = ((10, 8), (6, 6), (4, 5))  # of the tuning: phrase-based, hybrid
LINES = (2000, 1000, 500, 250, 200)  # of the development set, for tuning
# Tried first: a tuning that is a little shorter costs less BLEU than a network with half the updates.
# The shortest tunings are tried before a network is left out.
LONGER = (ITERATIONS[:2], LINES[:3])
EVALUATED = 2  # times the lines that are tuned on; the others say how well it does elsewhere
SENSIBLE = 4  # times the target words: of more monolingual text the CSLM reads nothing


@dataclass(frozen=True)
class Sizes:
    """What the texts hold after cleaning; words are estimated from raw text."""

    pairs: int
    source_words: int
    target_words: int
    dev_pairs: int
    dev_words: int  # of the source side
    monolingual_lines: int = 0
    monolingual_words: int = 0


@dataclass(frozen=True)
class NetworkPlan:
    """A network, as it will be trained."""

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
    """How the weights are found."""

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
        """Lines of the development set on which the system with networks is tuned."""
        return self.hybrid_lines or self.lines


@dataclass(frozen=True)
class Plan:
    """What will be done, and how long each step takes."""

    sizes: Sizes
    speed: float  # of this machine, as a multiple of the reference machine's
    matmul: str  # back end of matrix products in training
    networks: list[NetworkPlan]
    tuning: TuningPlan
    monolingual_network: bool  # does the CSLM learn the monolingual text, too?
    seconds: dict[str, float] = field(default_factory=dict)  # of each step
    compared: int = 0  # lines of the development set that the systems are compared on; 0: as many as usual
    # step -> what was shortened before it began, in words; empty where the build was on time
    decisions: dict[str, str] = field(default_factory=dict)

    @property
    def evaluated(self) -> int:
        """Lines of the development set that the systems are compared on."""
        return min(self.sizes.dev_pairs, self.compared or EVALUATED * self.tuning.lines)

    def total(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.values())

    def has(self, name: str) -> bool:
        """Will there be this network?"""
        return any(one.name == name for one in self.networks)


@dataclass(frozen=True)
class Trial:
    """One way to spend the time; the first that fits into the budget is taken."""

    names: tuple[Name, ...]
    share: float  # of the most updates
    iterations: tuple[int, int]
    lines: int


# ---- deciding ----------------------------------------------------------------------------------------------


def decide(sizes: Sizes, budget: float, speed: float, matmul: str) -> Plan:
    """The first plan that fits into the budget, in seconds; else the smallest."""
    plan = None
    for trial in trials(sizes):
        plan = planned(sizes, trial, speed, matmul)
        if plan and plan.total() <= budget:
            return plan
    assert plan  # the last trial has no networks
    return plan


def trials(sizes: Sizes) -> Iterator[Trial]:
    """From the most to the least: tunings that are a little shorter first, then fewer updates, then tunings
    as short as they may be; then networks are left out, the one that costs most first."""
    known = tuple(name for name in ORDER if recipe(name, sizes.pairs))
    for first, tunings in product(range(len(known)), (LONGER, (ITERATIONS, LINES))):
        for share, iterations, lines in product(SHARES, *tunings):
            yield Trial(known[first:], share, iterations, lines)
    for iterations, lines in product(ITERATIONS, LINES):
        yield Trial((), 0, iterations, lines)


def planned(sizes: Sizes, trial: Trial, speed: float, matmul: str) -> Plan | None:
    """The plan of a trial; None where a network would get fewer updates than it is worth."""
    sensible = 0 < sizes.monolingual_words <= SENSIBLE * sizes.target_words
    networks = [network_plan(name, sizes, trial.share, speed, sensible) for name in trial.names]
    if None in networks:
        return None
    found = [one for one in networks if one]
    lines = min(sizes.dev_pairs, trial.lines)
    tuning = TuningPlan(lines, *trial.iterations)
    times = seconds(sizes, found, tuning, speed, min(sizes.dev_pairs, EVALUATED * lines))
    return Plan(sizes, speed, matmul, found, tuning, sensible and bool(found), times)


def network_plan(
    name: Name, sizes: Sizes, share: float, speed: float, monolingual: bool
) -> NetworkPlan | None:
    """A network with this share of the most updates; None where that is too few."""
    made = recipe(name, sizes.pairs)
    assert made
    lines, words = sizes.pairs, sizes.target_words
    if monolingual and name == "cslm":
        lines, words = lines + sizes.monolingual_lines, words + sizes.monolingual_words
    epoch = max(1, -(-lines // made.batch))
    updates = max(1, round(share * made.most * epoch))
    if updates < min(made.least, made.most * epoch):
        return None
    epochs = updates / epoch
    every = max(1, updates // 20 if name == "attention" else epoch if epochs >= 5 else updates // 10)
    training = made.batch * updates * (words / max(1, lines) + 1) / (made.rate * speed)
    validating = updates / every * sizes.dev_words / (4 * made.rate * speed)
    return NetworkPlan(
        name=name, what=made.what, preset=made.preset, sections=made.sections, batch=made.batch,
        updates=updates, every=every,
        epochs=round(epochs, 1), seconds=round(training + validating + Rates.starting),
        search=made.search,
    )  # fmt: skip


def seconds(
    sizes: Sizes, networks: list[NetworkPlan], tuning: TuningPlan, speed: float, evaluated: int
) -> dict[str, float]:
    """The estimate for each step. `evaluated`: lines that the systems are compared on."""
    rates = Rates()
    words = sizes.target_words
    length = sizes.dev_words / max(1, sizes.dev_pairs)  # words of a line
    dev, hybrid_dev, compared = (
        length * lines for lines in (tuning.lines, tuning.lines_of_hybrid, evaluated)
    )
    plain, start = rates.searching, rates.starting
    neural = plain + sum(one.search for one in networks)
    mert, hybrid_mert = rates.tuning * tuning.lines, rates.tuning * tuning.lines_of_hybrid
    found = {
        "corpus": sizes.pairs / rates.preparing + sizes.monolingual_lines / rates.preparing / 2,
        "alignment": words / rates.aligning,
        "model": words / rates.extracting + (words + sizes.monolingual_words) / rates.counting,
        "filter": start + words / rates.filtering,
        "tune": 3 * start + tuning.iterations * (dev * plain / rates.two_threads + mert),
    }
    if networks:
        found["networks"] = speed * side_by_side([one.seconds for one in networks])
        found["tune-hybrid"] = 2 * start + tuning.hybrid_iterations * (
            hybrid_dev * neural / rates.two_threads + hybrid_mert
        )
    found["evaluate"] = (
        2 * start + compared * (plain + neural) / rates.two_threads + (len(networks) + 2) * hybrid_mert
    )
    found["package"] = start + words / rates.packing
    return {name: round(value / speed) for name, value in found.items()}


def side_by_side(times: list[float], workers: int = SIDE_BY_SIDE) -> float:
    """The time of tasks that are begun in their order by so many workers."""
    busy = [0.0] * workers
    for one in times:
        busy[busy.index(min(busy))] += one
    return max(busy)


def with_workers(plan: Plan, workers: int) -> dict[str, float]:
    """The estimate for each step with another number of workers than a plan counts with."""
    if "networks" not in plan.seconds:
        return plan.seconds
    return plan.seconds | {"networks": side_by_side([one.seconds for one in plan.networks], workers)}


# ---- showing and keeping -----------------------------------------------------------------------------------


def shown(plan: Plan, seconds: Mapping[str, float], budget: float) -> Iterator[str]:
    """The plan as lines for people."""
    sizes, tuning = plan.sizes, plan.tuning
    yield (
        f"{sizes.pairs:,} pairs, {sizes.source_words:,} and {sizes.target_words:,} words; development set "
        + (f"{sizes.dev_pairs:,} pairs, {tuning.lines:,} of them for the tuning")
    )
    if sizes.monolingual_lines:
        users = "count model and CSLM" if plan.monolingual_network and plan.has("cslm") else "count model"
        yield f"{sizes.monolingual_lines:,} more lines of the target language, for the {users}"
    yield f"this machine: {plan.speed:g} times the speed of the reference machine"
    for one in plan.networks:
        trained = f"{one.updates:,} updates, {one.epochs:g} epochs, {duration(one.seconds)}"
        yield f"{one.name}: {one.what}; {trained}"
    for name in ORDER:
        if not plan.has(name):
            yield f"{name}: left out, {missing(name, plan)}"
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


def missing(name: Name, plan: Plan) -> str:
    """Why a network is left out, and which budget would bring it."""
    if not recipe(name, plan.sizes.pairs):
        return f"{plan.sizes.pairs:,} pairs are too few"
    if plan.decisions.get("networks"):
        return "the build was behind its plan"
    minutes = math.ceil(least_budget(name, plan) / 60)
    return f"the budget is too small; --budget {minutes}m or more brings it"


def least_budget(name: Name, plan: Plan) -> float:
    """Seconds of the shortest plan with a network, which has a recipe."""
    tries = (
        planned(plan.sizes, trial, plan.speed, plan.matmul)
        for trial in trials(plan.sizes)
        if name in trial.names
    )
    return min(plan.total() for plan in tries if plan)


# ---- a build that is late ----------------------------------------------------------------------------------
# A build that is behind its plan: what its later steps can do without, so that it ends in its budget.
#
# It is decided before a step begins and written into the plan, which says what was done: another build by the
# plan that was kept gives the same system.


SHORTENED_STEPS = ("networks", "tune-hybrid", "evaluate")  # before these it is decided
LATE = 1.05, 15.0  # times the time that there is, and seconds: a build that is no later is on time


def is_late(plan: Plan, step: str, left: float, pace: float, workers: int) -> bool:
    """Is the time that is left too short for a step and those after it, clearly? `left`: seconds; `pace`:
    seconds that a planned second takes."""
    factor, slack = LATE
    return pace * time_from(plan, step, workers) > factor * max(0.0, left) + slack


def time_from(plan: Plan, step: str, workers: int) -> float:
    """Planned seconds of a step and those after it."""
    seconds = with_workers(plan, workers)
    names = list(seconds)
    first = next((number for number, name in enumerate(names) if name == step), len(names))
    return sum(seconds[name] for name in names[first:])


def shortened(plan: Plan, step: str, left: float, pace: float, workers: int) -> Plan:
    """The plan with as much of the work from a step on as fits into the time that is left, else the least."""
    shortest = plan
    for shortest in shorter(plan, step):
        following = next(name for name in shortest.seconds if name not in earlier_steps(plan, step))
        if pace * time_from(shortest, following, workers) <= left:
            break
    return shortest


def earlier_steps(plan: Plan, step: str) -> list[str]:
    """The steps before this one."""
    names = list(plan.seconds)
    return names[: names.index(step)]


def shorter(plan: Plan, step: str) -> Iterator[Plan]:
    """Plans that do no more in a step and after it, from the most to the least."""
    names = tuple(network.name for network in plan.networks)
    most = plan.tuning.hybrid_iterations
    if step == "networks":
        for trial in trials(plan.sizes):
            if trial.names == names[len(names) - len(trial.names) :] and trial.iterations[1] <= most:
                shorter_plan = planned(plan.sizes, trial, plan.speed, plan.matmul)
                if shorter_plan and no_longer(shorter_plan.networks, plan.networks):
                    yield changed_plan(plan, step, shorter_plan.networks, trial.iterations[1], trial.lines)
    elif step == "tune-hybrid":
        for (_, iterations), lines in product(ITERATIONS, LINES):
            if iterations <= most:
                yield changed_plan(plan, step, plan.networks, iterations, lines)
    else:
        for lines in LINES:
            if lines < plan.evaluated:
                yield timed(replace(plan, compared=lines), step)


def no_longer(networks: list[NetworkPlan], than: list[NetworkPlan]) -> bool:
    """Does each network get no more updates than planned?"""
    updates = {network.name: network.updates for network in than}
    return all(network.updates <= updates[network.name] for network in networks)


def changed_plan(plan: Plan, step: str, networks: list[NetworkPlan], iterations: int, lines: int) -> Plan:
    """A plan with other networks and another tuning of the hybrid, on so many lines at most."""
    lines = min(lines, plan.tuning.lines_of_hybrid)
    compared = min(plan.evaluated, EVALUATED * lines)
    tuning = replace(plan.tuning, hybrid_iterations=iterations, hybrid_lines=lines)
    uses = plan.monolingual_network and bool(networks)
    return timed(
        replace(plan, networks=networks, tuning=tuning, compared=compared, monolingual_network=uses), step
    )


def timed(plan: Plan, step: str) -> Plan:
    """A changed plan with the time that its steps from this one on take."""
    now = seconds(plan.sizes, plan.networks, plan.tuning, plan.speed, plan.evaluated)
    done = earlier_steps(plan, step)
    return replace(
        plan, seconds={name: plan.seconds[name] if name in done else value for name, value in now.items()}
    )


def difference(longer: Plan, shorter_plan: Plan) -> str:
    """The work that was shortened, in words."""
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
    """The plan with what was decided before a step, and why, in words; nothing where the build is on time, or
    nothing is left to shorten. `spent`: seconds so far; `budget`: seconds of the whole build."""
    new, why = plan, ""
    if is_late(plan, step, budget - spent, pace, workers):
        shorter_plan = shortened(plan, step, budget - spent, pace, workers)
        if what := difference(plan, shorter_plan):
            new = shorter_plan
            late = spent + pace * time_from(plan, step, workers)
            why = (
                f"behind its plan before {step}: {duration(late)} in all at this pace instead of "
                f"{duration(budget)}; shortened: {what}"
            )
    return replace(new, decisions=plan.decisions | {step: why}), why
