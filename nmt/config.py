"""The configuration of a run: a YAML file and `section.key=value` overrides, checked against the dataclasses.

Defaults stand in the dataclasses, above the classes they configure; here they are only put together.
"""

import difflib
import re
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException
from yaml import YAMLError

from nmt import files
from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.lm.config import LMConfig
from nmt.models.config import ModelConfig
from nmt.training.loop import TrainingConfig


@dataclass
class RunConfig:
    run: str = ""  # the run directory that training makes or continues
    seed: int = 1  # parameters, order of sentences, dropout
    device: str = "cpu"  # cpu | cuda | cuda:1 ...
    threads: int = 0  # 0: as many as torch chooses
    init_from: str = ""  # a run whose weights are the start, as far as they fit; words are matched by their spelling
    precision: str = "fp32"  # of matrix products in training: fp32 | bf16: about twice as fast on processors with avx512_bf16
    matmul: str = "auto"  # back end of matrix products on the CPU: auto | mkl | onednn
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    lm: LMConfig = field(default_factory=LMConfig)  # with a type: the run is a language model and `model` is not read
    training: TrainingConfig = field(default_factory=TrainingConfig)


PRESETS = Path(__file__).parent / "presets"

# What may differ when a run goes on: limits, and what has no part in the result.
FREE = {"run", "threads", "data.cache"} | {f"training.{key}" for key in ("max_steps", "max_epochs", "max_minutes", "patience", "keep", "tensorboard")}


def load(path: str, overrides: list[str], preset: str | None = None) -> RunConfig:
    """Defaults, a preset, the file, the overrides: what comes later wins.

    ConfigError, with a line number where there is one, for bad YAML, an unknown key or a value of the wrong type.
    """
    config = OmegaConf.structured(RunConfig)
    if preset:
        found = PRESETS / f"{preset}.yaml"
        if not found.exists():
            raise ConfigError(f"--preset {preset}: unknown, expected one of {', '.join(sorted(file.stem for file in PRESETS.glob('*.yaml')))}")
        config = OmegaConf.merge(config, read(str(found))[0])
    given, text = read(path)
    config = merge(config, given, lambda key: where_is(path, text, key))
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"{override}: expected section.key=value")
        try:
            change = OmegaConf.from_dotlist([override if value else f"{key}=''"])  # YAML takes nothing for null
        except (YAMLError, OmegaConfBaseException) as error:
            raise ConfigError(f"{override}: not a valid value: {str(error).splitlines()[0]}") from error
        config = merge(config, change, lambda key, override=override: override)
    try:
        result: Any = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:  # a ${...} that leads nowhere
        key = str(error.full_key)
        raise ConfigError(f"{where_is(path, text, key)}: {key}: {str(error).splitlines()[0]}") from error
    if not result.run:
        raise ConfigError(f"{path}: run is missing; name the run directory, e.g. run: runs/first")
    for key in ("seed", "threads"):
        if getattr(result, key) < 0:
            raise ConfigError(f"{path}: {key}: {getattr(result, key)} is negative, expected 0 or more")
    if result.lm.type:
        result.lm.check()
        result.training.metric, result.training.dev_beam = "cost", 0  # a language model translates nothing
    else:
        result.model.check()
    result.training.check()
    return result  # type: ignore[no-any-return]


def read(path: str) -> tuple[Any, str]:
    """A YAML file as sections and keys, and its text"""
    text = "\n".join(files.read_lines(path))
    try:
        given = OmegaConf.create(text) if text.strip() else OmegaConf.create({})
    except (YAMLError, OmegaConfBaseException) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else path
        raise ConfigError(f"{where}: not valid YAML: {getattr(error, 'problem', None) or str(error).splitlines()[0]}") from error
    if not OmegaConf.is_dict(given):
        raise ConfigError(f"{path}: expected sections and keys, such as 'model:', found {type(OmegaConf.to_object(given)).__name__}")
    return given, text


def merge(config: Any, change: Any, where: Any) -> Any:
    for key in filter(is_section, all_keys()):
        if OmegaConf.select(change, key) is not None and not OmegaConf.is_dict(OmegaConf.select(change, key)):
            raise ConfigError(f"{where(key)}: {key} is a section, expected keys and values below it")
    try:
        return OmegaConf.merge(config, change)
    except ConfigKeyError as error:
        key = str(error.full_key)
        raise ConfigError(f"{where(key)}: unknown key {key!r}{did_you_mean(key)}") from error
    except OmegaConfBaseException as error:
        key = str(error.full_key)
        raise ConfigError(f"{where(key)}: {key}: {str(error).splitlines()[0]}") from error


def all_keys(kind: Any = RunConfig, prefix: str = "") -> list[str]:
    """Every key of the configuration, sections included: `data`, `data.source`, `data.source.language`, ..."""
    keys: list[str] = []
    for item in fields(kind):
        keys.append(prefix + item.name)
        if is_dataclass(item.type):
            keys += all_keys(item.type, f"{prefix}{item.name}.")
    return keys


def did_you_mean(key: str) -> str:
    """The nearest known key: in the same section, else of the same name elsewhere."""
    known = all_keys()
    section = key.rpartition(".")[0]
    beside = [name for name in known if name.rpartition(".")[0] == section]
    leaf = key.rpartition(".")[2]
    near = difflib.get_close_matches(key, beside, 1, 0.6) or [name for name in known if name.rpartition(".")[2] == leaf][:2]
    near = near or difflib.get_close_matches(key, known, 1, 0.6)
    return f", did you mean {' or '.join(map(repr, near))}?" if near else f"; expected one of {', '.join(name.rpartition('.')[2] for name in beside)}"


def where_is(path: str, text: str, key: str) -> str:
    """`file:line` of the last part of a dotted key; just the file when it cannot be found."""
    number = 0
    lines = text.split("\n")
    for part in key.split("."):
        part = part.partition("[")[0]
        found = [n for n in range(number, len(lines)) if re.match(rf"\s*['\"]?{re.escape(part)}['\"]?\s*:|.*[{{,]\s*{re.escape(part)}\s*:", lines[n])]
        if not found:
            return path
        number = found[0]
    return f"{path}:{number + 1}"


def to_yaml(config: RunConfig) -> str:
    return str(OmegaConf.to_yaml(OmegaConf.structured(config)))


def differences(config: RunConfig, directory: Path) -> list[str]:
    """Keys in which a configuration differs from the one a run was started with, less those that may."""
    before: Any = OmegaConf.merge(OmegaConf.structured(RunConfig), OmegaConf.load(directory / "config.yaml"))  # a newer key had its default
    now = OmegaConf.structured(config)
    names = [key for key in all_keys() if not is_section(key)]
    return [
        f"{key}={OmegaConf.select(now, key)} (was {OmegaConf.select(before, key)})"
        for key in names
        if key not in FREE and OmegaConf.select(now, key) != OmegaConf.select(before, key)
    ]


def is_section(key: str) -> bool:
    return any(name.startswith(f"{key}.") for name in all_keys())
