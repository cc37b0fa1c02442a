"""The settings of search and of sampling. Options are made from them before torch loads, so it is not
imported.

Lengths count the units of the model: for a run with subwords these are subwords, although the help of the
settings calls them words.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from nmt.config import settings
from nmt.config.settings import choice, name_in, number, setting
from nmt.errors import ConfigError

# ---- allocation --------------------------------------------------------------------------------------------
# How the beam of a sentence is shared among banks. A bank holds the hypotheses that have met equally many
# units of the constraints; without banks, hypotheses that have met none would crowd out the others.


class Allocation(Protocol):
    """A way of sharing a beam among banks of hypotheses."""

    def per_row(self, width: int) -> int:
        """Continuations of each hypothesis to examine, besides the best and those that meet a unit more."""
        ...

    def sizes(self, width: int, available: Sequence[int]) -> list[int]:
        """Hypotheses that each bank keeps, given how many it has; the last has met all constraints."""
        ...


class DynamicAllocation:
    """Dynamic beam allocation (Post and Vilar 2018, section 3): the size of the beam does not depend on the
    constraints.

    Banks that have hypotheses share the beam equally. Slots that a bank cannot use go to other banks, lower
    ones first. If there are more banks than slots, the lowest bank gets one slot, in which the translation
    continues until a constraint fits, and the highest banks get the rest; a single slot goes to the highest.
    """

    def per_row(self, width: int) -> int:
        return 1

    def sizes(self, width: int, available: Sequence[int]) -> list[int]:
        used = [bank for bank, count in enumerate(available) if count]
        sizes = [0] * len(available)
        if len(used) > width > 1:
            used = [used[0], *used[len(used) - width + 1 :]]
        share, surplus = divmod(width, max(1, len(used)))
        for bank in used:
            sizes[bank] = share
        for bank in (*reversed(range(len(sizes))), *range(len(sizes))):
            room = sizes[bank] + surplus
            sizes[bank] = min(room, available[bank])
            surplus = room - sizes[bank]
        return sizes


class GridAllocation:
    """Grid beam search (Hokamp and Liu 2017): a beam for each bank; work grows with the constraints."""

    def per_row(self, width: int) -> int:
        return width

    def sizes(self, width: int, available: Sequence[int]) -> list[int]:
        return [min(width, count) for count in available]


ALLOCATIONS: dict[str, Allocation] = {"dynamic": DynamicAllocation(), "grid": GridAllocation()}


# ---- penalties ---------------------------------------------------------------------------------------------
# How finished hypotheses of different lengths are compared. n counts the units and the end symbol.


GNMT_ALPHA = 0.6


def by_length(log_prob: float, n: int) -> float:
    """log p / n (van Merriënboer 2018, section 6.4.2)"""
    return log_prob / n


def unnormalized(log_prob: float, n: int) -> float:
    return log_prob


def by_gnmt(log_prob: float, n: int) -> float:
    """log p / ((5 + n) / 6)^0.6  (Wu et al. 2016, eq. 14)"""
    penalty: float = ((5 + n) / 6) ** GNMT_ALPHA
    return log_prob / penalty


NORMALIZE: dict[str, Callable[[float, int], float]] = {
    "length": by_length,
    "none": unnormalized,
    "gnmt": by_gnmt,
}


def length_normalizer(name: str) -> Callable[[float, int], float]:
    """Look up a name in NORMALIZE. ConfigError for an unknown one."""
    if name not in NORMALIZE:
        raise ConfigError(f"normalize: {name!r} is unknown, expected one of {', '.join(NORMALIZE)}")
    return NORMALIZE[name]


# ---- config ------------------------------------------------------------------------------------------------


# Scores (12 MiB) that a batch of live hypotheses may hold, and the bounds of its rows.
SCORES, LEAST_ROWS, MOST_ROWS = 3 << 20, 50, 400
GPU_ROWS, GPU_SCORES = 5120, 1 << 27  # rows that keep a GPU busy; 512 MiB of scores
MOST_BEAM = 10_000
SHRINK, REFILL = "shrink", "refill"  # the beam, when a hypothesis has ended
BEAM_SIZE = 5  # of validations, translations and reports, so that their scores agree


@dataclass
class BeamConfig:
    """Settings of beam search. Cho et al. 2014a and 2014b use a beam of 10. Lengths are in units."""

    beam_size: int = number(BEAM_SIZE, least=1, most=MOST_BEAM, help="hypotheses kept at each word")
    normalize: str = choice(
        *NORMALIZE, help="how lengths are compared: log p / words, log p, or the penalty of GNMT"
    )
    max_length_factor: float = number(3.0, above=0, most=1000, help="at most F words for each source word")
    min_length_factor: float = number(0.0, least=0, most=1000, help="at least F words for each source word")
    max_length: int = number(0, least=0, most=1_000_000, help="at most N words; 0: no such limit")
    min_length: int = number(0, least=0, most=1_000_000, help="at least N words")
    allow_unknown: bool = setting(False, help="let UNK be produced, e.g. to be replaced by a source word")
    no_repeat_ngram: int = number(
        0,
        least=0,
        most=1_000_000,
        help="no sequence of N units (subwords) twice in a translation; 0: no such limit",
    )
    ended: str = choice(
        SHRINK,
        REFILL,
        help="when a hypothesis ends: shrink leaves its place in the beam empty; refill gives it to the next "
        "best one, as the library transformers does, and ends when beam_size have ended and the best one "
        "that goes on scores below all of them",
    )
    allocation: str = name_in(
        ALLOCATIONS,
        help="how required words share the beam: dynamic, one beam for all stages, or grid, a beam for each",
    )
    rows: int = number(0, least=0, help="live hypotheses in a batch; 0: as many as suit the vocabulary")

    def check(self) -> None:
        """ConfigError for a value out of range, and for a minimum length above the maximum."""
        settings.check(self)
        if self.min_length_factor > self.max_length_factor:
            raise ConfigError(
                f"length factors: the minimum {self.min_length_factor:g} is above the maximum "
                f"{self.max_length_factor:g}; lower the one, or raise the other"
            )
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(
                f"lengths: the minimum {self.min_length} is above the maximum {self.max_length}; lower "
                "the one, or raise the other (0: no maximum)"
            )

    def fitted(self, vocab_size: int, on_gpu: bool) -> Self:
        """Settings with `rows` that suit the vocabulary, or a GPU, unless they are set."""
        most, scores = (GPU_ROWS, GPU_SCORES) if on_gpu else (MOST_ROWS, SCORES)
        return replace(self, rows=self.rows or min(most, max(LEAST_ROWS, scores // vocab_size)))

    def longest(self, units: int) -> int:
        """Maximum units of a translation of a source of `units` units; `min_length` wins over the factor."""
        limit = max(1, math.ceil(self.max_length_factor * units))
        if self.max_length:
            limit = min(limit, self.max_length)
        return max(limit, self.min_length)

    def shortest(self, units: int) -> int:
        """Minimum units of a translation of a source of `units` units; `max_length` wins over the factor."""
        least = max(math.ceil(self.min_length_factor * units), self.min_length)
        return min(least, self.max_length) if self.max_length else least


@dataclass
class ConstraintConfig:
    """How to handle constraints that cannot be met."""

    unmet: str = choice(
        "error",
        "warn",
        help="what becomes of a line whose constraints cannot be met: error ends the command, warn "
        "translates it without them",
    )


@dataclass
class SamplingConfig:
    """Settings for drawing translations at random from the model."""

    samples: int = number(1, least=1, most=100_000, help="draws for each sentence")
    temperature: float = number(1.0, least=1e-6, most=1e6, help="draw from p^(1/T)")
    top_k: int = number(0, least=0, help="draw only from the K likeliest words (Fan et al. 2018); 0: all")
    top_p: float = number(
        1.0,
        above=0,
        most=1,
        help="draw only from the fewest words whose p, at this temperature, sums to P: nucleus sampling "
        "(Holtzman et al. 2020); 1: all",
    )
    seed: int = number(1, least=0, help="seed of the random draws")
    max_length_factor: float = number(3.0, above=0, most=1000, help="at most F words for each source word")
    allow_unknown: bool = setting(False, help="let UNK be drawn")
    rows: int = number(100, least=1, help="draws in a batch")

    def check(self) -> None:
        """ConfigError for a value out of range."""
        settings.check(self)


@dataclass
class MBRConfig:
    """How a translation is chosen from n-best lists by minimum Bayes risk."""

    mbr: str = choice(  # the names in GAINS of nmt/search/mbr.py
        "bleu",
        "chrf",
        help="choose the translation that is expected to score best by this metric, if any hypothesis may be "
        "the reference (minimum Bayes risk), instead of the one with the best total",
    )
    mbr_scale: list[float] = number(
        [1.0], least=0, help="with --mbr: p of a hypothesis is exp(A x total), normalized; 1 unless given"
    )

    def list_scales(self, lists: int) -> list[float]:
        """One scale for each list. ConfigError unless there are 1 or `lists` scales."""
        if len(self.mbr_scale) not in (1, lists):
            raise ConfigError(
                f"{len(self.mbr_scale)} values of --mbr-scale, but there is 1 list of totals"
                if lists == 1
                else f"{len(self.mbr_scale)} values of --mbr-scale, expected 1, or {lists}: one for each list"
            )
        return self.mbr_scale * lists if len(self.mbr_scale) == 1 else self.mbr_scale
