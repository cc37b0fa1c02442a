"""Neural machine translation that works hand in hand with statistical MT.

The names below are loaded when they are first used: `import nmt` alone is quick and does not load torch. It
sets how torch's threads wait, so import it before torch.
"""

from typing import TYPE_CHECKING

from nmt import lazy
from nmt.compute import resources

if TYPE_CHECKING:
    from nmt.runs.constraints import Constraints
    from nmt.runs.language_model import load_language_model
    from nmt.runs.run import Run
    from nmt.training.train import train, train_language_model

__version__ = "1.0.0"

__all__ = ["Constraints", "Run", "__version__", "load_language_model", "train", "train_language_model"]

# The module of each public name.
MODULES = {
    "Constraints": "nmt.runs.constraints",
    "Run": "nmt.runs.run",
    "load_language_model": "nmt.runs.language_model",
    "train": "nmt.training.train",
    "train_language_model": "nmt.training.train",
}

resources.before_torch()

__getattr__, __dir__ = lazy.names(__name__, MODULES)
