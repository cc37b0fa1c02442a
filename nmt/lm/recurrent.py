"""A recurrent language model: p(w | all words before) by LSTM or gated layers (section 2.2.2).

The first word is read off the state after an end symbol: sentences start from zeros and </s>, running text
from where it stands.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.batches import Batch, Ids
from nmt.data.running import Chunk
from nmt.data.vocab import BOS, EOS
from nmt.layers.initialize import initialize
from nmt.layers.output import Softmax
from nmt.lm.config import LMConfig
from nmt.lm.rows import RowState


class RecurrentLM(RowState, nn.Module):
    """A state is the states of all layers side by side, (R, S)."""

    def __init__(self, config: LMConfig, words: int, fill: bool = True) -> None:
        super().__init__()
        config.check()
        self.carries, self.dropout, self.normalizer = config.carry, config.dropout, config.normalizer
        self.embedding = nn.Embedding(words, config.embedding)
        self.cells = nn.ModuleList(
            config.layer(config.hidden if number else config.embedding) for number in range(config.depth)
        )
        self.output = Softmax(config.hidden, words)
        if config.tied:
            self.output.words = self.embedding.weight  # type: ignore[assignment]
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def state_sizes(self) -> list[int]:
        return [int(cell.state_size) for cell in self.cells]  # type: ignore[arg-type]

    def zeros(self, rows: int) -> Tensor:
        return self.embedding.weight.new_zeros(rows, sum(self.state_sizes))

    def unroll(self, words: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Words read (N,), rows at each step, state (B, S) -> features (N, H), state after the last step (R,
        S) without gradient"""
        hidden, after = self.drop(self.embedding(words)), []
        for cell, state in zip(self.cells, start.split(self.state_sizes, 1), strict=True):
            hidden, last = cell.unroll_state(hidden, sizes, state)  # type: ignore[operator]
            hidden = self.drop(hidden)
            after.append(last.detach())
        return hidden, torch.cat(after, 1)

    def drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.dropout, self.training)

    def read(self, batch: Batch) -> Tensor:
        """Features of the words of some sentences, (N, H)"""
        words = torch.where(batch.previous == BOS, EOS, batch.previous)
        return self.unroll(words, batch.target.sizes, self.zeros(batch.target.sizes[0]))[0]

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the targets of sentences on their own: ()"""
        return self.output.cross_entropy(
            self.read(batch), batch.target.ids, smoothing, self.normalizer if self.training else 0.0
        )

    def cost(
        self, batch: Batch | Chunk, smoothing: float, carried: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Σ -log p of the targets, and of running text the state to go on from; its gradient ends with the
        chunk (truncated BPTT)."""
        if isinstance(batch, Batch):
            return self.loss(batch, smoothing), None
        start = self.zeros(batch.tracks) if batch.fresh or carried is None else carried
        features, after = self.unroll(batch.previous, batch.sizes, start)
        return self.output.cross_entropy(
            features, batch.ids, smoothing, self.normalizer if self.training else 0.0
        ), after

    def score_chunk(self, chunk: Chunk, carried: Tensor | None) -> tuple[Tensor, Tensor]:
        """log p of each target of running text, (T * B,), and the state after it"""
        with torch.no_grad():
            features, after = self.unroll(
                chunk.previous, chunk.sizes, self.zeros(chunk.tracks) if carried is None else carried
            )
            return self.output.log_probs_of(features, chunk.ids), after

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each target word, in packed order: (N,)"""
        with torch.no_grad():
            return self.output.log_probs_of(self.read(batch), batch.target.ids)

    def start(self, sources: Sequence[Ids]) -> Tensor:
        """The state before a sentence, a row for each source; sources are not read: (R, S)"""
        return self.zeros(len(sources))

    def advance(self, state: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """One word for each row: (R, S), (R,) -> features (R, H), state (R, S)"""
        hidden, after = self.embedding(words), []
        for cell, part in zip(self.cells, state.split(self.state_sizes, 1), strict=True):
            after.append(cell.step(hidden, part))  # type: ignore[operator]
            hidden = cell.output(after[-1])  # type: ignore[operator]
        return hidden, torch.cat(after, 1)

    def step(self, state: Tensor, words: Tensor | None) -> tuple[Tensor, Tensor]:
        """log p of every next word: words (R,), None before the first -> (R, V), natural logarithm, and the
        state with them"""
        words = torch.full((len(state),), EOS, device=self.device) if words is None else words
        features, state = self.advance(state, words)
        return self.output.log_probs(features), state
