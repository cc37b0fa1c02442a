"""The configuration of a run: a YAML file and `section.key=value` overrides, checked against the dataclasses.

Defaults and ranges stand in the dataclasses, above the classes they configure; here they are only put
together.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from nmt import checkpoint, files, settings, yaml_text
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError
from nmt.lm.registry import AllKeys
from nmt.models.config import RNNConfig
from nmt.numbers import LONGEST, shown
from nmt.run_directory import CONFIG
from nmt.settings import choice, number
from nmt.training.loop import TrainingConfig
from nmt.yaml_text import NotYaml, reason


@dataclass
class RunConfig:
    run: str = ""  # the run directory that training makes or continues
    seed: int = number(1, least=0)  # parameters, order of sentences, dropout
    device: str = "cpu"  # cpu | cuda | cuda:1 ...
    threads: int = number(0, least=0)  # 0: as many as torch chooses
    init_from: str = (
        ""  # a run whose weights are the start, as far as they fit; words are matched by their spelling
    )
    precision: str = choice(
        "fp32", "bf16"
    )  # of matrix products in training; bf16 is about twice as fast on processors with avx512_bf16
    matmul: str = choice("auto", "mkl", "onednn")  # back end of matrix products on the CPU
    data: DataConfig = field(default_factory=DataConfig)
    model: RNNConfig = field(default_factory=RNNConfig)
    lm: AllKeys = field(
        default_factory=AllKeys
    )  # with a type: the run is a language model and `model` is not read
    training: TrainingConfig = field(default_factory=TrainingConfig)


PRESETS = Path(__file__).parent / "presets"

# What may differ when a run goes on: limits, and what has no part in the result.
FREE = {"run", "threads", "data.cache"} | {
    f"training.{key}" for key in ("max_steps", "max_epochs", "max_minutes", "patience", "keep", "tensorboard")
}


Where = Callable[[str], str]  # where a key got its value: file:line, or the override


def load(path: str, overrides: list[str], preset: str | None = None) -> RunConfig:
    """Defaults, a preset, the file, the overrides: what comes later wins.

    ConfigError, with a line number where there is one, for bad YAML, an unknown key, a value of the wrong
    type or out of its range.
    """
    config = OmegaConf.structured(RunConfig)
    if preset:
        found = PRESETS / f"{preset}.yaml"
        if not found.exists():
            raise ConfigError(
                f"--preset {preset}: unknown, expected one of "
                f"{', '.join(sorted(file.stem for file in PRESETS.glob('*.yaml')))}"
            )
        config = OmegaConf.merge(config, read(str(found))[0])
    given, text = read(path)
    config = merge(config, given, lambda key: where_is(path, text, key))
    for override in overrides:
        config = merge(config, change_of(override), partial(place_of, override))

    def where(key: str) -> str:
        """The last override of a key or of its section, else its line of the file."""
        over = [override for override in overrides if f"{key}.".startswith(f"{override.partition('=')[0]}.")]
        return short(over[-1]) if over else where_is(path, text, key)

    result = resolve(config, where)
    if not result.run:
        raise ConfigError(f"{path}: run is missing; name the run directory, e.g. run: runs/first")
    with located(where):
        settings.check(result)
        if result.lm.type:
            result.lm.check()
            result.training.metric, result.training.dev_beam = (
                "cost",
                0,
            )  # a language model translates nothing
        else:
            result.model.check()
        result.training.check()
    return result


def change_of(override: str) -> Any:
    """`section.key=value` as a configuration of that key alone."""
    key, equals, value = override.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", key, re.ASCII):
        raise ConfigError(f"{short(override)}: expected section.key=value")
    if key not in all_keys():
        raise ConfigError(f"{short(override)}: unknown key {shown(key)}{did_you_mean(key)}")
    try:
        yaml_text.parse(f"x: {value}")
        return OmegaConf.from_dotlist([override if value else f"{key}=''"])  # YAML takes nothing for null
    except (NotYaml, YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
        raise ConfigError(f"{short(override)}: not a valid value: {reason(error)}") from error


def resolve(config: Any, where: Where) -> RunConfig:
    """As dataclasses, every ${...} filled in."""
    try:
        result: RunConfig = OmegaConf.to_object(config)  # type: ignore[assignment]
    except (
        OmegaConfBaseException,
        RecursionError,
    ) as error:  # a ${...} that leads nowhere, or round in a circle
        key = str(getattr(error, "full_key", None) or "run")
        raise ConfigError(f"{where(key)}: {key}: {reason(error)}") from error
    return result


@contextmanager
def located(where: Where) -> Iterator[None]:
    """Messages of the dataclasses, which begin with a key, get the place of that key put before them."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where(str(error).partition(':')[0])}: {error}") from error


def place_of(override: str, key: str) -> str:
    return short(override)


def short(override: str) -> str:
    return override if len(override) <= 2 * LONGEST else f"{override[: 2 * LONGEST]}..."


def read(path: str) -> tuple[Any, str]:
    """A YAML file as sections and keys, and its text"""
    text = "\n".join(files.read_lines(path))
    try:
        given = yaml_text.parse(text)
    except NotYaml as error:
        raise ConfigError(
            f"{f'{path}:{error.line}' if error.line else path}: not valid YAML: {error}"
        ) from error
    if not OmegaConf.is_dict(given):
        raise ConfigError(
            f"{path}: expected sections and keys, such as 'model:', found "
            f"{type(OmegaConf.to_object(given)).__name__}"
        )
    return given, text


def merge(config: Any, change: Any, where: Where) -> Any:
    known = all_keys()
    try:
        for key, value in given_keys(OmegaConf.to_container(change)):
            if key not in known:
                raise ConfigError(f"{where(key)}: unknown key {shown(key)}{did_you_mean(key)}")
            if is_section(key) and value is not None and not isinstance(value, dict):
                raise ConfigError(f"{where(key)}: {key} is a section, expected keys and values below it")
        return OmegaConf.merge(config, change)
    except OmegaConfBaseException as error:
        key = str(error.full_key)
        raise ConfigError(f"{where(key)}: {key}: {reason(error)}") from error
    except RecursionError as error:
        raise ConfigError(f"{where('run')}: {reason(error)}") from error


def given_keys(content: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every dotted key of nested sections, with its value."""
    for key, value in content.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict):
            yield from given_keys(value, f"{prefix}{key}.")


def all_keys(kind: Any = RunConfig, prefix: str = "") -> list[str]:
    """Every key of the configuration, sections included: `data`, `data.source`, `data.source.language`,
    ..."""
    keys: list[str] = []
    for item in fields(kind):
        keys.append(prefix + item.name)
        if is_dataclass(item.type):
            keys += all_keys(item.type, f"{prefix}{item.name}.")
    return keys


def value_of(config: RunConfig, key: str) -> Any:
    """What a dotted key has."""
    found: Any = config
    for part in key.split("."):
        found = getattr(found, part)
    return found


def did_you_mean(key: str) -> str:
    """The nearest known key: in the same section, else of the same name elsewhere."""
    known = all_keys()
    section = key.rpartition(".")[0]
    beside = [name for name in known if name.rpartition(".")[0] == section]
    leaf = key.rpartition(".")[2]
    near = (
        difflib.get_close_matches(key, beside, 1, 0.6)
        or [name for name in known if name.rpartition(".")[2] == leaf][:2]
    )
    near = [name for name in near or difflib.get_close_matches(key, known, 1, 0.6) if name != key]
    return (
        f", did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"; expected one of {', '.join(name.rpartition('.')[2] for name in beside)}"
    )


def where_is(path: str, text: str, key: str) -> str:
    """`file:line` of the last part of a dotted key; just the file when it cannot be found."""
    number = 0
    lines = text.split("\n")
    for part in key.split("."):
        part = part.partition("[")[0]
        found = [
            n
            for n in range(number, len(lines))
            if re.match(rf"\s*['\"]?{re.escape(part)}['\"]?\s*:|.*[{{,]\s*{re.escape(part)}\s*:", lines[n])
        ]
        if not found:
            return path
        number = found[0]
    return f"{path}:{number + 1}"


def to_yaml(config: RunConfig) -> str:
    return str(OmegaConf.to_yaml(OmegaConf.structured(config)))


def differences(config: RunConfig, directory: Path) -> list[str]:
    """Keys in which a configuration differs from the one a run was started with, less those that may."""
    try:
        before: Any = OmegaConf.merge(
            OmegaConf.structured(RunConfig), checkpoint.read_yaml(directory)
        )  # a newer key had its default
    except OmegaConfBaseException as error:
        raise CheckpointError(
            f"{directory / CONFIG}: damaged configuration ({reason(error)}); copy it again"
        ) from error
    now = OmegaConf.structured(config)
    names = [key for key in all_keys() if not is_section(key)]
    return [
        f"{key}={OmegaConf.select(now, key)} (was {OmegaConf.select(before, key)})"
        for key in names
        if key not in FREE and OmegaConf.select(now, key) != OmegaConf.select(before, key)
    ]


def is_section(key: str) -> bool:
    return any(name.startswith(f"{key}.") for name in all_keys())
