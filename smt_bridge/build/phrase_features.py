"""Features of the extended phrase-based system, which a build tunes beside the phrase-based one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nmt.config.settings import problems
from smt_bridge.config import TrainConfig
from smt_bridge.moses.reordering import trained_type

# auto: the extended system is kept if it is better beyond chance; all: in any case; none: there is none
PhraseFeatures = Literal["auto", "none", "all"]

EXTENDED_SYSTEM = "extended phrase-based system"
EXTENDED_ITERATIONS = (6, 4)  # of its tuning; the shorter one is tried second


@dataclass(frozen=True)
class ExtendedPlan:
    """Settings of the extended features, as in TrainConfig, and of their tuning. The defaults are those that
    docs/search-features.md has measured."""

    osm: int = 5  # order of the operation sequence model; 0: none
    class_lm: int = 200  # word classes of the second language model; 0: none
    # of both phrase-based systems, which share their tables
    reordering_type: str = "hier-mslr-bidirectional-fe"
    iterations: int = EXTENDED_ITERATIONS[0]  # at most; 0: trained, but not tuned, as the build was late


def describe(extended: ExtendedPlan, features: PhraseFeatures) -> str:
    """Describe the extended system of a plan in a line. `features`: the plan's phrase_features."""
    if not extended.iterations:
        return f"{EXTENDED_SYSTEM}: left out, the build was behind its plan"
    condition = "" if features == "all" else "; kept if it is better beyond chance"
    return (
        f"{EXTENDED_SYSTEM}: operation sequences of order {extended.osm}, {extended.class_lm} word classes, "
        f"reordering {extended.reordering_type}{condition}"
    )


def mistakes(extended: ExtendedPlan | None, features: PhraseFeatures, longest: int) -> Iterator[str]:
    """Yield a description of each mistake in the settings of a plan. `features`: the plan's phrase_features;
    `longest`: most iterations of a tuning. ConfigError for a type of reordering model that cannot be
    trained."""
    if extended is None:
        return
    if features == "none":
        yield "extended: expected null, as phrase_features is none"
    yield from problems(TrainConfig("", "", osm=extended.osm, class_lm=extended.class_lm), "extended.")
    if not extended.osm and not extended.class_lm:
        yield "extended: expected osm or class_lm above 0"
    if not 0 <= extended.iterations <= longest:
        yield f"extended.iterations: expected 0 to {longest}"
    trained_type(extended.reordering_type)
