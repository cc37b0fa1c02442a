"""A layer and a stack against their equations; the incremental stack is the same function."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.data.batches import pack
from nmt.errors import ConfigError
from nmt.layers.attention import WordGrid
from nmt.layers.initialize import initialize
from nmt.layers.transformer import (
    POSITIONS,
    SINUSOIDS,
    Affine,
    FeedForward,
    Layer,
    LearnedPositions,
    NoPositions,
    SelfAttention,
    SinusoidalPositions,
    SourceAttention,
    Stack,
    TransformerSizes,
    attend,
    dropout,
    sinusoids,
)

# ---- transformer -------------------------------------------------------------------------------------------


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
@pytest.mark.parametrize(
    ("activation", "value"), [("relu", 1.5), ("gelu", 1.5 * 0.9331927987), ("swish", 1.5 * 0.8175744762)]
)
def test_activations(activation: str, value: float) -> None:
    """At 1.5: x, x Φ(x), x sigmoid(x)."""
    feed = FeedForward(TransformerSizes(embedding=2, feed_forward=1, activation=activation))
    feed.inner.weight.fill_(0.75)
    feed.outer.weight.fill_(1)
    assert feed.eval()(torch.ones(1, 2)).tolist() == [[pytest.approx(value, abs=1e-6)] * 2]


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


# ---- multihead ---------------------------------------------------------------------------------------------
# Multi-head attention against its equation, word by word and head by head in plain loops.


WIDTH, MULTIHEAD_HEADS = 6, 2
SENTENCES, OTHERS = [[3, 4], [5], [6, 7, 8, 9]], [[3], [4, 5, 6], [7, 8]]


def weighted(query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """One query: the outputs of its heads side by side, and the mean of their weights."""
    d, parts, weights = WIDTH // MULTIHEAD_HEADS, [], []
    for head in range(MULTIHEAD_HEADS):
        cut = slice(head * d, (head + 1) * d)
        energies = [
            sum(float(a) * float(b) for a, b in zip(query[cut], key[cut], strict=True)) for key in keys
        ]
        shares = [math.exp(energy / math.sqrt(d)) for energy in energies]
        total = sum(shares)
        parts.append(sum(share / total * value[cut] for share, value in zip(shares, values, strict=True)))
        weights.append(torch.tensor([share / total for share in shares], dtype=torch.float64))
    return torch.cat(parts), sum(weights) / MULTIHEAD_HEADS  # type: ignore[arg-type,return-value]


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
    layer = SelfAttention(WIDTH, MULTIHEAD_HEADS, 0.5)
    filled(layer)
    packed = pack(SENTENCES)
    x = torch.randn(7, WIDTH, dtype=torch.float64)
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
    layer = SourceAttention(WIDTH, MULTIHEAD_HEADS, 0.5)
    filled(layer)
    packed, others = pack(SENTENCES), pack(OTHERS)
    x, states = torch.randn(7, WIDTH, dtype=torch.float64), torch.randn(6, WIDTH, dtype=torch.float64)
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


# ---- positions ---------------------------------------------------------------------------------------------
# Vectors of places.


def test_sinusoids_are_what_the_paper_says() -> None:
    table = sinusoids(5, 6)
    for place in range(5):
        for i in range(3):
            angle = place / 10000 ** (2 * i / 6)
            assert table[place, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[place, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


def test_split_sinusoids_have_the_sines_first() -> None:
    positions, table = POSITIONS["sinusoidal-split"](6, 1), sinusoids(SINUSOIDS + 2, 6).float()
    far = torch.tensor([0, 3, SINUSOIDS + 1])
    assert torch.equal(positions(far), table[far][:, [0, 2, 4, 1, 3, 5]])


class DevicesUsed(TorchDispatchMode):
    """Records the devices on which results are computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(
        self,
        function: Callable[..., Tensor],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> Tensor:
        result = function(*args, **(kwargs or {}))
        self.names.add(result.device.type)
        return result


def test_places_behind_the_table() -> None:
    positions, far = SinusoidalPositions(4, 1), torch.tensor([0, SINUSOIDS + 5])
    assert torch.equal(positions(far), sinusoids(SINUSOIDS + 6, 4).float()[far])
    assert not positions.state_dict(), "they are not weights"
    count = SINUSOIDS + 44
    one_by_one = torch.cat([positions(torch.tensor([place]), place + 1) for place in range(count)])
    assert torch.equal(one_by_one, sinusoids(count, 4).float())
    assert positions(far).data_ptr() and len(positions.longer) >= count, "kept for the next step"
    elsewhere, there = positions.to("meta"), far.to("meta")
    with DevicesUsed() as used:  # a copy from the CPU ends the recording of CUDA graphs
        elsewhere(there, SINUSOIDS + 6)
    assert used.names == {"meta"}
    learned = LearnedPositions(4, 3)
    torch.nn.init.normal_(learned.weight)
    assert torch.equal(learned(torch.tensor([2, 9])), learned.weight[[2, 2]])
    assert not NoPositions(4, 3)(torch.tensor([2, 9])).any()
    assert positions(torch.zeros(0, dtype=torch.long)).shape == (0, 4)


# ---- dropout -----------------------------------------------------------------------------------------------
# Dropout keeps the expected share and the expected value.


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_shares_and_means(share: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(401, 499, dtype=torch.float64)
    found = dropout(x, share, True)
    kept = 1 - share
    deviation = (kept * (1 - kept) / x.numel()) ** 0.5
    assert float((found > 0).double().mean()) == pytest.approx(kept, abs=5 * deviation + 2**-16)
    assert torch.allclose(found[found > 0], torch.tensor(1 / kept, dtype=torch.float64), rtol=1e-4)
    rows, columns = (found > 0).double().mean(1), (found > 0).double().mean(0)
    for means, count in ((rows, 499), (columns, 401)):
        assert float((means - kept).abs().max()) < 6 * (kept * (1 - kept) / count) ** 0.5 + 1e-4


def test_the_gradient_is_of_what_was_kept() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 3, requires_grad=True)
    found = dropout(x, 0.5, True)
    found.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, (found != 0) * 2.0)


def test_without_training_nothing_is_drawn() -> None:
    x, before = torch.randn(3), torch.get_rng_state()
    assert dropout(x, 0.5, False) is x and dropout(x, 0.0, True) is x
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    first = dropout(x, 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 0.5, True), first)


# ---- transformer config ------------------------------------------------------------------------------------
# Sizes that do not go together are refused.


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (TransformerSizes(embedding=10, heads=4), r"lm\.heads: 4 heads do not divide lm\.embedding, 10"),
        (TransformerSizes(embedding=9, heads=3, positions="sinusoidal-split"), "-split needs an even"),
        (TransformerSizes(embedding=9, heads=3), r"lm\.positions: sinusoidal needs an even lm\.embedding"),
    ],
)
def test_sizes(sizes: TransformerSizes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sizes.check_sizes("lm.")
