"""Settings of phrase extraction and of pruning, from which the options of its commands are created."""

import math
from dataclasses import dataclass

from nmt.config.settings import choice, number, setting
from nmt.errors import ConfigError
from nmt.io import numbers
from smt_bridge.moses.reordering import DEFAULT, ReorderingType, trained_type

LONGEST_PHRASE = 8  # words: an alignment is a square of 8 x 8 bits
BASE_MEMORY = 250  # MB of Python, numpy and numba themselves
LEAST_MEMORY = (BASE_MEMORY + 100) / 1000  # GB
PHI_SCORES = 4  # of a row: phi and lexical weights of both directions
EPSILON = 0.001  # of the thresholds a+e and a-e, as in Moses' filter-pt


@dataclass
class ExtractConfig:
    """Settings of phrase extraction and scoring."""

    max_length: int = number(7, least=1, most=LONGEST_PHRASE, help="maximum words of a phrase on either side")
    smoothing: str = choice(
        "none", "good-turing", "kneser-ney", help="smoothing of the phrase translation probabilities"
    )
    count_feature: str = choice(
        "none",
        "low",
        "bins",
        help="also score how often a pair was extracted, n times: low adds exp(-1/n), Moses' low count "
        "feature; bins adds six scores, one of them 2.718 and the others 1, for n of 1, 2, 3, 4 to 5, 6 to "
        "10, or more",
    )
    reordering_type: str = setting(
        DEFAULT,
        help="type of the reordering model: [wbe|phrase|hier]-[msd|mslr|monotonicity|leftright]-"
        "[bidirectional|backward|forward]-fe; with -collapseff at the end one weight for each direction, "
        "not for each orientation",
    )
    memory: float = number(
        1.0, least=LEAST_MEMORY, help="memory of each worker in GB; what exceeds it goes to files"
    )
    block: int = number(200_000, least=1, help="words of the corpus extracted at a time")
    buckets: int = number(
        0, least=0, help="parts in which several workers count phrase pairs; 0: as many as memory requires"
    )

    @property
    def reordering(self) -> ReorderingType:
        """The type of the reordering model. ConfigError for one that is not supported."""
        return trained_type(self.reordering_type)


@dataclass
class PruneConfig:
    """Which pairs of a phrase table are dropped; by default none."""

    prune_count: int = number(0, least=0, help="drop pairs that were extracted fewer than N times")
    prune_significance: str = setting(
        "",
        help="drop pairs whose two phrases may share sentence pairs by chance: -ln p of Fisher's exact test "
        "is below X. a+e: all pairs that occur once, both phrases once, and what is less significant; a-e: "
        "only what is less significant",
    )
    prune_entropy: float = number(
        0.0,
        least=0,
        help="drop pairs that shorter pairs translate almost as well: what is lost, p(s,t) ln (p(t|s) / "
        "p(best segmentation)), is below X, such as 3e-6",
    )

    def is_active(self) -> bool:
        """Whether any pair may be dropped."""
        return bool(self.prune_count or self.prune_significance or self.prune_entropy)


def significance_threshold(text: str, pairs: int) -> float:
    """The smallest -ln p that `prune_significance` keeps. `pairs`: sentence pairs of the training text, N;
    alpha is ln N, the -ln p of a pair that occurs once, both phrases once (Johnson et al. 2007). ConfigError
    for anything but a+e, a-e or a number of 0 or more."""
    if text in ("a+e", "a-e"):
        return math.log(pairs) + (EPSILON if text == "a+e" else -EPSILON)
    try:
        value = numbers.real(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise ConfigError(
            f"prune_significance: {numbers.shown(text)}, expected a+e, a-e, or a number of 0 or more"
        )
    return value
