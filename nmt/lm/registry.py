"""The neural language models by the names that `lm.type` takes. A model of your own adds a line:
LANGUAGE_MODELS["mine"] = Mine."""

from dataclasses import dataclass, fields

from nmt.errors import ConfigError
from nmt.lm.config import LMConfig
from nmt.lm.cslm import CSLM, CSLMConfig
from nmt.lm.multiscale import MultiscaleConfig, MultiscaleLM
from nmt.lm.protocols import LanguageModel
from nmt.lm.recurrent import RecurrentConfig, RecurrentLM
from nmt.numbers import shown

LANGUAGE_MODELS: dict[str, type[LanguageModel]] = {
    "cslm": CSLM,
    "recurrent": RecurrentLM,
    "multiscale": MultiscaleLM,
}


def language_model_class(kind: str) -> type[LanguageModel]:
    """The class that `lm.type` names. ConfigError for an unknown one."""
    if kind not in LANGUAGE_MODELS:
        raise ConfigError(
            f"lm.type: {shown(kind)} is unknown, expected one of {', '.join(map(repr, LANGUAGE_MODELS))}"
        )
    return LANGUAGE_MODELS[kind]


@dataclass
class AllKeys(CSLMConfig, RecurrentConfig, MultiscaleConfig):
    """The keys of all types, until a run's configuration is read by type."""

    type: str = ""

    def check(self) -> None:
        if self.type:
            self.typed().check()

    def typed(self) -> LMConfig:
        kind = language_model_class(self.type).Config
        return kind(**{item.name: getattr(self, item.name) for item in fields(kind)})
