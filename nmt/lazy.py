"""Names that are imported when first used, so that importing a package is fast."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass


def names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Build `__getattr__` and `__dir__` for a package. `homes`: the module of each name that is imported when
    first used. `__getattr__` raises AttributeError for other names."""

    def getattribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    def listed() -> list[str]:
        return sorted({*vars(importlib.import_module(package)), *homes})

    return getattribute, listed


@dataclass(frozen=True)
class LazyPart:
    """An entry of a registry whose module is imported when the entry is first looked up."""

    path: str  # module:name
    precedes: str = ""  # the entry before which it is listed, also in --help; empty: at the end
    help: str = ""  # text added to the help of the setting that names it

    def load(self) -> object:
        """Import the module; returns the object that `path` names."""
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)
