"""Types of arguments: numbers with their range, files that are read, files that are written; and the check
that keeps those apart."""

import argparse
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from nmt import manifest, numbers, settings
from nmt.errors import ConfigError, DataError

T = TypeVar("T")

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


def in_range(parse: Callable[[str], Any], allowed: settings.Range) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}, expected {allowed}") from error
        if value not in allowed:
            raise argparse.ArgumentTypeError(f"{settings.plain(value)} is out of range, expected {allowed}")
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


def add_setting(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup",
    config: type,
    name: str,
    *flags: str,
    **kwargs: Any,
) -> None:
    """An option for a field of a configuration's dataclass: `--name`, with the default, type, range and help
    text that stand there."""
    item = next(item for item in fields(config) if item.name == name)
    allowed = item.metadata.get(settings.ALLOWED)
    kwargs.setdefault("help", item.metadata.get(settings.HELP))
    default = (
        item.default
        if item.default is not MISSING
        else item.default_factory()
        if item.default_factory is not MISSING
        else None
    )
    if isinstance(allowed, tuple | Mapping):
        kwargs["choices"] = tuple(allowed)
    elif isinstance(default, bool):
        kwargs["action"] = argparse.BooleanOptionalAction if default else "store_true"
    else:
        whole = "float" not in str(item.type)
        bounds = allowed or settings.Range()
        kwargs.setdefault("type", in_range(numbers.integer if whole else numbers.real, bounds))
        kwargs.setdefault("metavar", "N" if whole else "X")
    parser.add_argument(f"--{name.replace('_', '-')}", *flags, dest=name, default=default, **kwargs)


def settings_of(config: type[T], found: argparse.Namespace, **given: Any) -> T:
    """A configuration from the options that have the names of its fields, and from `given`."""
    named = {item.name: getattr(found, item.name) for item in fields(config) if hasattr(found, item.name)}  # type: ignore[arg-type]
    return config(**named | given)


# ---- files -------------------------------------------------------------------------------------------------


class Input(str):
    """The type of an argument that names a file or folder to read."""

    __slots__ = ()


class Output(str):
    """The type of an argument that names a file or folder to write."""

    __slots__ = ()


def files_of(found: argparse.Namespace, names: Mapping[str, str], kind: type[str]) -> list[tuple[str, str]]:
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
    """No output is an input, a part of a run that is read, or another output. ConfigError before any work.

    Each is (option, path); without a path it is passed over. Commands call it for names that they derive from
    their options; the parser does for the rest.
    """
    given = [(option, path) for option, path in inputs if path]
    if len(standard := [option for option, path in given if path == "-"]) > 1:
        raise ConfigError(f"{' - '.join(standard)} -: only one of them can be stdin")
    read = {key: (option, path) for option, path in given if (key := same_file(path, 0))}
    written: dict[tuple[object, ...], tuple[str, str]] = {}
    for option, path in ((option, path) for option, path in outputs if path):
        key = same_file(path, 1)
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
            if os.path.isdir(folder) and os.path.realpath(folder) == parent and name in listed(folder):
                raise ConfigError(
                    f"{option} {path}: is a part of {other} {folder}, which is read; name another file"
                )


def same_file(path: str, standard: int) -> tuple[object, ...] | None:
    """Equal for two names of one file or folder, links followed; None for devices and pipes. `standard`: the
    stream that `-` is."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)
    except FileNotFoundError:
        return ("name", os.path.realpath(path))
    except OSError:
        return None
    if path == "-" and standard == 1 and not stat.S_ISREG(status.st_mode):
        return ("-",)  # twice the standard output is one text mixed with another
    return (
        (status.st_dev, status.st_ino)
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        else None
    )


def listed(folder: str) -> Iterable[str]:
    """The files that a run, or another folder with a manifest, is made of; of a run of version 0.5, whatever
    it holds."""
    try:
        found = manifest.read(folder)
    except DataError:  # damaged: whoever reads the folder tells
        found = None
    if found is not None:
        return {*found, manifest.FILE}
    return os.listdir(folder) if os.path.exists(os.path.join(folder, "version")) else ()
