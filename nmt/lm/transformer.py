"""A Transformer as a language model: p(w | previous words of the sentence).

Each line is an independent sentence that begins with <s>. N words, R rows (hypotheses), D width, V
vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.config.settings import choice, number, setting
from nmt.data.batches import Batch, Ids
from nmt.layers.attention import WordGrid
from nmt.layers.initialize import initialize
from nmt.layers.key_values import KeyValueCache
from nmt.layers.output import check_output, make_output
from nmt.layers.output.softmax import Softmax
from nmt.layers.transformer import Stack, TransformerSizes
from nmt.lm.base import Floats, LMConfig, SoftmaxLM, trie_scores
from nmt.text.vocab import BOS


@dataclass
class TransformerLMConfig(TransformerSizes, LMConfig):
    """The keys of `lm` for type transformer."""

    vector_sides: ClassVar[tuple[str, ...]] = ("target",)
    type: str = "transformer"
    depth: int = number(6, least=1, most=1000, help="layers, stacked")
    tied: bool = setting(True, help="one matrix for embedding and softmax")
    init: str = choice(
        "glorot",
        "uniform",
        "paper",
        help="distribution of initial matrices; word vectors are N(0, 1 / embedding); paper: "
        "N(0, init_scale²), as in Cho et al. 2014a",
    )

    def check(self) -> None:
        super().check()
        self.check_sizes("lm.")
        check_output(self, "lm", self.tied)


class TransformerLM(SoftmaxLM):
    """A Transformer language model. Search states are keys and values of the words read so far."""

    Config: ClassVar[type[LMConfig]] = TransformerLMConfig
    autocast: ClassVar[bool] = True  # bf16 on a GPU: activations are bf16, too

    def __init__(self, config: TransformerLMConfig, vocab_size: int, fill: bool = True) -> None:
        super().__init__()
        config.check()
        self.stack = Stack(config, config.depth, vocab_size, causal=True)
        self.output = make_output(config, config.embedding, vocab_size)
        if config.tied:
            self.output.tie(self.stack.embedding)
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def takes_padding(self) -> bool:
        return type(self.output) is Softmax and not self.stack.recompute

    def read(self, batch: Batch) -> Tensor:
        grid = WordGrid.of(batch.target, self.stack.embedding.weight)
        features: Tensor = self.stack(batch.previous, grid)
        return features

    def word_embedding(self, side: str) -> nn.Embedding:
        return self.stack.embedding

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        return trie_scores(self, texts, ends)

    def start(self, sources: Sequence[Ids]) -> KeyValueCache:
        """The state before a sentence, a row for each source. Sources are ignored."""
        return KeyValueCache.start(len(sources), self.device)

    @torch.no_grad()
    def advance(self, state: KeyValueCache, token_ids: Tensor) -> tuple[Tensor, KeyValueCache]:
        """Advance each row by one word: (R,) -> features (R, D), and the new state"""
        step = state.step(*self.stack.step_sizes)
        return self.stack.advance(step, token_ids), step.after()

    def step(self, state: KeyValueCache, token_ids: Tensor | None) -> tuple[Tensor, KeyValueCache]:
        if token_ids is None:
            token_ids = torch.full((state.row_index.shape[1],), BOS, device=self.device)
        features, state = self.advance(state, token_ids)
        return self.output.log_probs(features), state

    def reorder(self, state: KeyValueCache, rows: Tensor) -> KeyValueCache:
        return state.rows(rows)

    def join(self, states: Sequence[KeyValueCache]) -> KeyValueCache:
        return KeyValueCache.join(states)
