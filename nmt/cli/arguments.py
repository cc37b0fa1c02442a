"""Types of arguments: numbers with their range, files that are read, files that are written; and the check
that keeps the two apart."""

import argparse
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nmt.config import settings
from nmt.errors import ConfigError, DataError
from nmt.io import manifest, numbers
from nmt.runs import directory as run_directory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Container = argparse.ArgumentParser | argparse._ArgumentGroup

T = TypeVar("T")
Config = TypeVar("Config", bound="DataclassInstance")
Number = TypeVar("Number", int, float)

# ---- numbers -----------------------------------------------------------------------------------------------


def integer(least: int | None = None, most: int | None = None) -> Callable[[str], int]:
    """An argument type: a whole number within bounds."""
    return in_range(numbers.integer, settings.Range(least, most))


def real(
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Callable[[str], float]:
    """An argument type: a finite number within bounds."""
    return in_range(numbers.real, settings.Range(least, most, above, below))


def in_range(parse: Callable[[str], Number], allowed: settings.Range) -> Callable[[str], Number]:
    """An argument type: what `parse` makes of a text, within bounds."""

    def convert(text: str) -> Number:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}, expected {allowed}") from error
        if value not in allowed:
            raise argparse.ArgumentTypeError(
                f"{settings.in_digits(value)} is out of range, expected {allowed}"
            )
        return value

    return convert


positive = integer(1)


def checkpoint(text: str) -> str:
    """An argument type: best, last, or the number of an update."""
    if text not in ("best", "last"):
        try:
            return str(numbers.count(text))
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"{error}, expected best, last or the number of an update"
            ) from error
    return text


# ---- settings ----------------------------------------------------------------------------------------------


def add_setting(
    parser: "Container", config: "type[DataclassInstance]", name: str, *flags: str, **given: Any
) -> None:
    """An option for a field of a configuration's dataclass: `--name`, with the default, type, range and help
    text of the field. `given`: what argparse is to have instead."""
    item = next(item for item in fields(config) if item.name == name)
    allowed = item.metadata.get(settings.ALLOWED)
    default = item.default if item.default_factory is MISSING else item.default_factory()
    made: dict[str, Any] = {
        "default": default,
        "help": item.metadata.get(settings.HELP, "").replace("%", "%%"),
    }
    if isinstance(allowed, tuple | Mapping):
        made["choices"] = tuple(allowed)
    elif isinstance(default, bool):
        made["action"] = argparse.BooleanOptionalAction if default else "store_true"
    elif allowed is None and isinstance(default, str):
        made["type"] = str
    else:
        whole = "float" not in str(item.type)
        bounds = allowed or settings.Range()
        made["type"] = in_range(numbers.integer, bounds) if whole else in_range(numbers.real, bounds)
        made["metavar"] = "N" if whole else "X"
    parser.add_argument(f"--{name.replace('_', '-')}", *flags, dest=name, **made | given)


def parse_settings(config: type[Config], found: argparse.Namespace, **given: object) -> Config:
    """A configuration from the options that have the names of its fields, and from `given`."""
    named = {item.name: getattr(found, item.name) for item in fields(config) if hasattr(found, item.name)}
    return config(**named | given)


# ---- files -------------------------------------------------------------------------------------------------


class InputPath(str):
    """The type of an argument that names a file or folder to read; the folder of nmt-init stands for the run
    in it."""

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        return super().__new__(cls, cls.resolve(path))

    @staticmethod
    def resolve(path: str) -> str:
        """The file or folder that is read where an argument says `path`."""
        run = run_directory.resolve(path)
        return path if run == Path(path) else str(run)


class ConfigFile(InputPath):
    """The type of an argument that names a configuration; the folder of nmt-init stands for the one in it."""

    __slots__ = ()

    @staticmethod
    def resolve(path: str) -> str:
        """The configuration of a folder that is no run."""
        config = os.path.join(path, run_directory.CONFIG)
        return config if os.path.isfile(config) and not run_directory.exists(Path(path)) else path


class OutputPath(str):
    """The type of an argument that names a file or folder to write."""

    __slots__ = ()


def names_file(action: argparse.Action) -> bool:
    """Does an option or argument name a file or folder?"""
    return isinstance(action.type, type) and issubclass(action.type, InputPath | OutputPath)


def list_files(found: argparse.Namespace, names: Mapping[str, str], kind: type[str]) -> list[tuple[str, str]]:
    """(option, path) of the inputs or outputs that a command was given."""
    given: list[tuple[str, str]] = []
    for dest, name in names.items():
        value = getattr(found, dest, None)
        given += [
            (name, path)
            for path in (value if isinstance(value, list) else [value])
            if isinstance(path, kind) and path
        ]
    return given


def check_separate(
    inputs: Iterable[tuple[str, str | None]], outputs: Iterable[tuple[str, str | None]]
) -> None:
    """No output is an input, a part of a run that is read, or another output. ConfigError otherwise.

    Each is (option, path); those without a path are ignored. The parser calls it for the options themselves,
    commands for the names that they derive from their options.
    """
    given = [(option, path) for option, path in inputs if path]
    if len(standard := [option for option, path in given if path == "-"]) > 1:
        raise ConfigError(f"{' - '.join(standard)} -: only one of them can be stdin")
    read = {key: (option, path) for option, path in given if (key := file_identity(path, 0))}
    written: dict[tuple[object, ...], tuple[str, str]] = {}
    for option, path in ((option, path) for option, path in outputs if path):
        key = file_identity(path, 1)
        if key is None:
            continue
        if key in read:
            raise ConfigError(
                f"{option} {path}: is read too ({' '.join(read[key])}); an input is never overwritten, name "
                "another file"
            )
        if key in written:
            raise ConfigError(
                f"{option} {path}: is written too by {' '.join(written[key])}; name two different files"
            )
        written[key] = option, path
        parent, name = os.path.split(os.path.realpath(path))
        for other, folder in given:
            if os.path.isdir(folder) and os.path.realpath(folder) == parent and name in list_parts(folder):
                raise ConfigError(
                    f"{option} {path}: is a part of {other} {folder}, which is read; name another file"
                )


def file_identity(path: str, standard: int) -> tuple[object, ...] | None:
    """Equal for two names of one file or folder, links followed; None for devices and pipes. `standard`: the
    stream that `-` is."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)
    except FileNotFoundError:
        return ("name", os.path.realpath(path))
    except OSError:
        return None
    if path == "-" and standard == 1 and not stat.S_ISREG(status.st_mode):
        return ("-",)  # two texts on one standard output would be mixed
    return (
        (status.st_dev, status.st_ino)
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        else None
    )


def list_parts(folder: str) -> Iterable[str]:
    """The files of a run, or of another folder with a manifest; of a run without one, whatever it holds."""
    try:
        found = manifest.read(folder)
    except DataError:  # damaged: whoever reads the folder reports it
        found = None
    if found is not None:
        return {*found, manifest.FILE}
    return os.listdir(folder) if os.path.exists(os.path.join(folder, "version")) else ()
