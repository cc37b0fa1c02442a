"""What carries neural scores to a statistical MT system, and back; a phrase-based system of its own; and
hybrid systems, which translate raw text by both.

The names below are loaded when they are first used: `import smt_bridge` alone is quick and loads neither
torch nor numba. This package imports nmt; nmt never imports this one.
"""

from typing import TYPE_CHECKING

from nmt import lazy

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.features.registry import FeatureSettings
    from smt_bridge.hybrid.decoder import load
    from smt_bridge.tables.score import score_table

__all__ = ["Decoder", "FeatureSettings", "load", "score_table"]

# Where each public name lives.
HOMES = {
    "Decoder": "smt_bridge.decoder.decoder",
    "FeatureSettings": "smt_bridge.features.registry",
    "load": "smt_bridge.hybrid.decoder",
    "score_table": "smt_bridge.tables.score",
}

__getattr__, __dir__ = lazy.names(__name__, HOMES)
