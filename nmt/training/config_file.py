"""The configuration of a run: a YAML file and `section.key=value` overrides, checked against the dataclasses.

Defaults, ranges and explanations are in the dataclasses; here they are only put together. Sections `model`
and `lm` exclude each other: their `type` names a model, and their other keys are those of its `Config`."""

import difflib
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args, get_origin

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from nmt import metrics
from nmt.config import settings, yaml_text
from nmt.config.settings import ALLOWED, HELP
from nmt.config.yaml_text import NotYaml, reason
from nmt.data import corpus
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError
from nmt.io import files
from nmt.io.numbers import LONGEST, shown
from nmt.lm.base import LMConfig
from nmt.models.config import ModelConfig
from nmt.runs.checkpoint import SECTION_REGISTRIES, config_class
from nmt.runs.directory import CONFIG
from nmt.runs.text import Section, read_yaml
from nmt.text.pipeline import subword_kind
from nmt.text.subwords.bpe import BPE
from nmt.training.config import (
    AUTO,
    DERIVED_KEYS,
    FREE_KEYS,
    TOKENIZED,
    RunConfig,
    check_combinations,
    set_languages,
)
from nmt.training.proposal import preset_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# ---- schema ------------------------------------------------------------------------------------------------
# The keys that a configuration may have, which depend on what it trains.


COMMENT_WIDTH = 110  # characters of a comment line

KeyLocator = Callable[[str], str]  # key -> where it got its value: file:line, or the override


@dataclass
class ConfigPart:
    """Keys and values from a preset, a file or an override, and where they come from."""

    content: Section
    locate: KeyLocator


@dataclass
class Schema:
    """The keys of a run's configuration, given what it trains."""

    section: str  # model | lm
    config: type[ModelConfig] | type[LMConfig]  # the keys of that section

    @cached_property
    def keys(self) -> list[str]:
        """Every key, sections included: `data`, `data.source`, `data.source.language`, ..."""
        return [*dotted_keys(RunConfig), self.section, *dotted_keys(self.config, f"{self.section}.")]

    def is_section(self, key: str) -> bool:
        return any(name.startswith(f"{key}.") for name in self.keys)

    def is_list(self, key: str) -> bool:
        """Whether a key is a list of sections."""
        return any(name.startswith(f"{key}[].") for name in self.keys)

    def defaults(self, kind: str) -> DictConfig:
        """The configuration with the default value of every key. `kind`: the value of `type`."""
        config = OmegaConf.structured(RunConfig)
        config[self.section] = OmegaConf.structured(self.config)
        config[self.section].type = kind
        return cast(DictConfig, config)

    def did_you_mean(self, key: str) -> str:
        """End of the message for an unknown key: names the nearest known one, in the same section or of the
        same name elsewhere, or else the keys of the section."""
        keys = self.keys
        section, _, leaf = key.rpartition(".")
        siblings = [name for name in keys if name.rpartition(".")[0] == section]
        leaves = {name.rpartition(".")[2]: name for name in siblings}
        near = [leaves[name] for name in difflib.get_close_matches(leaf, leaves, 1, 0.6)] or [
            name for name in keys if name.rpartition(".")[2] == leaf
        ][:2]
        near = [name for name in near or difflib.get_close_matches(key, keys, 1, 0.6) if name != key]
        if near:
            return f", did you mean {' or '.join(map(repr, near))}?"
        return f"; expected one of {', '.join(name.rpartition('.')[2] for name in siblings)}"


def dotted_keys(kind: "type[DataclassInstance]", prefix: str = "") -> list[str]:
    """Every dotted key of a dataclass and of the dataclasses in it, each after `prefix`; keys in a list look
    like `data.corpora[].name`. Leaves out `model` and `lm`, whose class depends on their type."""
    keys: list[str] = []
    for item in fields(kind):
        if prefix or item.name not in SECTION_REGISTRIES:
            keys.append(prefix + item.name)
        if isinstance(item.type, type) and is_dataclass(item.type):
            keys += dotted_keys(item.type, f"{prefix}{item.name}.")
        for part in get_args(item.type) if get_origin(item.type) is list else ():
            if is_dataclass(part):
                keys += dotted_keys(cast("type[DataclassInstance]", part), f"{prefix}{item.name}[].")
    return keys


def explain(config: "DataclassInstance", indent: str = "") -> Iterator[str]:
    """Yield a configuration as lines of a file, with a comment above each key that says what it means; keys
    whose value is None are left out. `indent`: blanks before each line."""
    for item in fields(config):
        value, about = getattr(config, item.name), item.metadata.get(HELP, "")
        if value is None:
            continue
        allowed = item.metadata.get(ALLOWED)
        if isinstance(allowed, tuple | Mapping):
            about = f"{about} ({' | '.join(allowed)})" if about else " | ".join(allowed)
        sign = f"{indent}# "
        lines = textwrap.wrap(
            about, COMMENT_WIDTH, initial_indent=sign, subsequent_indent=sign, break_on_hyphens=False
        )
        yield from lines
        if is_dataclass(value) and not isinstance(value, type):
            yield f"{indent}{item.name}:"
            yield from explain(value, f"{indent}  ")
        else:
            text = OmegaConf.to_yaml(OmegaConf.create({item.name: value}))
            yield from (f"{indent}{line}" for line in text.rstrip("\n").split("\n"))


def choose_schema(parts: Sequence[ConfigPart]) -> tuple[Schema, str]:
    """Determine the schema of a configuration and the `type` of its model; later parts win. ConfigError if it
    has both sections, `model` and `lm`, or an unknown type."""
    sections = {
        section: [part for part in parts if part.content.get(section) is not None]
        for section in SECTION_REGISTRIES
    }
    if sections["lm"] and sections["model"]:
        raise ConfigError(
            f"{sections['model'][0].locate('model')}: model: a run has either section model or section lm "
            f"({sections['lm'][0].locate('lm')}); leave one of them out"
        )
    section = "lm" if sections["lm"] else "model"
    kinds = [
        (str(content["type"] or ""), part.locate)
        for part in sections[section]
        if isinstance(content := part.content[section], dict) and "type" in content
    ]
    kind, locate = kinds[-1] if kinds else (ModelConfig().type if section == "model" else "", None)
    try:
        return Schema(section, config_class(section, kind)), kind
    except ConfigError as error:
        location = locate(f"{section}.type") if locate else sections[section][-1].locate(section)
        raise ConfigError(f"{location}: {error}") from error


# ---- reading -----------------------------------------------------------------------------------------------


def load(path: str, overrides: Sequence[str] = (), preset: str | None = None) -> RunConfig:
    """Read a configuration file. Defaults, preset, file and overrides (`section.key=value`) are merged; later
    ones win. `preset`: its name, None for none.

    ConfigError, with a line number where possible, for bad YAML, an unknown key or preset, and a value of the
    wrong type or out of range; DataError for a file that cannot be read.
    """
    content, text = read(path)
    parts = [ConfigPart(content, partial(locate_key, path, text)), *map(parse_override, overrides)]
    return assemble(parts, preset)


def from_mapping(content: Mapping[str, object], preset: str | None = None) -> RunConfig:
    """Build a configuration from nested dictionaries; `preset`, errors as in `load`, without line numbers."""
    try:
        plain = OmegaConf.to_container(OmegaConf.create(dict(content)))
    except OmegaConfBaseException as error:
        raise ConfigError(f"configuration: {reason(error)}") from error
    part = ConfigPart(cast(Section, plain), lambda key: "configuration")
    return assemble([part], preset)


def assemble(parts: list[ConfigPart], preset: str | None) -> RunConfig:
    """Merge parts into a checked configuration; later ones win, all over a preset. Errors as from `load`."""
    defaults = preset_parts(preset, parts)
    schema, kind = choose_schema([*defaults, *parts])

    def locate(key: str) -> str:
        """Location of a key: in the last part that sets it, otherwise in the first part."""
        setters = [part for part in parts if sets_key(part.content, key)]
        return (setters or parts)[-1 if setters else 0].locate(key)

    merged = schema.defaults(kind)
    for part in (*defaults, *parts):
        merged = merge(merged, part, schema)
    result = resolve(merged, locate)
    if preset and not any(sets_key(part.content, "data.bpe_merges") for part in parts):
        with locate_errors(locate):
            set_languages(result)
            if not suits_merges(result.data, result.monolingual):
                result.data.bpe_merges = 0
    with locate_errors(locate):
        check_config(result)
    return result


def suits_merges(data: DataConfig, monolingual: bool) -> bool:
    """Whether a preset's number of BPE merges applies. It does not for monolingual text, for a configuration
    with its own subword units, vocabulary or word vectors, or if SentencePiece splits both sides."""
    sides = (data.source, data.target)
    own = any(side.codes or side.vocab_file or side.characters for side in sides)
    if monolingual or own or data.source_vectors or data.target_vectors:
        return False
    return any(subword_kind(side, data.bpe_merges) == BPE.kind for side in sides)


def check_types(config: RunConfig) -> None:
    """ConfigError for a value that has not the type of its key. Files are checked as they are merged; this is
    for a configuration made in Python."""
    try:
        OmegaConf.structured(config)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key}: {reason(error)}") from error


def check_config(config: RunConfig) -> None:
    """ConfigError for values out of range or that contradict each other. Sets what follows from others:
    languages from file names; no BLEU and no beam for a language model or an aligned model."""
    if not config.run:
        raise ConfigError("run is missing; name the run directory, e.g. run: runs/first")
    settings.check(config)
    corpus.check_corpora(config.data.corpora, config.data.temperature)
    for index, tag in enumerate(config.data.line_tags):
        corpus.check_tag(tag or " ", f"data.line_tags[{index}]")
    if config.lm is not None:
        config.lm.check()
        if config.training.batch_tokens and getattr(config.lm, "carry", False):
            raise ConfigError(
                "training.batch_tokens: with lm.carry a batch is training.batch_size positions in the text, "
                "lm.bptt units at each; set those two"
            )
    elif config.model is not None:
        config.model.check()
    if not config.settings.translates:
        config.training.metric, config.training.dev_beam = "cost", 0
    config.training.check()
    check_combinations(config)
    set_languages(config)
    if config.training.bleu_tokenizer not in (AUTO, TOKENIZED) and config.lm is None:
        try:
            metrics.check_tokenizer(config.training.bleu_tokenizer)
        except ConfigError as error:
            raise ConfigError(f"training.bleu_tokenizer: {error}") from error


def preset_parts(preset: str | None, parts: Sequence[ConfigPart]) -> list[ConfigPart]:
    """A preset as a list of one part, empty without a preset. Its section `model` or `lm` is left out if the
    configuration has the other one. ConfigError for an unknown preset."""
    if not preset:
        return []
    path = preset_file(preset)
    content = read(str(path))[0]
    present = {key for key in SECTION_REGISTRIES for part in parts if part.content.get(key) is not None}
    own = {key: value for key, value in content.items() if key not in SECTION_REGISTRIES or present <= {key}}
    return [ConfigPart(own, lambda key: str(path))]


def parse_override(override: str) -> ConfigPart:
    """Parse `section.key=value` into a configuration of this key. ConfigError if it is malformed."""
    key, equals, value = override.partition("=")
    excerpt = override if len(override) <= 2 * LONGEST else f"{override[: 2 * LONGEST]}..."
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", key, re.ASCII):
        raise ConfigError(f"{excerpt}: expected section.key=value")
    try:
        yaml_text.parse(f"x: {value}")
        change = OmegaConf.from_dotlist([override if value else f"{key}=''"])  # YAML takes nothing for null
        return ConfigPart(cast(Section, OmegaConf.to_container(change)), lambda key: excerpt)
    except (NotYaml, YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
        raise ConfigError(f"{excerpt}: not a valid value: {reason(error)}") from error


def read(path: str) -> tuple[Section, str]:
    """Parse a YAML file into sections and keys; also returns its text. DataError for a file that cannot be
    read, ConfigError, with the line, for one that is not YAML."""
    text = "\n".join(files.read_lines(path))
    try:
        parsed = yaml_text.parse(text)
        content = OmegaConf.to_container(parsed)
    except NotYaml as error:
        location = f"{path}:{error.line}" if error.line else path
        raise ConfigError(f"{location}: not valid YAML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: {reason(error)}") from error
    if not isinstance(content, dict):
        raise ConfigError(
            f"{path}: expected sections and keys, such as 'model:', found {type(content).__name__}"
        )
    return cast(Section, content), text


def merge(config: DictConfig, part: ConfigPart, schema: Schema) -> DictConfig:
    """Merge a part into a configuration, over the values that this has. ConfigError for a key that is not in
    the schema, or a value of the wrong type."""
    values = {
        key: value
        for key, value in part.content.items()
        if value is not None or key not in SECTION_REGISTRIES
    }
    try:
        for key, value in nested_keys(values):
            name = re.sub(r"\[\d+\]", "[]", key)
            if name not in schema.keys:
                raise ConfigError(f"{part.locate(key)}: unknown key {shown(key)}{schema.did_you_mean(name)}")
            if schema.is_section(name) and value is not None and not isinstance(value, dict):
                raise ConfigError(
                    f"{part.locate(key)}: {key} is a section, expected keys and values below it"
                )
            if schema.is_list(name) and not is_list(value):
                raise ConfigError(
                    f"{part.locate(key)}: {key} is a list of sections, each with keys and values"
                )
        return cast(DictConfig, OmegaConf.merge(config, values))
    except OmegaConfBaseException as error:
        key = str(error.full_key)
        for name, value in nested_keys(
            values
        ):  # in a section of a list, `full_key` begins below that section
            if name.endswith(f"].{key}") and value == error.value:
                key = name
        raise ConfigError(f"{part.locate(key)}: {key}: {reason(error)}") from error
    except RecursionError as error:
        raise ConfigError(f"{part.locate('run')}: {reason(error)}") from error


def nested_keys(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every dotted key (in lists `corpora[0].name`) of sections, after `prefix`, and its value."""
    for key, value in content.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict):
            yield from nested_keys(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            for index, part in enumerate(value):
                if isinstance(part, dict):
                    yield from nested_keys(part, f"{prefix}{key}[{index}].")


def is_list(value: object) -> bool:
    """Whether a value is a list of sections."""
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def sets_key(content: Mapping[str, object], key: str) -> bool:
    """Whether a part of a configuration sets a dotted key, which may be a section."""
    return any(name == key for name, _ in nested_keys(content))


def resolve(config: DictConfig, locate: KeyLocator) -> RunConfig:
    """Convert a configuration to dataclasses, with every ${...} filled in. ConfigError for a ${...} that
    names no key or refers to itself."""
    try:
        return cast(RunConfig, OmegaConf.to_object(config))
    except (OmegaConfBaseException, RecursionError) as error:
        # a ${...} that leads nowhere, or in a circle
        key = str(getattr(error, "full_key", None) or "run")
        raise ConfigError(f"{locate(key)}: {key}: {reason(error)}") from error


@contextmanager
def locate_errors(locate: KeyLocator) -> Iterator[None]:
    """Context that prefixes the message of a ConfigError, which begins with a key, with `locate(key)`: where
    that key got its value."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{locate(str(error).partition(':')[0])}: {error}") from error


def locate_key(path: str, text: str, key: str) -> str:
    """`file:line` of a dotted key. A key that the file lacks gets the line of its section or of its item in a
    list; just the file if it lacks that, too."""
    line = yaml_text.find_line(text, re.findall(r"[^.[\]]+", key))
    return f"{path}:{line}" if line else path


# ---- runs --------------------------------------------------------------------------------------------------


def to_yaml(config: RunConfig) -> str:
    """Format a configuration as YAML, leaving out the section, `model` or `lm`, that is not used."""
    structured = OmegaConf.structured(config)
    values = {key: structured[key] for key in structured if structured[key] is not None}
    return str(OmegaConf.to_yaml(OmegaConf.create(values)))


def read_run_config(directory: Path) -> RunConfig:
    """Read the configuration with which a run was started. CheckpointError if it is missing or damaged."""
    content = read_yaml(directory)
    part = ConfigPart(content, lambda key: str(directory / CONFIG))
    try:
        schema, kind = choose_schema([part])
        return resolve(merge(schema.defaults(kind), part, schema), part.locate)
    except ConfigError as error:
        path = directory / CONFIG
        message = str(error).removeprefix(f"{path}: ")
        raise CheckpointError(f"{path}: damaged configuration ({message}); copy it again") from error


def differences(config: RunConfig, directory: Path) -> list[str]:
    """Settings that differ from those with which the run was started, except those that may change, each as
    `key=new (was old)`. One of DERIVED_KEYS that is AUTO counts as unchanged. CheckpointError if the saved
    configuration is missing or damaged."""
    now, saved = dict(flatten(config)), dict(flatten(read_run_config(directory)))
    now.update({key: saved.get(key) for key in DERIVED_KEYS if now[key] == AUTO})
    kinds = [key for key in ("model.type", "lm.type") if now.get(key) != saved.get(key)]
    keys: Iterable[str] = kinds or {**saved, **now}
    return [
        f"{key}={now.get(key)} (was {saved.get(key)})"
        for key in keys
        if key not in FREE_KEYS and now.get(key) != saved.get(key)
    ]


def flatten(config: "DataclassInstance", prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every dotted key that is not a section, after `prefix`, with its value, paths as strings; leaves
    out values that are None."""
    for item in fields(config):
        value = getattr(config, item.name)
        if sections := settings.list_sections(item.name, value):
            for name, section in sections:
                yield from flatten(section, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{item.name}", str(value) if isinstance(value, Path) else value
