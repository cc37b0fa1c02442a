"""A layer and a stack against their equations; the incremental stack is the same function."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from nmt.data.batches import make_batch
from nmt.layers.grids import WordGrid
from nmt.layers.initialize import initialize
from nmt.layers.past import Past
from nmt.layers.positions import sinusoids
from nmt.layers.transformer import Layer, Stack
from nmt.layers.transformer_config import TransformerSizes

D, F_UNITS, V = 6, 5, 9


def sizes(norm: str) -> TransformerSizes:
    return TransformerSizes(embedding=D, feed_forward=F_UNITS, heads=2, norm=norm)


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_is_what_its_equations_say(norm: str) -> None:
    """norm(x + f(x)) three times, or x + f(norm(x)); FFN = W2 ReLU(W1 x + b1) + b2."""
    torch.manual_seed(0)
    layer = Layer(sizes(norm), sees_source=True)
    initialize(layer, "glorot", 0)
    layer.double().eval()
    mixes = [torch.randn(D, D, dtype=torch.float64) for _ in range(2)]
    x = torch.randn(4, D, dtype=torch.float64)
    found = layer(x, lambda y: y @ mixes[0], lambda y: y @ mixes[1])

    def normed(y: torch.Tensor) -> torch.Tensor:
        return (y - y.mean(1, keepdim=True)) / (y.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    feed = layer.feed_forward
    parts: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda y: y @ mixes[0],
        lambda y: y @ mixes[1],
        lambda y: F.linear(F.linear(y, feed.inner.weight).clamp(min=0), feed.outer.weight),
    ]
    for part in parts:
        x = normed(x + part(x)) if norm == "post" else x + part(normed(x))
    assert torch.allclose(found, x, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_one_word_at_a_time_is_the_sentence_at_once(norm: str) -> None:
    torch.manual_seed(0)
    stack = Stack(sizes(norm), 2, V, causal=True)
    initialize(stack, "glorot", 0)
    stack.double().eval()
    batch = make_batch([[]], [[3, 4, 5]])
    whole = stack(batch.previous, WordGrid.of(batch.target, stack.embedding.weight))
    past = Past.start(1, torch.device("cpu"))
    for row, word in zip(whole, batch.previous, strict=True):
        features, past, weights = stack.advance(past, word[None])
        assert torch.allclose(features[0], row, atol=1e-12) and weights is None


@torch.no_grad()
def test_words_are_scaled_and_know_their_places() -> None:
    torch.manual_seed(0)
    stack = Stack(sizes("pre"), 1, V, causal=False)
    initialize(stack, "glorot", 0)
    stack.eval()
    found = stack.embed(torch.tensor([3, 4]), torch.tensor([0, 5]))
    expected = stack.embedding.weight[[3, 4]] * math.sqrt(D) + sinusoids(6, D).float()[[0, 5]]
    assert torch.allclose(found, expected)
    wide = Stack(sizes("pre"), 1, 4000, causal=False)
    initialize(wide, "glorot", 0)
    assert float(wide.embedding.weight.std()) == pytest.approx(D**-0.5, rel=0.03)
    assert all(
        bool((part.weight == 1).all()) for part in wide.modules() if isinstance(part, torch.nn.LayerNorm)
    )
