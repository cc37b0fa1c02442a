"""The tuners by name, which --method of smt-tune and smt-tune-nbest accepts, and the settings of the tuning
loop. A plugin adds its own tuners to TUNERS."""

from dataclasses import dataclass

from nmt.config.settings import name_in, number
from smt_bridge.tuning.expected_bleu import ExpectedBleu
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.ranking import Logistic, Margin, Pro
from smt_bridge.tuning.tuner import Tuner

# ---- registry ----------------------------------------------------------------------------------------------


TUNERS: dict[str, type[Tuner]] = {
    "mert": Mert,
    "kbmira": Kbmira,
    "xbleu": ExpectedBleu,
    "pro": Pro,
    "margin": Margin,
    "logistic": Logistic,
}


# ---- settings of the loop ----------------------------------------------------------------------------------
# Settings of the tuning loop; those of a tuner are the fields of its class.


@dataclass
class TuneConfig:
    """Settings of the tuning loop: its tuner, its seed, and when it stops."""

    method: str = name_in(
        TUNERS,
        help="mert: line search; kbmira: batch MIRA; xbleu: expected BLEU; pro: pairwise ranking; margin, "
        "logistic: rankers by a hinge or logistic loss",
    )
    iterations: int = number(10, least=1, help="maximum number of decodings")
    patience: int = number(3, least=1, help="stop after this many decodings without a better BLEU")
    seed: int = number(1, least=0, help="seed of random starting points and orders")
    still: float = number(1e-4, least=0, help="stop when no weight moves further than this")
