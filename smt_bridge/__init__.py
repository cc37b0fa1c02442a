"""Connects neural models with statistical machine translation: neural scores for Moses' tables and n-best
lists, a phrase-based system of its own, and hybrid systems that combine both to translate raw text.

The names below are loaded when they are first used, so `import smt_bridge` is fast and imports neither torch
nor numba. This package imports nmt; of nmt only nmt/papers, which adds features here, imports this package.
"""

from typing import TYPE_CHECKING

from nmt import lazy

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.features.registry import FeatureSettings
    from smt_bridge.hybrid.decoder import load
    from smt_bridge.tables.score import score_table

__all__ = ["Decoder", "FeatureSettings", "load", "score_table"]

# The module that defines each public name.
MODULES = {
    "Decoder": "smt_bridge.decoder.decoder",
    "FeatureSettings": "smt_bridge.features.registry",
    "load": "smt_bridge.hybrid.decoder",
    "score_table": "smt_bridge.tables.score",
}

__getattr__, __dir__ = lazy.names(__name__, MODULES)
