"""A build that is behind its plan: what its later steps can do without, so that it ends in its budget.

It is decided before a step begins and written into the plan, which says what was done: another build by the
plan that was kept gives the same system.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from nmt.progress import duration
from smt_bridge.build import plan as plans
from smt_bridge.build.plan import EVALUATED, ITERATIONS, LINES, NetworkPlan, Plan, planned, trials

STEPS = ("networks", "tune-hybrid", "evaluate")  # before these it is decided
LATE = 1.05, 15.0  # times the time that there is, and seconds: a build that is no later is on time


def is_late(plan: Plan, step: str, left: float, pace: float, workers: int) -> bool:
    """Is the time that is left too short for a step and those after it, clearly? `left`: seconds; `pace`:
    seconds that a planned second takes."""
    factor, slack = LATE
    return pace * time_from(plan, step, workers) > factor * max(0.0, left) + slack


def time_from(plan: Plan, step: str, workers: int) -> float:
    """Planned seconds of a step and those after it."""
    seconds = plans.with_workers(plan, workers)
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
                    yield changed(plan, step, shorter_plan.networks, trial.iterations[1], trial.lines)
    elif step == "tune-hybrid":
        for (_, iterations), lines in product(ITERATIONS, LINES):
            if iterations <= most:
                yield changed(plan, step, plan.networks, iterations, lines)
    else:
        for lines in LINES:
            if lines < plan.evaluated:
                yield timed(replace(plan, compared=lines), step)


def no_longer(networks: list[NetworkPlan], than: list[NetworkPlan]) -> bool:
    """Does each network get no more updates than planned?"""
    updates = {network.name: network.updates for network in than}
    return all(network.updates <= updates[network.name] for network in networks)


def changed(plan: Plan, step: str, networks: list[NetworkPlan], iterations: int, lines: int) -> Plan:
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
    now = plans.seconds(plan.sizes, plan.networks, plan.tuning, plan.speed, plan.evaluated)
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


def decide(plan: Plan, step: str, spent: float, budget: float, pace: float, workers: int) -> tuple[Plan, str]:
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
