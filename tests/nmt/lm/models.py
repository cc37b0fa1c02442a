"""Small language models for tests."""

from typing import Any, TypeVar

import torch
from torch import nn

from nmt.lm import language_model_class
from nmt.lm.base import LMConfig
from nmt.lm.cslm import CSLM
from nmt.lm.recurrent import RecurrentLM
from nmt.lm.transformer import TransformerLM
from nmt.text.vocab import SPECIALS, UNK

V = 8
WORDS = [*SPECIALS, "ab", "abba", "c", "cab", "7"]
TEXTS = [[3, 4, 5], [3, 4, 6, 7], [], [UNK], [3, 4, 5], [7, 7, 7, 7, 7, 7, 7, 7, 3]]
KINDS = {
    "cslm": {"type": "cslm", "order": 4, "layers": [6, 5]},
    "tanh": {"type": "cslm", "order": 3, "layers": [6], "activation": "tanh"},
    "lstm": {"type": "recurrent", "hidden": 6, "depth": 2},
    "gru": {"type": "recurrent", "cell": "gru", "hidden": 6, "tied": True, "embedding": 6},
    "elman": {"type": "recurrent", "cell": "elman", "hidden": 6, "depth": 2},
    "vcrnn": {"type": "recurrent", "cell": "vcrnn", "hidden": 6, "depth": 2, "sharpness": 0.8},
    "vcgru": {"type": "recurrent", "cell": "vcgru", "hidden": 6, "embedding": 6, "sharpness": 0.8},
    "log-bilinear": {"type": "log-bilinear", "order": 4},
    "characters": {
        "type": "characters", "hidden": 3, "depth": 1, "character": 2, "widths": [1, 2], "filters": 2,
        "highway": 1, "embedding": 0,
    },
    "normalized": {"type": "recurrent", "hidden": 6, "layer_norm": True},
    "transformer": {"type": "transformer", "embedding": 6, "feed_forward": 5, "heads": 2, "depth": 2},
    "pre-norm": {
        "type": "transformer", "embedding": 6, "feed_forward": 5, "heads": 2, "depth": 2, "norm": "pre",
        "positions": "learned", "longest": 8, "tied": False,
    },
}  # fmt: skip


Model = TypeVar("Model", bound=nn.Module)


def config_of(type: str, **options: object) -> LMConfig:
    return language_model_class(type).Config(**{"type": type, **options})  # type: ignore[arg-type]


def model_of(kind: str, seed: int = 0, **more: object) -> Any:
    """A language model with the methods of StepModel."""
    torch.manual_seed(seed)
    options = {"embedding": 5, "init_scale": 1.0, **KINDS[kind], **more}
    config = config_of(**options)  # type: ignore[arg-type]
    model = language_model_class(config.type).build(config, WORDS)
    assert isinstance(model, CSLM | RecurrentLM | TransformerLM)
    return with_biases(model.double().eval())


def with_biases(model: Model) -> Model:
    """Biases and gains that are not the zeros and ones of a fresh model."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return model
