"""The gated recursive convolution against the naive recursion of its equations, one node at a time."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from nmt.data.batches import pack
from nmt.layers.grconv import GatedConvolution, levels
from nmt.layers.initialize import initialize

E, D = 3, 5
LENGTHS = [4, 1, 6, 3, 3, 2]


def make(seed: int = 0) -> GatedConvolution:
    torch.manual_seed(seed)
    layer = GatedConvolution(E, D, bias=True).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0, 0.7)
    return layer


def sentences() -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(length, E, dtype=torch.float64) for length in LENGTHS]


def packed(texts: list[Tensor]) -> tuple[Tensor, list[int], list[int]]:
    """Words in packed order, sizes, and which sentence each row is."""
    layout = pack([[1] * len(text) for text in texts])
    words = [texts[layout.order[row]][step] for step, rows in enumerate(layout.sizes) for row in range(rows)]
    return torch.stack(words), layout.sizes, layout.order.tolist()


def node(layer: GatedConvolution, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """ĥ = φ(W_l l + W_r r + b), ω = softmax(G_l l + G_r r + b_g), h = ω_c ĥ + ω_l l + ω_r r"""
    W_l, W_r, G_l, G_r, bias, gates_bias = layer.matrices()
    candidate = torch.relu(W_l @ left + W_r @ right + bias)
    gates = torch.softmax(G_l @ left + G_r @ right + gates_bias, 0)
    return gates[0] * candidate + gates[1] * left + gates[2] * right, gates


def naive(layer: GatedConvolution, text: Tensor) -> tuple[Tensor, list[Tensor]]:
    level, all_gates = [layer.leaf @ word for word in text], []
    while len(level) > 1:
        above = [node(layer, left, right) for left, right in pairwise(level)]
        level = [h for h, _ in above]
        all_gates += [gates for _, gates in above]
    return level[0], all_gates


def test_the_triangle_equals_the_recursion() -> None:
    layer, texts = make(), sentences()
    words, sizes, order = packed(texts)
    roots, gates = layer(words, sizes), layer.node_gates(words, sizes)
    for row, sentence in enumerate(order):
        expected, expected_gates = naive(layer, texts[sentence])
        assert torch.allclose(roots[row], expected, atol=1e-12)
        T = len(texts[sentence])
        assert gates[row].shape == (T * (T - 1) // 2, 3)
        if T > 1:
            assert torch.allclose(gates[row], torch.stack(expected_gates), atol=1e-12)
            assert torch.allclose(gates[row].sum(1), torch.ones(len(gates[row]), dtype=torch.float64))


def test_a_batch_is_its_sentences_alone() -> None:
    layer, texts = make(), sentences()
    words, sizes, order = packed(texts)
    together = layer(words, sizes)
    for row, sentence in enumerate(order):
        assert torch.allclose(layer(*packed([texts[sentence]])[:2])[0], together[row], atol=1e-12)


def test_gradients_equal_those_of_the_recursion() -> None:
    layer, texts = make(), sentences()
    weights = torch.randn(len(texts), D, dtype=torch.float64)
    words, sizes, order = packed(texts)
    words.requires_grad_()
    parameters = dict(layer.named_parameters())
    found = torch.autograd.grad((layer(words, sizes) * weights[order]).sum(), list(parameters.values()))
    roots = torch.stack([naive(layer, text)[0] for text in texts])
    expected = torch.autograd.grad((roots * weights).sum(), list(parameters.values()))
    for name, one, other in zip(parameters, found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-10), name
    assert torch.autograd.gradcheck(lambda words: layer(words, sizes), (words,))


def test_one_word_is_its_leaf() -> None:
    layer, word = make(), torch.randn(1, E, dtype=torch.float64)
    assert torch.allclose(layer(word, [1])[0], layer.leaf @ word[0])


@pytest.mark.parametrize(("gate", "which"), [(1, 0), (2, -1)])
def test_gates_that_always_take_one_child_lead_to_the_first_or_last_word(gate: int, which: int) -> None:
    layer, texts = make(), sentences()
    with torch.no_grad():
        layer.gates_left.zero_(), layer.gates_right.zero_(), layer.gates_bias.zero_()  # type: ignore[union-attr]
        layer.gates_bias[gate] = 1e4  # type: ignore[index]
    words, sizes, order = packed(texts)
    for row, sentence in enumerate(order):
        assert torch.allclose(layer(words, sizes)[row], layer.leaf @ texts[sentence][which])


def test_levels_by_hand() -> None:
    """Sentences of 3, 3 and 1 words: sizes 3 2 2. Level 1 has positions 0 and 1 of the first two, level 2
    position 0 of both."""
    found = [
        (level.left.tolist(), level.right, level.done) for level in levels([3, 2, 2], torch.device("cpu"))
    ]
    assert found == [
        ([0, 1, 3, 4], slice(3, 7), slice(2, 3)),
        ([0, 1], slice(2, 4), slice(2, 2)),
        ([], slice(2, 2), slice(0, 2)),
    ]


def test_recurrent_matrices_start_orthogonal_at_the_papers_radius() -> None:
    layer = GatedConvolution(E, 30)
    with torch.no_grad():
        initialize(layer, "paper", 0.01)
    for matrix in (layer.recurrent_left, layer.recurrent_right):
        assert torch.allclose(
            torch.linalg.svdvals(matrix), torch.full((30,), 0.4), atol=1e-5
        )  # section 6.3.2
