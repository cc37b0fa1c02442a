"""The translation models that `model.type` can name."""

from collections.abc import Sequence
from typing import Any

from nmt.models.config import ModelConfig
from nmt.models.protocols import TranslationModel
from nmt.models.translator import Translator

AnyModel = TranslationModel[Any]  # a model whose search state only itself understands

MODELS: dict[str, type[AnyModel]] = {"rnn": Translator}


def make(
    config: ModelConfig,
    source_vocab_size: int,
    target_vocab_size: int,
    fill: bool = True,
    spelling: Sequence[str] | None = None,
) -> AnyModel:
    """The model that `config.type` names; see `TranslationModel.__init__` for the arguments."""
    return MODELS[config.type](config, source_vocab_size, target_vocab_size, fill, spelling)
