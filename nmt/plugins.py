"""Registries of parts by name, and their extension beyond the core: the systems of single papers (nmt/papers)
and the user's own modules.

The user's modules are imported before a command starts: NMT_PLUGINS="my_model,my_feature". Each adds its
classes to the registries (see CONTRIBUTING.md): `MODELS["mine"] = MyModel`. Worker processes inherit the
variable, so that they know the same classes.
"""

import importlib
import os
import traceback
from collections import UserDict
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import Field, fields
from typing import TYPE_CHECKING, TypeVar, cast

from nmt import papers  # no other module of the core imports nmt/papers
from nmt.errors import ConfigError
from nmt.lazy import LazyPart

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

# ---- registries --------------------------------------------------------------------------------------------


class Registry(UserDict[str, T]):
    """Parts of one kind by name: those of the core, then those of nmt/papers, whose modules are imported when
    a part is first looked up."""

    def __init__(self, kind: str, core: Mapping[str, T]) -> None:
        """`kind`: the key under which `nmt.papers.PARTS` lists parts of this kind; `core`: those of the
        core."""
        super().__init__()
        self.helps: list[str] = []
        entries: list[tuple[str, T | LazyPart]] = list(core.items())
        for name, part in papers.PARTS.get(kind, {}).items():
            names = [name_in_core for name_in_core, _ in entries]
            entries.insert(names.index(part.precedes) if part.precedes else len(names), (name, part))
            self.helps += [part.help] if part.help else []
        self.data = cast(dict[str, T], dict(entries))

    def __getitem__(self, name: str) -> T:
        part = self.data[name]
        if isinstance(part, LazyPart):
            part = self.data[name] = cast(T, part.load())
        return part

    def explain(self, text: str) -> str:
        """Append to `text`, the help of a setting whose values are these parts, what the parts of nmt/papers
        add to it."""
        return "; ".join([text, *self.helps])


def with_settings(kind: str) -> Callable[[type[T]], type[T]]:
    """Make a decorator, to be applied below @dataclass, that adds to a class the fields that nmt/papers
    defines for this kind of settings."""

    def extend(settings: type[T]) -> type[T]:
        annotations = dict(settings.__annotations__)
        for part in papers.PARTS.get(kind, {}).values():
            names = list(annotations)
            index = names.index(part.precedes) if part.precedes else len(names)
            more: dict[str, Field[object]] = {
                item.name: item for item in fields(cast("type[DataclassInstance]", part.load()))
            }
            for name, item in more.items():
                setattr(settings, name, copy(item))
            types = {name: item.type for name, item in more.items()}
            head, tail = names[:index], names[index:]
            annotations = {name: (annotations | types)[name] for name in (*head, *types, *tail)}
        settings.__annotations__ = annotations
        return settings

    return extend


# ---- the user's own modules --------------------------------------------------------------------------------

VARIABLE = "NMT_PLUGINS"


def plugin_names() -> list[str]:
    """Names of the modules in NMT_PLUGINS, which are separated by commas."""
    return [name for part in os.environ.get(VARIABLE, "").split(",") if (name := part.strip())]


def load() -> None:
    """Import the modules of NMT_PLUGINS. ConfigError for one that is missing, raises an error or ends the
    process."""
    for name in plugin_names():
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]:
                why = f"{name}: {error}; is its folder in PYTHONPATH?"
            else:
                why = f"{error_location(error)}: {type(error).__name__}: {error}; fix {name}, or leave it out"
            raise ConfigError(f"{VARIABLE}: {why}") from error


def error_location(error: BaseException) -> str:
    """The `file:line` at which a module raised an error."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"
