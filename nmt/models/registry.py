"""The translation models that `model.type` can name, and checks of what a model of a plugin returns.

Shapes: R rows (hypotheses), V target words.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from nmt.errors import ConfigError
from nmt.io.numbers import shown
from nmt.layers.result_checks import ResultChecks, checked
from nmt.models.config import ModelConfig
from nmt.models.joint import JointModel
from nmt.models.protocols import AlignedModel, Source, State, TranslationModel
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
    kind = checked(find(config.type), CheckedModel)
    return kind(config, source_vocab_size, target_vocab_size, fill, spelling)


class CheckedModel(ResultChecks, TranslationModel[State]):
    """Mixin for the model of a plugin, see `ResultChecks`."""

    def __init__(
        self,
        config: object,
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        super().__init__(config, source_vocab_size, target_vocab_size, fill, spelling)
        self._target_vocab_size = target_vocab_size
        self._started: tuple[State, int] | None = None  # the last state of `start`, and its rows

    def start(self, sources: Sequence[Source]) -> State:
        state = super().start(sources)
        self._started = (state, len(sources))
        return state

    def step(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        result: object = super().step(state, token_ids)
        if not isinstance(result, tuple) or len(result) != 2:
            raise self._wrong("step", result, "a pair: log p of every word, and the next state")
        log_probs, meaning = result[0], "log p of every target word for each row of the state"
        if token_ids is not None:
            rows = len(token_ids)
        elif self._started and self._started[0] is state:
            rows = self._started[1]
        else:  # rows of several states, which only the model can count
            rows = len(log_probs) if isinstance(log_probs, Tensor) and log_probs.ndim else 0
        self._check_shape("step", log_probs, (rows, self._target_vocab_size), meaning)
        if token_ids is None:  # once for each sentence
            self._check_sign("step", log_probs, meaning)
        self._started = None
        return result
