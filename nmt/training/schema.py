"""The keys that a configuration may have, which depend on what it trains."""

import difflib
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, cast, get_args, get_origin

from omegaconf import DictConfig, OmegaConf

from nmt.errors import ConfigError
from nmt.lm.config import LMConfig
from nmt.models.config import ModelConfig
from nmt.runs.migrations import Section
from nmt.runs.sections import REGISTRIES, config_class
from nmt.settings import ALLOWED, HELP
from nmt.training.run_config import RunConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WIDTH = 110  # of comments

Where = Callable[[str], str]  # where a key got its value: file:line, or the override


@dataclass
class Part:
    """What a preset, a file or an override gives."""

    content: Section
    where: Where


@dataclass
class Schema:
    """The keys of a run's configuration, given what it trains."""

    section: str  # model | lm
    config: type[ModelConfig] | type[LMConfig]  # the keys of that section

    def keys(self) -> list[str]:
        """Every key, sections included: `data`, `data.source`, `data.source.language`, ..."""
        return [*keys_of(RunConfig), self.section, *keys_of(self.config, f"{self.section}.")]

    def is_section(self, key: str) -> bool:
        return any(name.startswith(f"{key}.") for name in self.keys())

    def is_list(self, key: str) -> bool:
        """Is it a list of sections?"""
        return any(name.startswith(f"{key}[].") for name in self.keys())

    def defaults(self, kind: str) -> DictConfig:
        """The configuration before anything is given."""
        config = OmegaConf.structured(RunConfig)
        config[self.section] = OmegaConf.structured(self.config)
        config[self.section].type = kind
        return cast(DictConfig, config)

    def did_you_mean(self, key: str) -> str:
        """The nearest known key: in the same section, else of the same name elsewhere."""
        known = self.keys()
        section, _, leaf = key.rpartition(".")
        beside = [name for name in known if name.rpartition(".")[0] == section]
        leaves = {name.rpartition(".")[2]: name for name in beside}
        near = [leaves[name] for name in difflib.get_close_matches(leaf, leaves, 1, 0.6)] or [
            name for name in known if name.rpartition(".")[2] == leaf
        ][:2]
        near = [name for name in near or difflib.get_close_matches(key, known, 1, 0.6) if name != key]
        if near:
            return f", did you mean {' or '.join(map(repr, near))}?"
        return f"; expected one of {', '.join(name.rpartition('.')[2] for name in beside)}"


def keys_of(kind: "type[DataclassInstance]", prefix: str = "") -> list[str]:
    """Every key of a dataclass and of the dataclasses in it, for those in a list `data.corpora[].name`; not
    `model` and `lm`, whose class depends on their type."""
    keys: list[str] = []
    for item in fields(kind):
        if prefix or item.name not in REGISTRIES:
            keys.append(prefix + item.name)
        if isinstance(item.type, type) and is_dataclass(item.type):
            keys += keys_of(item.type, f"{prefix}{item.name}.")
        for part in get_args(item.type) if get_origin(item.type) is list else ():
            if is_dataclass(part):
                keys += keys_of(cast("type[DataclassInstance]", part), f"{prefix}{item.name}[].")
    return keys


def explained(config: "DataclassInstance", indent: str = "") -> Iterator[str]:
    """A configuration as the lines of a file, each key below what it means."""
    for item in fields(config):
        value, about = getattr(config, item.name), item.metadata.get(HELP, "")
        if value is None:
            continue
        allowed = item.metadata.get(ALLOWED)
        if isinstance(allowed, tuple | Mapping):
            about = f"{about} ({' | '.join(allowed)})" if about else " | ".join(allowed)
        sign = f"{indent}# "
        lines = textwrap.wrap(
            about, WIDTH, initial_indent=sign, subsequent_indent=sign, break_on_hyphens=False
        )
        yield from lines
        if is_dataclass(value) and not isinstance(value, type):
            yield f"{indent}{item.name}:"
            yield from explained(value, f"{indent}  ")
        else:
            text = OmegaConf.to_yaml(OmegaConf.create({item.name: value}))
            yield from (f"{indent}{line}" for line in text.rstrip("\n").split("\n"))


def schema_of(parts: Sequence[Part]) -> tuple[Schema, str]:
    """What the parts of a configuration train, and the name of its type. ConfigError for both sections, or an
    unknown type."""
    given = {
        section: [part for part in parts if part.content.get(section) is not None] for section in REGISTRIES
    }
    if given["lm"] and given["model"]:
        raise ConfigError(
            f"{given['model'][0].where('model')}: model: a run has either section model or section lm "
            f"({given['lm'][0].where('lm')}); leave one of them out"
        )
    section = "lm" if given["lm"] else "model"
    kinds = [
        (str(content["type"] or ""), part.where)
        for part in given[section]
        if isinstance(content := part.content[section], dict) and "type" in content
    ]
    kind, where = kinds[-1] if kinds else (ModelConfig().type if section == "model" else "", None)
    try:
        return Schema(section, config_class(section, kind)), kind
    except ConfigError as error:
        place = where(f"{section}.type") if where else given[section][-1].where(section)
        raise ConfigError(f"{place}: {error}") from error
