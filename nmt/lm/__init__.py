"""Registry of the neural language models by the names of `lm.type`. To add your own: LANGUAGE_MODELS["mine"]
= Mine."""

from nmt.errors import ConfigError
from nmt.io.numbers import shown
from nmt.layers.result_checks import ResultChecks, checked
from nmt.lm.base import CheckedSoftmaxLM, LanguageModel, SoftmaxLM
from nmt.lm.cslm import CSLM, LogBilinear
from nmt.lm.recurrent import CharacterLM, RecurrentLM
from nmt.lm.transformer import TransformerLM
from nmt.plugins import Registry

LANGUAGE_MODELS: Registry[type[LanguageModel]] = Registry(
    "language model",
    {
        "cslm": CSLM,
        "log-bilinear": LogBilinear,
        "recurrent": RecurrentLM,
        "characters": CharacterLM,
        "transformer": TransformerLM,
    },
)


def language_model_class(name: str) -> type[LanguageModel]:
    """The class that `lm.type` names; a plugin's results are checked. ConfigError for an unknown name."""
    if name not in LANGUAGE_MODELS:
        raise ConfigError(
            f"lm.type: {shown(name)} is unknown, expected one of {', '.join(map(repr, LANGUAGE_MODELS))}"
        )
    kind = LANGUAGE_MODELS[name]
    return checked(kind, CheckedSoftmaxLM if issubclass(kind, SoftmaxLM) else ResultChecks)
