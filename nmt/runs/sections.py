"""The section of a configuration that says what a run trains: `model` for a translator, `lm` for a language
model. Its `type` names a class, whose `Config` has its keys."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from nmt.errors import ConfigError
from nmt.lm.config import LMConfig
from nmt.lm.registry import LANGUAGE_MODELS
from nmt.models.config import ModelConfig
from nmt.models.registry import ALIGNED_MODELS, MODELS, PRETRAINED
from nmt.numbers import shown


class Configured(Protocol):
    """A class of models."""

    @property
    def Config(self) -> type[ModelConfig] | type[LMConfig]: ...


# Read whenever a configuration is, so that plugins may add to them.
REGISTRIES: dict[str, Sequence[Mapping[str, Configured]]] = {
    "model": (MODELS, ALIGNED_MODELS, PRETRAINED),
    "lm": (LANGUAGE_MODELS,),
}


def config_class(section: str, kind: str) -> type[ModelConfig] | type[LMConfig]:
    """The dataclass of section `model` or `lm` for a type. ConfigError for an unknown type."""
    registry = {name: found for part in REGISTRIES[section] for name, found in part.items()}
    if kind not in registry:
        expected = f"expected one of {', '.join(map(repr, registry))}"
        if not kind:
            raise ConfigError(f"{section}.type: missing; set {section}.type, {expected}")
        raise ConfigError(f"{section}.type: {shown(kind)} is unknown, {expected}, or a type of NMT_PLUGINS")
    return registry[kind].Config
