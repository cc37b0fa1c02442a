"""An encoder of translators, trained on plain text by discourse objectives (Jernite 2018, chapter 5), from
which `init_from` starts translators with the same section `model`.

B examples, S sentences of an example, D width of a sentence's vector, N words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config.settings import choice, setting
from nmt.data.batches import Packed
from nmt.errors import ConfigError
from nmt.io.numbers import shown
from nmt.layers.cells import penalized_parts, total_penalty
from nmt.layers.characters import CharacterWords
from nmt.layers.initialize import initialize
from nmt.models.config import TEXT, RNNConfig
from nmt.models.rnn.encoders import ENCODER_CLASSES, Encoded
from nmt.papers.discourse.objectives import OBJECTIVES, DiscourseBatch, Objective

ALL = "order next conj"


@dataclass
class DiscourseConfig(RNNConfig):
    """The keys of `model` for type discourse: those of `rnn`, of which it reads what is about the encoder."""

    noun: ClassVar[str] = "an encoder alone"
    remedy: ClassVar[str] = "; start a translator from it by init_from"
    reads: ClassVar[str] = TEXT
    translates: ClassVar[bool] = False
    type: str = "discourse"
    objectives: str = setting(
        ALL,
        help="what is learned: order (are two neighbors in order), next (which sentence follows three), conj "
        "(which conjunction was taken off); one or more names",
    )
    vector: str = choice(
        "maximum",
        "last",
        help="the vector of a sentence: the maximum over its annotations (Jernite 2018), or the start "
        "of a decoder",
    )

    def check(self) -> None:
        """ConfigError for a value out of its range, and for an unknown objective."""
        super().check()
        unknown = [name for name in self.names if name not in OBJECTIVES]
        if unknown or not self.names:
            expected = ", ".join(map(repr, OBJECTIVES))
            raise ConfigError(
                f"model.objectives: {shown(' '.join(unknown))} is unknown, expected one or more of {expected}"
            )

    @property
    def attends(self) -> bool:
        return False

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return ()

    @property
    def names(self) -> list[str]:
        """Names of the objectives, without duplicates."""
        return list(dict.fromkeys(self.objectives.split()))


class Discourse(nn.Module):
    """The encoder of `model.type: rnn` under classifiers of sentences. Its parameters have the names that
    they have in a translator."""

    Config: ClassVar[type[DiscourseConfig]] = DiscourseConfig
    one_process: ClassVar[str] = "model.type discourse: each batch is of one objective"

    def __init__(self, config: DiscourseConfig, words: Sequence[str], fill: bool = True) -> None:
        """`fill=False` leaves the parameters uninitialized, for weights that are about to be loaded."""
        super().__init__()
        config.check()
        self.encoder = ENCODER_CLASSES[config.encoder](config, len(words), words)
        self.maximum = config.vector == "maximum"
        width = config.context if self.maximum else config.summary_size
        self.objectives = nn.ModuleDict({name: OBJECTIVES[name](width) for name in config.names})
        self.penalized = penalized_parts(self)
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def vectors(self, source: Packed) -> Tensor:
        """The vectors of sentences, in the order of the batch: -> (B S, D)"""
        encoded: Encoded = self.encoder(source)
        if not self.maximum or encoded.states is None:
            return encoded.summary
        B, T, K = len(source.order), len(source.sizes), encoded.states.shape[1]
        positions = source.order[source.rows] * T + source.steps
        grid = encoded.states.new_full((B * T, K), -torch.inf).index_copy(0, positions, encoded.states)
        return grid.view(B, T, K).amax(1)

    def scores(self, batch: DiscourseBatch) -> Tensor:
        """log p of each answer but for a constant: (B, C)"""
        objective = self.objectives[batch.objective]
        assert isinstance(objective, Objective)
        vectors = self.vectors(batch.source)
        log_probs: Tensor = objective(vectors.view(len(batch.answers), -1, vectors.shape[1]))
        return log_probs

    def cost(self, batch: DiscourseBatch, smoothing: float, carried: None) -> tuple[Tensor, None]:
        """Training loss, Σ -log p of the answers, (); no state is carried to the next batch."""
        cost = F.cross_entropy(self.scores(batch), batch.answers, reduction="sum")
        return (cost + total_penalty(self.penalized) if self.penalized else cost), None

    @torch.no_grad()
    def accuracies(self, batches: Iterable[DiscourseBatch]) -> dict[str, tuple[float, float]]:
        """Of each objective the mean -log p of an answer, natural, and the share of right ones."""
        sums = {name: [0.0, 0, 0] for name in self.objectives}
        for batch in batches:
            here = batch.to(self.device)
            log_probs = F.log_softmax(self.scores(here), 1)
            total = sums[batch.objective]
            total[0] -= float(log_probs.gather(1, here.answers[:, None]).sum())
            total[1] += int((log_probs.argmax(1) == here.answers).sum())
            total[2] += batch.sentences
        return {name: (cost / all, right / all) for name, (cost, right, all) in sums.items() if all}

    def rows_of(
        self, source_vocab: Sequence[str], target_vocab: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Parameter name -> what each of its rows belongs to; see nmt.models.protocols.WordParameters."""
        if isinstance(self.encoder.embedding, CharacterWords):
            return {"encoder.embedding.characters": self.encoder.embedding.row_names}
        return {"encoder.embedding.weight": source_vocab}
