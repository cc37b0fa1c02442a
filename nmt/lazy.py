"""Public names of a package, loaded when they are first used, so that importing the package is quick."""

import importlib
from collections.abc import Callable, Mapping


def names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package, given the module of each of its lazy names."""

    def getattribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    def listed() -> list[str]:
        return sorted({*vars(importlib.import_module(package)), *homes})

    return getattribute, listed
