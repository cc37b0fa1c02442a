"""Types of command-line arguments: numbers within bounds, input paths, output paths. Also a check that no
output overwrites an input."""

import argparse
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nmt.config import settings
from nmt.errors import ConfigError, DataError
from nmt.io import locks, manifest, numbers
from nmt.runs import directory as run_directory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Container = argparse.ArgumentParser | argparse._ArgumentGroup

T = TypeVar("T")
Config = TypeVar("Config", bound="DataclassInstance")
Number = TypeVar("Number", int, float)

# ---- numbers -----------------------------------------------------------------------------------------------


def integer(least: int, most: int | None = None) -> Callable[[str], int]:
    """Argument type: a whole number from `least` to `most`, both included; most=None: no upper bound."""
    return in_range(numbers.integer, settings.Range(least, most))


def real(least: float | None = None, above: float | None = None) -> Callable[[str], float]:
    """Argument type: a finite number, of at least `least`, and greater than `above`; None: no bound."""
    return in_range(numbers.real, settings.Range(least, above=above))


def in_range(parse: Callable[[str], Number], allowed: settings.Range) -> Callable[[str], Number]:
    """Argument type: a number that `parse` reads, within bounds."""

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
    """Argument type: best, last, or the number of an update."""
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
    parser: "Container", config: "type[DataclassInstance]", name: str, *flags: str, **overrides: Any
) -> None:
    """Add the option `--name` for a field of a settings dataclass, with the field's default, type, range and
    help text. `flags`: its other names, such as -b; `overrides`: keywords for argparse that replace these."""
    setting = next(item for item in fields(config) if item.name == name)
    allowed = setting.metadata.get(settings.ALLOWED)
    default = setting.default if setting.default_factory is MISSING else setting.default_factory()
    keywords: dict[str, Any] = {
        "default": default,
        "help": setting.metadata.get(settings.HELP, "").replace("%", "%%"),
    }
    if isinstance(allowed, tuple | Mapping):
        keywords["choices"] = tuple(allowed)
    elif isinstance(default, bool) or "action" in overrides:  # a switch has no type: Python 3.14 refuses one
        keywords["action"] = argparse.BooleanOptionalAction if default else "store_true"
    elif allowed is None and isinstance(default, str):
        keywords["type"] = str
    else:
        whole = "float" not in str(setting.type)
        bounds = allowed or settings.Range()
        keywords["type"] = in_range(numbers.integer, bounds) if whole else in_range(numbers.real, bounds)
        keywords["metavar"] = "N" if whole else "X"
    parser.add_argument(f"--{name.replace('_', '-')}", *flags, dest=name, **keywords | overrides)


def add_settings(parser: "Container", config: "type[DataclassInstance]", *names: str) -> None:
    """Add an option for each of these fields, as `add_setting` does."""
    for name in names:
        add_setting(parser, config, name)


def parse_settings(config: type[Config], args: argparse.Namespace, **overrides: object) -> Config:
    """Build a settings dataclass from the options named like its fields; `overrides` win over options."""
    values = {item.name: getattr(args, item.name) for item in fields(config) if hasattr(args, item.name)}
    return config(**values | overrides)


# ---- files -------------------------------------------------------------------------------------------------


class InputPath(str):
    """Argument type: a file or folder to read. A folder made by nmt-init stands for the run inside it."""

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        return super().__new__(cls, cls.resolve(path))

    @staticmethod
    def resolve(path: str) -> str:
        """The path that is read: for a folder made by nmt-init, the run inside it."""
        run = run_directory.resolve(path)
        return path if run == Path(path) else str(run)


@contextmanager
def new_folder(output: str | Path, command: str, unfinished: str = "") -> Iterator[None]:
    """Create and lock a folder for the output of `command`, and remove it if the block fails. What a killed
    start of the command left in the folder is removed first.

    `unfinished`: regular expression of the paths of files and folders in what a killed start leaves; a
    finished folder has others, too. ConfigError if the folder exists, is not empty and was not left by a
    killed start; UserError if another process has its lock, or it cannot be created.
    """
    abandoned = locks.holder(output).startswith(f"{command},") and has_only(output, unfinished)
    if not abandoned:
        check_new(output)
    with locks.locked(output, command):
        if abandoned and has_only(output, unfinished):  # another process may have finished it meanwhile
            locks.clear_content(output)
        check_new(output)
        try:
            yield
        except BaseException:
            locks.clear(output)
            raise


def has_only(folder: str | Path, names: str) -> bool:
    """Whether all paths inside a folder match the regular expression `names`; its lock does not count."""
    inside = (path.relative_to(folder).as_posix() for path in Path(folder).rglob("*"))
    return all(name == locks.FILE or re.fullmatch(names, name) for name in inside)


def check_new(output: str | Path) -> None:
    """ConfigError unless a folder is missing or empty."""
    if not locks.is_empty(output):
        raise ConfigError(f"{output}: exists already; choose another name")


class ConfigFile(InputPath):
    """Argument type: a configuration. A folder made by nmt-init stands for the configuration inside it."""

    __slots__ = ()

    @staticmethod
    def resolve(path: str) -> str:
        """The configuration inside a folder, unless the folder is a run."""
        config = os.path.join(path, run_directory.CONFIG)
        return config if os.path.isfile(config) and not run_directory.exists(Path(path)) else path


class OutputPath(str):
    """Argument type: a file or folder to write."""

    __slots__ = ()


def names_file(action: argparse.Action) -> bool:
    """Whether an option or argument is a file or folder."""
    return isinstance(action.type, type) and issubclass(action.type, InputPath | OutputPath)


def list_files(args: argparse.Namespace, names: Mapping[str, str], kind: type[str]) -> list[tuple[str, str]]:
    """List the (option, path) pairs of all inputs or all outputs. `kind`: InputPath or OutputPath."""
    files: list[tuple[str, str]] = []
    for dest, name in names.items():
        value = getattr(args, dest, None)
        files += [
            (name, path)
            for path in (value if isinstance(value, list) else [value])
            if isinstance(path, kind) and path
        ]
    return files


def check_separate(
    inputs: Iterable[tuple[str, str | None]], outputs: Iterable[tuple[str, str | None]]
) -> None:
    """ConfigError if an output is also an input, part of a run that is read, or written twice.

    Inputs and outputs are (option, path); those without a path are ignored. The parser calls this for all
    options; commands call it for file names that they derive from options.
    """
    input_paths = [(option, path) for option, path in inputs if path]
    if len(standard := [option for option, path in input_paths if path == "-"]) > 1:
        raise ConfigError(f"{' - '.join(standard)} -: only one of them can be stdin")
    read = {key: (option, path) for option, path in input_paths if (key := file_identity(path, 0))}
    written: dict[tuple[object, ...], tuple[str, str]] = {}
    for option, path in ((option, path) for option, path in outputs if path):
        key = file_identity(path, 1)
        if key is None:
            continue
        if key in read:
            raise ConfigError(
                f"{option} {path}: is also read ({' '.join(read[key])}); an input is never overwritten, name "
                "another file"
            )
        if key in written:
            raise ConfigError(
                f"{option} {path}: is also written by {' '.join(written[key])}; name two different files"
            )
        written[key] = option, path
        parent, name = os.path.split(os.path.realpath(path))
        for input_option, folder in input_paths:
            if os.path.isdir(folder) and os.path.realpath(folder) == parent and name in list_parts(folder):
                raise ConfigError(
                    f"{option} {path}: is part of {input_option} {folder}, which is read; name another file"
                )


def file_identity(path: str, standard: int) -> tuple[object, ...] | None:
    """A key that is equal for two paths to the same file or folder, links followed; None for devices and
    pipes. `standard`: the file descriptor that `-` stands for."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)
    except FileNotFoundError:
        return ("name", os.path.realpath(path))
    except OSError:
        return None
    if path == "-" and standard == 1 and not stat.S_ISREG(status.st_mode):
        return ("-",)  # so that two outputs cannot be mixed on stdout
    return (
        (status.st_dev, status.st_ino)
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        else None
    )


def list_parts(folder: str) -> Iterable[str]:
    """Names of the files that a folder's manifest lists, or of all in a run without one; else empty."""
    try:
        entries = manifest.read(folder)
    except DataError:  # damaged: reported when the folder is read
        entries = None
    if entries is not None:
        return {*entries, manifest.FILE}
    return os.listdir(folder) if os.path.exists(os.path.join(folder, run_directory.VERSION_FILE)) else ()
