"""Registries of parts by name, and their extension beyond the core: the systems of single papers (nmt/papers)
and the user's own modules.

The user's modules are imported before a command starts: NMT_PLUGINS="my_model,my_feature". Each adds its
classes to the registries (see docs/tutorials/own-model.md): `MODELS["mine"] = MyModel`. Worker processes
inherit the variable, so that they know the same classes. A mistake in such a module is reported in one line;
Python's development mode (PYTHONDEVMODE=1) shows the traceback instead.
"""

import importlib
import inspect
import os
import re
import sys
import traceback
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import Field, fields, is_dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from nmt import papers  # no other module of the core imports nmt/papers
from nmt.errors import ConfigError, UserError
from nmt.lazy import LazyPart

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

# ---- registries --------------------------------------------------------------------------------------------


class Registry(UserDict[str, T]):
    """Parts of one kind by name: those of the core, then those of nmt/papers, whose modules are imported when
    a part is first looked up."""

    def __init__(self, kind: str, core: Mapping[str, T], attributes: Sequence[str] = ()) -> None:
        """`kind`: the key under which `nmt.papers.PARTS` lists parts of this kind; `core`: those of the core;
        `attributes`: what a part of a plugin must have."""
        super().__init__()
        self.kind, self.attributes = kind, attributes
        self.helps: list[str] = []
        entries: list[tuple[str, T | LazyPart]] = list(core.items())
        for name, part in papers.PARTS.get(kind, {}).items():
            names = [name_in_core for name_in_core, _ in entries]
            entries.insert(names.index(part.precedes) if part.precedes else len(names), (name, part))
            self.helps += [part.help] if part.help else []
        self.data = cast(dict[str, T], dict(entries))

    def __getitem__(self, name: str) -> T:
        """Look up a part. ConfigError for one of a plugin that lacks an attribute."""
        part = self.data[name]
        if isinstance(part, LazyPart):
            part = self.data[name] = cast(T, part.load())
        if missing := [attribute for attribute in self.attributes if not hasattr(part, attribute)]:
            owner = part if isinstance(part, type) else type(part)
            raise ConfigError(
                f"{VARIABLE}: {class_location(owner)}: {self.kind} {name!r}: class {owner.__qualname__} has "
                f"no {', '.join(missing)}"
            )
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


# ---- mistakes in them --------------------------------------------------------------------------------------


def is_own(module: str) -> bool:
    """Whether a module belongs to the toolkit."""
    return module.partition(".")[0] in ("nmt", "smt_bridge")


def is_plugin(module: str) -> bool:
    """Whether a module is one of NMT_PLUGINS, or lies in a package that is."""
    return any(module == name or module.startswith(f"{name}.") for name in plugin_names())


def explained(error: Exception) -> Exception:
    """A ConfigError, in one line, for an error that a module of NMT_PLUGINS has raised or caused; the error
    itself if there is no such module, for a `UserError`, and in Python's development mode."""
    if sys.flags.dev_mode or isinstance(error, UserError) or not (location := guilty_location(error)):
        return error
    text = str(error) or "it has to be defined" if isinstance(error, NotImplementedError) else str(error)
    explanation = ConfigError(f"{VARIABLE}: {location}: {type(error).__name__}: {text}")
    return explanation.with_traceback(error.__traceback__)


def guilty_location(error: BaseException) -> str:
    """`file:line: Class.method` of the innermost call of a plugin that an error has passed through; else that
    of the innermost method that a class of a plugin inherits or lacks, with the line of the class; else the
    line of a class that Python's own message names: it lacks what was asked for, or takes other arguments.
    Empty if there is none of them."""
    called = inherited = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        variables = frame.f_locals
        owner = variables["cls"] if isinstance(variables.get("cls"), type) else type(variables.get("self"))
        if is_plugin(str(frame.f_globals.get("__name__"))):
            called = f"{frame.f_code.co_filename}:{line}: {frame.f_code.co_qualname}"
        elif is_plugin(owner.__module__):
            inherited = f"{class_location(owner)}: {owner.__qualname__}.{frame.f_code.co_name}"
    return called or inherited or named_class(error)


def named_class(error: BaseException) -> str:
    """The `file:line` of a plugin's class that the message of an AttributeError or TypeError names, or an
    empty string."""
    if not isinstance(error, AttributeError | TypeError):
        return ""
    words = re.findall(r"\w+", str(error))
    modules = [module for name, module in list(sys.modules.items()) if is_plugin(name)]
    for kind in (value for module in modules for value in vars(module).values()):
        if isinstance(kind, type) and is_plugin(kind.__module__) and kind.__name__ in words:
            return class_location(kind)
    return ""


def class_location(kind: type) -> str:
    """The `file:line` at which a class is defined; its module if the source cannot be read."""
    try:
        return f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
    except (OSError, TypeError):
        return kind.__module__


def wrong_result(method: Callable[..., object], result: str, expected: str) -> ConfigError:
    """The error for a result that a method of a plugin must not return."""
    code = inspect.unwrap(method).__code__
    location = f"{code.co_filename}:{code.co_firstlineno}: {code.co_qualname}"
    return ConfigError(f"{VARIABLE}: {location}: returned {result}, expected {expected}")


def check_class(setting: str, name: str, kind: object, bases: Mapping[type, type]) -> None:
    """Check a class that a plugin has registered as `name`. `setting`: the key that names it, such as
    model.type. `bases`: the base classes that it may have, each with that of its `Config`; their attribute
    `required` lists the methods to define.

    ConfigError, in one line, unless it is a subclass of one of them that defines these methods, and its
    `Config` is a dataclass."""
    if not isinstance(kind, type):
        raise ConfigError(
            f"{VARIABLE}: {setting} {name!r} is registered as {type(kind).__name__}, expected a class"
        )
    if is_own(kind.__module__):
        return
    base = next((base for base in bases if issubclass(kind, base)), None)
    required: Sequence[str] = vars(base)["required"] if base else ()
    missing = [method for method in required if getattr(kind, method) is getattr(base, method)]
    if base is None:
        problem = f"expected a subclass of {' or '.join(base.__name__ for base in bases)}"
    elif missing:
        problem = f"has no method {', '.join(missing)}; see {base.__name__} in {base.__module__}"
    else:
        problem = wrong_config(kind, bases[base])
    if problem:
        raise ConfigError(
            f"{VARIABLE}: {class_location(kind)}: {setting} {name!r}: class {kind.__qualname__}: {problem}"
        )


def wrong_config(kind: type, base: type) -> str:
    """Describe what is wrong with the `Config` of a model's class, which should be a dataclass derived from
    `base`; empty if nothing is."""
    config = getattr(kind, "Config", None)
    if not (isinstance(config, type) and issubclass(config, base)):
        return f"its Config should be a dataclass derived from {base.__name__}"
    if not is_dataclass(config) or ("__dataclass_fields__" not in vars(config) and config.__annotations__):
        return f"its Config, {config.__name__}, lacks @dataclass"
    return ""
