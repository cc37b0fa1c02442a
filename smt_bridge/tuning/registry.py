"""The tuners by name: what --method of smt-tune and smt-tune-nbest accepts. A plugin adds its own."""

from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pro import Pro
from smt_bridge.tuning.rankers import Logistic, Margin
from smt_bridge.tuning.tuner import Tuner

TUNERS: dict[str, type[Tuner]] = {
    "mert": Mert,
    "kbmira": Kbmira,
    "pro": Pro,
    "margin": Margin,
    "logistic": Logistic,
}
