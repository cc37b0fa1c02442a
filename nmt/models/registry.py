"""The translation models that `model.type` can name."""

from collections.abc import Sequence
from typing import Any

from nmt.errors import ConfigError
from nmt.io.numbers import shown
from nmt.layers import result_checks
from nmt.models.checked import CheckedModel
from nmt.models.config import ModelConfig
from nmt.models.joint import JointModel
from nmt.models.protocols import AlignedModel, TranslationModel
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer

AnyModel = TranslationModel[Any]  # a model whose type of state does not matter to the caller

MODELS: dict[str, type[AnyModel]] = {"rnn": RNNTranslator, "transformer": Transformer}
ALIGNED_MODELS: dict[str, type[AlignedModel]] = {"joint": JointModel}  # models that read a word alignment


def find(name: str) -> type[AnyModel]:
    """Look up the class that `model.type` names. ConfigError for an unknown name."""
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
    """Create the model that `config.type` names; arguments as in `TranslationModel.__init__`. ConfigError for
    an unknown type or a bad configuration. What a plugin's model returns is checked, see `CheckedModel`."""
    kind = result_checks.checked(find(config.type), CheckedModel)
    return kind(config, source_vocab_size, target_vocab_size, fill, spelling)
