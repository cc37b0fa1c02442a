"""Step models made of translation models: ensembles, and models restricted to short-lists of words."""

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Generic, Protocol

import torch
from torch import Tensor

from nmt.data.batches import Ids
from nmt.layers.attention import join_sentences
from nmt.layers.output import OutputLayer
from nmt.models.protocols import AnyStepModel, Layered, State, StepModel, Widening


@dataclass
class Reading:
    """A sentence as ids for each model of an ensemble. Its length is that for the first model."""

    ids: tuple[Ids, ...]

    def __len__(self) -> int:
        return len(self.ids[0])


class Ensemble:
    """Averages the probabilities of models with one target vocabulary. A state is a list of theirs."""

    def __init__(self, models: Sequence[AnyStepModel]) -> None:
        self.models = list(models)

    @property
    def device(self) -> torch.device:
        return self.models[0].device

    def start(self, sources: Sequence[Reading]) -> list[object]:
        return [
            model.start([source.ids[number] for source in sources])
            for number, model in enumerate(self.models)
        ]

    def start_with(self, sources: Sequence[Reading], words: Sequence[Set[int]]) -> list[object]:
        """Like `start`, with short-lists that include `words`: for each sentence the ids that it may need."""
        return [
            model.start_with([source.ids[number] for source in sources], words)
            if isinstance(model, Widening)
            else model.start([source.ids[number] for source in sources])
            for number, model in enumerate(self.models)
        ]

    def step(self, state: list[object], token_ids: Tensor | None) -> tuple[Tensor, list[object]]:
        steps = [model.step(part, token_ids) for model, part in zip(self.models, state, strict=True)]
        return mean_log_probs([log_probs for log_probs, _ in steps]), [part for _, part in steps]

    def reorder(self, state: list[object], rows: Tensor) -> list[object]:
        return [model.reorder(part, rows) for model, part in zip(self.models, state, strict=True)]

    def join(self, states: Sequence[list[object]]) -> list[object]:
        return [
            model.join(parts) for model, parts in zip(self.models, zip(*states, strict=True), strict=True)
        ]

    def attention(self, state: list[object]) -> Tensor | None:
        """Attention of the first model, over the positions of its reading."""
        return self.models[0].attention(state[0])


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """Natural log of the mean of probabilities, from their logarithms: tensors of a shape -> this shape"""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


class LayeredModel(StepModel[State], Layered[State], Protocol[State]):
    """A model that Shortlisted can wrap."""


@dataclass
class ShortlistState(Generic[State]):
    """State of R hypotheses of S sentences, and the T words that any of them may use."""

    inner: State
    token_ids: Tensor  # (T,) in increasing order
    output: OutputLayer  # over token_ids
    allowed: Tensor  # (S, T) whether each sentence may use the word
    sentence: Tensor  # (R,) its row of `allowed`


class Shortlisted(Generic[State]):
    """Restricts a model's softmax to a short-list of words for each sentence (from a lexical table). All
    other words have probability 0. Faster, but results change; off by default."""

    def __init__(self, model: LayeredModel[State], shortlist: Callable[[Ids], set[int]]) -> None:
        """`shortlist`: the target ids that may translate a sentence of source ids."""
        self.model, self.shortlist = model, shortlist

    @property
    def device(self) -> torch.device:
        return self.model.device

    def start(self, sources: Sequence[Ids]) -> ShortlistState[State]:
        return self.start_with(sources, [frozenset()] * len(sources))

    def start_with(self, sources: Sequence[Ids], words: Sequence[Set[int]]) -> ShortlistState[State]:
        """Like `start`, with short-lists that include `words`: for each sentence the ids that it may need."""
        sets = [self.shortlist(source) | more for source, more in zip(sources, words, strict=True)]
        ids = sorted(set().union(*sets))
        column_of = {token: column for column, token in enumerate(ids)}
        allowed = torch.zeros(len(sources), len(ids), dtype=torch.bool)
        for row, tokens in enumerate(sets):
            allowed[row, [column_of[token] for token in tokens]] = True
        return self.state(
            self.model.start(sources),
            torch.tensor(ids, device=self.device),
            allowed.to(self.device),
            torch.arange(len(sources), device=self.device),
        )

    def state(
        self, inner: State, token_ids: Tensor, allowed: Tensor, sentence: Tensor
    ) -> ShortlistState[State]:
        """Make a state, with the model's output layer restricted to `token_ids`."""
        return ShortlistState(
            inner=inner,
            token_ids=token_ids,
            output=self.model.output_layer.restrict(token_ids),
            allowed=allowed,
            sentence=sentence,
        )

    def step(
        self, state: ShortlistState[State], token_ids: Tensor | None
    ) -> tuple[Tensor, ShortlistState[State]]:
        """Natural log p of every word, -inf outside the short-lists, (R, V), and the next state."""
        features, inner = self.model.features(state.inner, token_ids)
        scores = state.output.scores(features).masked_fill_(~state.allowed[state.sentence], -torch.inf)
        log_probs = features.new_full((len(features), self.model.output_layer.vocab_size), -torch.inf)
        log_probs[:, state.token_ids] = torch.log_softmax(scores, 1)
        return log_probs, replace(state, inner=inner)

    def reorder(self, state: ShortlistState[State], rows: Tensor) -> ShortlistState[State]:
        return replace(state, inner=self.model.reorder(state.inner, rows), sentence=state.sentence[rows])

    def join(self, states: Sequence[ShortlistState[State]]) -> ShortlistState[State]:
        ids = torch.cat([state.token_ids for state in states]).unique()
        sentence, used = join_sentences([state.sentence for state in states])
        allowed = []
        for state, selection in zip(states, used, strict=True):
            rows = torch.zeros(len(selection), len(ids), dtype=torch.bool, device=ids.device)
            rows[:, torch.searchsorted(ids, state.token_ids)] = state.allowed[selection]
            allowed.append(rows)
        inner = self.model.join([state.inner for state in states])
        return self.state(inner, ids, torch.cat(allowed), sentence)

    def attention(self, state: ShortlistState[State]) -> Tensor | None:
        return self.model.attention(state.inner)
