"""Models to search with: small random translators, and one whose probabilities are written by hand."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.data.batches import Ids
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.text.vocab import EOS
from tests.nmt.models.models import with_options

WORDS = 3  # ids 3, 4, 5
SOURCES = [[3, 4], [5], [3, 3, 4, 5], [6, 6], [4, 3, 5]]
ATTENTIVE: dict[str, object] = {"encoder": "birnn", "attention": 5, "bias": True}


def make(words: int = WORDS, seed: int = 0, **options: object) -> RNNTranslator:
    torch.manual_seed(seed)
    config = with_options(RNNConfig(embedding=6, hidden=7, maxout=4, init_scale=1.5), options)
    return RNNTranslator(config, 7, 3 + words).double().eval()


def make_transformer(words: int = WORDS, **options: object) -> Transformer:
    torch.manual_seed(0)
    small: dict[str, object] = {
        "embedding": 6, "feed_forward": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 2,
    }  # fmt: skip
    config = TransformerConfig(**{**small, **options})  # type: ignore[arg-type]
    return Transformer(config, 7, 3 + words).double().eval()


class Scripted:
    """A model whose next-word probabilities are written by hand; its state is the step."""

    device = torch.device("cpu")

    def __init__(self, table: dict[tuple[int, ...], dict[int, float]]) -> None:
        self.table = table

    def start(self, sources: Sequence[Ids]) -> list[tuple[int, ...]]:
        return [()] * len(sources)

    def step(
        self, state: list[tuple[int, ...]], words: Tensor | None
    ) -> tuple[Tensor, list[tuple[int, ...]]]:
        if words is not None:
            state = [(*text, word) for text, word in zip(state, words.tolist(), strict=True)]
        rows = torch.full((len(state), 6), -math.inf)
        for row, text in enumerate(state):
            for word, probability in self.table.get(text, {EOS: 1.0}).items():
                rows[row, word] = math.log(probability)
        return rows, state

    def reorder(self, state: list[tuple[int, ...]], rows: Tensor) -> list[tuple[int, ...]]:
        return [state[row] for row in rows.tolist()]

    def join(self, states: Sequence[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
        return [text for state in states for text in state]

    def attention(self, state: list[tuple[int, ...]]) -> None:
        return None
