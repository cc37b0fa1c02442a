"""Settings of different sections of a configuration that do not go together. Messages begin with a key."""

from typing import cast

from nmt.data.corpus import VECTORS
from nmt.errors import ConfigError
from nmt.layers.output import OUTPUTS, Evolves, OutputSettings, refuse
from nmt.training.run_config import RunConfig


def check(config: RunConfig) -> None:
    """ConfigError for the first pair of settings that exclude each other."""
    check_output(config)
    check_guided(config)
    check_vectors(config)


def section_of(config: RunConfig) -> str:
    return "lm" if config.lm else "model"


def check_output(config: RunConfig) -> None:
    """Label smoothing needs an output layer that computes all words; an average of weights one whose weights
    mean the same from update to update, unlike those of a tree that is built anew."""
    section, settings = section_of(config), config.lm or config.model
    if config.training.label_smoothing and isinstance(settings, OutputSettings):
        refuse(cast(OutputSettings, settings), section, "label_smoothing", "training.label_smoothing")
    output = getattr(settings, "output", "")
    if config.training.ema and output in OUTPUTS and issubclass(OUTPUTS[output], Evolves):
        raise ConfigError(
            f"training.ema: does not go with {section}.output: {output}, whose tree is built anew in "
            "training; leave one of them out"
        )


def check_guided(config: RunConfig) -> None:
    """Guided alignment needs an attention over the source."""
    if config.training.guided_alignment and not (config.model and config.model.attends):
        kind = config.model.type if config.model else "a language model"
        remedy = "; set model.attention" if kind == "rnn" else ""
        raise ConfigError(f"training.guided_alignment: {kind} has no attention over the source here{remedy}")


def check_vectors(config: RunConfig) -> None:
    """Word vectors need a table to go to, and frozen ones a file."""
    settings, given = config.lm or config.model, dict[str, bool]()
    for key in VECTORS:
        side = key.removesuffix("_vectors")
        given[side] = bool(getattr(config.data, key))
        if given[side] and side not in (settings.vector_sides if settings else ()):
            kind = settings.type if settings else ""
            raise ConfigError(f"data.{key}: {kind} has no table of {side} word vectors here")
    if all(given.values()) and getattr(settings, "tied", "") == "all":
        raise ConfigError(
            "data.source_vectors: model.tied: all has one table for both sides; give data.target_vectors "
            "alone"
        )
    frozen = config.training.freeze_vectors
    for side in ("source", "target"):
        if frozen in (side, "both") and not given[side]:
            raise ConfigError(f"training.freeze_vectors: {frozen} needs data.{side}_vectors")
