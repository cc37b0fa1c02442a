"""The softmax over a short-list of words for each sentence (from a lexical table): faster, but results
change. Off by default."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Generic, Protocol

import torch
from torch import Tensor

from nmt.data.batches import Ids
from nmt.layers.attention import join_sentences
from nmt.models.protocols import Restrictable, Restricted, State, StepModel


class RestrictableModel(StepModel[State], Restrictable[State], Protocol[State]):
    """A model for short-lists."""


@dataclass
class ShortlistState(Generic[State]):
    """R hypotheses of S sentences between two words, and the T words that any of the sentences may use."""

    inner: State
    token_ids: Tensor  # (T,) in increasing order
    output: Restricted  # the output layer over them
    allowed: Tensor  # (S, T) which of them each sentence may use
    sentence: Tensor  # (R,) its row of `allowed`


class Shortlisted(Generic[State]):
    """A model whose probabilities are over the words that may translate each sentence. Every other word has
    probability 0."""

    def __init__(self, model: RestrictableModel[State], words_of: Callable[[Ids], set[int]]) -> None:
        """`words_of`: the target ids that may translate a sentence of source ids."""
        self.model, self.words_of = model, words_of

    @property
    def device(self) -> torch.device:
        return self.model.device

    def start(self, sources: Sequence[Ids]) -> ShortlistState[State]:
        return self.start_with(sources, [frozenset()] * len(sources))

    def start_with(self, sources: Sequence[Ids], words: Sequence[Set[int]]) -> ShortlistState[State]:
        """See Widening."""
        sets = [self.words_of(source) | more for source, more in zip(sources, words, strict=True)]
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
        return ShortlistState(
            inner=inner,
            token_ids=token_ids,
            output=self.model.restrict(token_ids),
            allowed=allowed,
            sentence=sentence,
        )

    def step(
        self, state: ShortlistState[State], token_ids: Tensor | None
    ) -> tuple[Tensor, ShortlistState[State]]:
        """log p of every word, -inf outside the short-lists: (R, V)"""
        features, inner = self.model.features(state.inner, token_ids)
        scores = state.output.scores(features).masked_fill_(~state.allowed[state.sentence], -torch.inf)
        log_probs = features.new_full((len(features), self.model.vocab_size), -torch.inf)
        log_probs[:, state.token_ids] = torch.log_softmax(scores, 1)
        return log_probs, replace(state, inner=inner)

    def reorder(self, state: ShortlistState[State], rows: Tensor) -> ShortlistState[State]:
        return replace(state, inner=self.model.reorder(state.inner, rows), sentence=state.sentence[rows])

    def join(self, states: Sequence[ShortlistState[State]]) -> ShortlistState[State]:
        ids = torch.cat([state.token_ids for state in states]).unique()
        sentence, used = join_sentences([state.sentence for state in states])
        allowed = []
        for state, kept in zip(states, used, strict=True):
            rows = torch.zeros(len(kept), len(ids), dtype=torch.bool, device=ids.device)
            rows[:, torch.searchsorted(ids, state.token_ids)] = state.allowed[kept]
            allowed.append(rows)
        inner = self.model.join([state.inner for state in states])
        return self.state(inner, ids, torch.cat(allowed), sentence)

    def attention(self, state: ShortlistState[State]) -> Tensor | None:
        return self.model.attention(state.inner)
