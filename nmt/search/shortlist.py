"""The softmax over a short-list of words for each sentence (from a lexical table): faster, and another
result. Off by default."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.data.batches import Ids
from nmt.data.vocab import BOS
from nmt.models.decoder import DecoderState
from nmt.models.translator import Translator


@dataclass
class ShortlistState:
    inner: DecoderState
    ids: Tensor  # (K,) words that any of the sentences may use, rising
    matrix: Tensor  # (K, ...) their rows of the output matrix
    bias: Tensor | None
    allowed: Tensor  # (S, K) which of them each sentence may
    sentence: Tensor  # (R,) its row of `allowed`


class Shortlisted:
    """A translator whose probabilities are over the words that may translate each sentence. Every other word
    has probability 0."""

    def __init__(self, model: Translator, words_of: Callable[[Ids], set[int]]) -> None:
        self.model, self.words_of = model, words_of

    @property
    def device(self) -> torch.device:
        return self.model.device

    def start(self, sources: Sequence[Ids]) -> ShortlistState:
        sets = [self.words_of(source) for source in sources]
        ids = sorted(set().union(*sets))
        place = {word: column for column, word in enumerate(ids)}
        allowed = torch.zeros(len(sources), len(ids), dtype=torch.bool)
        for row, words in enumerate(sets):
            allowed[row, [place[word] for word in words]] = True
        rows = torch.arange(len(sources), device=self.device)
        return self.state(
            self.model.start(sources), torch.tensor(ids, device=self.device), allowed.to(self.device), rows
        )

    def state(self, inner: DecoderState, ids: Tensor, allowed: Tensor, sentence: Tensor) -> ShortlistState:
        output = self.model.decoder.output
        return ShortlistState(
            inner,
            ids,
            output.words[ids],
            None if output.words_bias is None else output.words_bias[ids],
            allowed,
            sentence,
        )

    def step(self, state: ShortlistState, words: Tensor | None) -> tuple[Tensor, ShortlistState]:
        decoder = self.model.decoder
        read = torch.full_like(state.sentence, BOS) if words is None else words
        features, inner = decoder.advance(state.inner, decoder.tables_of(read), first=words is None)
        scores = F.linear(features, state.matrix, state.bias).masked_fill_(
            ~state.allowed[state.sentence], -torch.inf
        )
        log_probs = features.new_full((len(features), len(decoder.output.words)), -torch.inf)
        log_probs[:, state.ids] = torch.log_softmax(scores, 1)
        return log_probs, replace(state, inner=inner)

    def reorder(self, state: ShortlistState, rows: Tensor) -> ShortlistState:
        return replace(state, inner=self.model.reorder(state.inner, rows), sentence=state.sentence[rows])

    def join(self, states: Sequence[ShortlistState]) -> ShortlistState:
        ids = torch.cat([state.ids for state in states]).unique()
        allowed, sentences, count = [], [], 0
        for state in states:
            used, index = state.sentence.unique(return_inverse=True)
            rows = torch.zeros(len(used), len(ids), dtype=torch.bool, device=ids.device)
            rows[:, torch.searchsorted(ids, state.ids)] = state.allowed[used]
            allowed.append(rows)
            sentences.append(index + count)
            count += len(used)
        return self.state(
            self.model.join([state.inner for state in states]), ids, torch.cat(allowed), torch.cat(sentences)
        )

    def attention(self, state: ShortlistState) -> Tensor | None:
        return self.model.attention(state.inner)
