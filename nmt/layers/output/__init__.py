"""Output layers: from features to a distribution over the vocabulary. `OUTPUTS` has them by the
names that `model.output` and `lm.output` take; your own adds a line: OUTPUTS["mine"] = Mine."""

from dataclasses import fields

from nmt.errors import ConfigError
from nmt.io.numbers import shown
from nmt.layers.output.base import OutputLayer, OutputSettings
from nmt.layers.output.classes import ClassSoftmax
from nmt.layers.output.sampled import NegativeSampling, NoiseContrastive
from nmt.layers.output.softmax import Softmax
from nmt.layers.output.tree import TreeSoftmax
from nmt.plugins import Registry

__all__ = ["OUTPUTS", "OutputLayer", "OutputSettings", "Softmax", "check_output", "make_output", "refuse"]

OUTPUTS: Registry[type[OutputLayer]] = Registry(
    "output layer",
    {
        "softmax": Softmax,
        "classes": ClassSoftmax,
        "tree": TreeSoftmax,
        "nce": NoiseContrastive,
        "negative-sampling": NegativeSampling,
    },
)


def make_output(settings: OutputSettings, inputs: int, vocab_size: int, bias: bool = True) -> OutputLayer:
    """Create the layer that a section's settings describe, over `vocab_size` words from features of width
    `inputs`. `settings.output` must be in OUTPUTS. `bias`: whether each word has a bias."""
    layer = OUTPUTS[settings.output]
    if layer.reads:
        return layer(inputs, vocab_size, bias, settings)
    return layer(inputs, vocab_size, bias)


def check_output(settings: OutputSettings, section: str, tied: bool = False) -> None:
    """ConfigError for an unknown layer, for settings that it does not read, and for tied embeddings that it
    cannot be combined with. `section`: `model` or `lm`."""
    if settings.output not in OUTPUTS:
        options = ", ".join(map(repr, OUTPUTS))
        raise ConfigError(f"{section}.output: {shown(settings.output)} is unknown, expected one of {options}")
    reads = OUTPUTS[settings.output].reads
    for item in fields(OutputSettings):
        if item.name not in {"output", *reads} and getattr(settings, item.name) != item.default:
            raise ConfigError(f"{section}.{item.name}: not used with output: {settings.output}; leave it out")
    if settings.output_arity == 1:
        raise ConfigError(f"{section}.output_arity: 1 makes no tree; expected 2 or more, or 0")
    if tied:
        refuse(settings, section, "tied", f"{section}.tied")


def refuse(settings: OutputSettings, section: str, name: str, key: str) -> None:
    """ConfigError if the layer cannot be combined with a setting. `name`: `tied`, `label_smoothing` or `ema`;
    `key`: its full key, for the message."""
    if reason := OUTPUTS[settings.output].refuses.get(name):
        raise ConfigError(
            f"{key}: cannot be combined with {section}.output: {settings.output}: {reason}; turn it off, or "
            "use output: softmax"
        )
