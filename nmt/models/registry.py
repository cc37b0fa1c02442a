"""The translation models that `model.type` can name."""

from collections.abc import Sequence
from typing import Any

from nmt.errors import ConfigError
from nmt.io.numbers import shown
from nmt.models.config import ModelConfig
from nmt.models.joint import JointModel
from nmt.models.protocols import AlignedModel, TranslationModel
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer

AnyModel = TranslationModel[Any]  # a model whose search state only itself understands

MODELS: dict[str, type[AnyModel]] = {"rnn": RNNTranslator, "transformer": Transformer}
ALIGNED_MODELS: dict[str, type[AlignedModel]] = {"joint": JointModel}  # they are given the alignment


def find(name: str) -> type[AnyModel]:
    """The class that `model.type: name` means. ConfigError for an unknown name."""
    if name not in MODELS:
        raise ConfigError(
            f"model.type: {shown(name)} is unknown, expected one of {', '.join(map(repr, MODELS))}"
        )
    return MODELS[name]


def make(
    config: ModelConfig,
    source_vocab_size: int,
    target_vocab_size: int,
    fill: bool = True,
    spelling: Sequence[str] | None = None,
) -> AnyModel:
    """The model that `config.type` names; see `TranslationModel.__init__` for the arguments."""
    return find(config.type)(config, source_vocab_size, target_vocab_size, fill, spelling)
