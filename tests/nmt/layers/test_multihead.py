"""Multi-head attention against its equation, word by word and head by head in plain loops."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.data.batches import pack
from nmt.layers.affine import Affine
from nmt.layers.grids import WordGrid
from nmt.layers.initialize import initialize
from nmt.layers.multihead import SelfAttention, SourceAttention, attend

D, HEADS = 6, 2
SENTENCES, OTHERS = [[3, 4], [5], [6, 7, 8, 9]], [[3], [4, 5, 6], [7, 8]]


def weighted(query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """One query: the outputs of its heads side by side, and the mean of their weights."""
    d, parts, weights = D // HEADS, [], []
    for head in range(HEADS):
        cut = slice(head * d, (head + 1) * d)
        energies = [
            sum(float(a) * float(b) for a, b in zip(query[cut], key[cut], strict=True)) for key in keys
        ]
        shares = [math.exp(energy / math.sqrt(d)) for energy in energies]
        total = sum(shares)
        parts.append(sum(share / total * value[cut] for share, value in zip(shares, values, strict=True)))
        weights.append(torch.tensor([share / total for share in shares], dtype=torch.float64))
    return torch.cat(parts), sum(weights) / HEADS  # type: ignore[arg-type,return-value]


def filled(layer: torch.nn.Module) -> None:
    torch.manual_seed(0)
    initialize(layer, "glorot", 0)
    with torch.no_grad():
        for part in layer.modules():
            if isinstance(part, Affine):
                part.bias.normal_()
    layer.double().eval()


@torch.no_grad()
def test_words_look_at_their_own_sentence() -> None:
    layer = SelfAttention(D, HEADS, 0.5)
    filled(layer)
    packed = pack(SENTENCES)
    x = torch.randn(7, D, dtype=torch.float64)
    grid = WordGrid.of(packed, x)
    for causal in (False, True):
        found = packed.split(layer(x, grid, causal))
        for own, rows in zip(packed.split(layer.inputs(x)), found, strict=True):
            queries, keys, values = own.chunk(3, 1)
            for place, row in enumerate(rows):
                seen = slice(0, place + 1 if causal else len(own))
                mean, _ = weighted(queries[place], list(keys[seen]), list(values[seen]))
                assert torch.allclose(row, layer.outputs(mean), atol=1e-12)


@torch.no_grad()
def test_words_look_at_another_sentence() -> None:
    layer = SourceAttention(D, HEADS, 0.5)
    filled(layer)
    packed, others = pack(SENTENCES), pack(OTHERS)
    x, states = torch.randn(7, D, dtype=torch.float64), torch.randn(6, D, dtype=torch.float64)
    grid = WordGrid.of(packed, x)
    memory = layer.memory(states, WordGrid.of(others, x))
    found, weights = layer(x, grid, memory), layer.weights(x, grid, memory)
    pairs = others.split(layer.pairs(states))
    for queries, rows, shares, pair in zip(
        packed.split(layer.query(x)), packed.split(found), packed.split(weights), pairs, strict=True
    ):
        keys, values = pair.chunk(2, 1)
        for query, row, share in zip(queries, rows, shares, strict=True):
            mean, expected = weighted(query, list(keys), list(values))
            assert torch.allclose(row, layer.outputs(mean), atol=1e-12)
            assert torch.allclose(share[: len(keys)], expected) and not share[len(keys) :].any()


def test_dropped_weights_are_zero_on_average_nothing_changes() -> None:
    """Dropout of weights: the mean of many draws is the attention without it, also where it is causal."""
    torch.manual_seed(0)
    query, keys, values = torch.randn(3, 1, 2, 5, 4)
    mask = torch.tensor([0.0, 0, 0, 0, -math.inf])[None, None, None]
    for causal, seen in ((False, mask), (True, None)):
        exact = attend(query, keys, values, seen, 0.0, causal)
        drawn = torch.stack([attend(query, keys, values, seen, 0.4, causal) for _ in range(500)])
        assert torch.allclose(drawn.mean(0), exact, atol=0.25) and float(drawn.std(0).mean()) > 0.1
