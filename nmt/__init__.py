"""Neural machine translation that works hand in hand with statistical MT.

The names below are loaded when they are first used: `import nmt` alone is quick and does not load torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.language_model import load as load_language_model
    from nmt.run import Run

__version__ = "0.5.0"

__all__ = ["Run", "__version__", "load_language_model"]

# Where each public name lives: module and name there.
HOMES = {
    "Run": ("nmt.run", "Run"),
    "load_language_model": ("nmt.language_model", "load"),
}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = HOMES[name]
    return getattr(importlib.import_module(module), own)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
