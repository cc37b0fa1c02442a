"""Read and write `plan.json`, the plan of a build; another build can be given the file."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from nmt.config import typed_json
from nmt.config.settings import problems
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.training.config_file import preset_file
from smt_bridge.build import plan as plans
from smt_bridge.build.plan import NetworkPlan, Plan
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.tuning.registry import TuneConfig

FORMAT = "smt-build plan 1"
SECTIONS = {"model", "lm", "training"}  # of a network's configuration; its data are those of the build
BACK_ENDS = ("mkl", "onednn")  # of matrix products
LONGEST_TUNING = 100  # iterations: their files have numbers of two digits


def lines(plan: Plan) -> list[str]:
    """The lines of the file."""
    return json.dumps({"format": FORMAT, **asdict(plan)}, indent=1).split("\n")


def write(path: Path, plan: Plan) -> None:
    """Write a plan as JSON."""
    files.write_text(path, lines(plan))


def read(path: str | Path) -> Plan:
    """Read a plan. DataError, with the key, for a file that is damaged or not a plan."""
    try:
        plan = typed_json.parse(Plan, "\n".join(files.read_lines(path)), {"format": FORMAT})
        for mistake in mistakes(plan):
            raise ValueError(mistake)
    except (ValueError, ConfigError) as error:
        raise DataError(
            f"{path}: is no plan of smt-build, or damaged ({error}); give the plan.json that a build has kept"
        ) from error
    return plan


def mistakes(plan: Plan) -> Iterator[str]:
    """Describe values of a plan that are out of range."""
    sizes, tuning = plan.sizes, plan.tuning
    least = {
        "sizes.pairs": (sizes.pairs, 1),
        "sizes.dev_pairs": (sizes.dev_pairs, 1),
        "tuning.lines": (tuning.lines, 1),
        "tuning.hybrid_lines": (tuning.hybrid_lines, 0),
        "tuning.n_best": (tuning.n_best, 1),
        "compared": (plan.compared, 0),
        **{f"sizes.{name}": (value, 0) for name, value in asdict(sizes).items() if name.endswith("words")},
        **{f"seconds.{name}": (value, 0) for name, value in plan.seconds.items()},
    }
    yield from values_below(least)
    if not 0 < plan.speed <= 1e6:
        yield f"speed: {plan.speed:g} is out of range"
    if plan.matmul not in BACK_ENDS:
        yield f"matmul: expected one of {', '.join(BACK_ENDS)}"
    for name in ("iterations", "hybrid_iterations"):
        if not 1 <= getattr(tuning, name) <= LONGEST_TUNING:
            yield f"tuning.{name}: expected 1 to {LONGEST_TUNING}"
    yield from problems(TuneConfig(method=tuning.method), "tuning.")
    yield from problems(DecoderConfig(neural_beam=tuning.neural_beam, nbest=tuning.n_best), "tuning.")
    names = [network.name for network in plan.networks]
    if len({*names}) < len(names):
        yield "networks: one is there twice"
    for number, network in enumerate(plan.networks):
        yield from network_mistakes(network, f"networks[{number}]")
    if (needed := steps_needed(plan)) != set(plan.seconds):
        yield f"seconds: expected those of {', '.join(sorted(needed))}"


def steps_needed(plan: Plan) -> set[str]:
    """Names of the steps of a plan with these networks."""
    return set(plans.estimate_seconds(plan.sizes, plan.networks, plan.tuning, plan.speed, plan.evaluated))


def network_mistakes(network: NetworkPlan, key: str) -> Iterator[str]:
    """Describe values of a network's plan that are out of range; `key` is its prefix in messages."""
    least = {"batch": 1, "updates": 1, "every": 1, "epochs": 0, "seconds": 0, "search": 0}
    yield from values_below(
        {f"{key}.{name}": (getattr(network, name), bound) for name, bound in least.items()}
    )
    if unknown := network.sections.keys() - SECTIONS:
        yield f"{key}.sections: {min(unknown)} is none of {', '.join(sorted(SECTIONS))}"
    if network.preset:
        preset_file(network.preset)


def values_below(least: dict[str, tuple[float, int]]) -> Iterator[str]:
    """Describe numbers below their lower bounds: key -> (value, bound)."""
    for key, (value, bound) in least.items():
        if value < bound:
            yield f"{key}: {value:g} is out of range, expected {bound} or more"
