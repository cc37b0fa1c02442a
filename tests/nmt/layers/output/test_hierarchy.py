"""Every layer over a hierarchy: a distribution, word by word as all at once, with exact gradients, and where
the paths lead is part of its weights."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from nmt.errors import ConfigError
from nmt.layers.output import nodes
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy
from tests.nmt.layers.output.layers import (
    V,
    check_backward,
    check_by_differences,
    check_distribution,
    features,
    layer_of,
    slow_log_probs,
)

KINDS: dict[str, dict[str, object]] = {
    "frequency": {"output": "classes"},
    "random": {"output": "classes", "output_classes": "random", "output_class_count": 5},
    "clusters": {"output": "classes", "output_classes": "clusters"},
    "huffman": {"output": "tree"},
    "wide": {"output": "tree", "output_arity": 4},
    "equal": {"output": "tree", "output_tree": "random"},
    "learned": {"output": "learned-tree"},
}


def make(kind: str, bias: bool = True) -> Hierarchical:
    layer = layer_of(bias, **KINDS[kind])  # type: ignore[arg-type]
    assert isinstance(layer, Hierarchical)
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("large", [0, 40, 1 << 12])  # each node alone, some, all from copies of their rows
def test_a_distribution_and_the_product_over_the_path(
    kind: str, bias: bool, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "LARGE", large)
    monkeypatch.setattr(nodes, "COPIED", 100)
    layer = make(kind, bias)
    whole = check_distribution(layer, features())
    assert torch.allclose(whole, slow_log_probs(layer, features()), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("large", [0, 1 << 12])
def test_gradients(kind: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LARGE", large)
    check_backward(make(kind))
    check_backward(make(kind, bias=False))


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("large", [0, 1 << 12])
def test_gradients_by_differences(kind: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LARGE", large)
    check_by_differences(make(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_nodes_of_the_target_get_a_gradient(kind: str) -> None:
    layer = make(kind)
    layer.zero_grad()
    torch.autograd.backward(layer.cross_entropy(features(2), torch.tensor([4, 4])))
    assert layer.rows.grad is not None
    touched = set(layer.node[layer.rows.grad.abs().sum(1) > 0].tolist())
    path = layer.paths[4]
    assert touched <= set(layer.node[path[path >= 0]].tolist()) and touched


@pytest.mark.parametrize("kind", KINDS)
def test_the_hierarchy_is_saved_with_the_weights(kind: str) -> None:
    layer = make(kind)
    other = layer_of(text=False, **KINDS[kind])  # type: ignore[arg-type]
    assert isinstance(other, Hierarchical)
    before = other.log_probs(features())
    other.load_state_dict(layer.state_dict())
    assert not torch.allclose(before, layer.log_probs(features()))
    assert torch.equal(other.log_probs(features()), layer.log_probs(features()))
    targets = torch.arange(10)
    assert torch.equal(other.log_probs_of(features(), targets), layer.log_probs_of(features(), targets))
    assert torch.equal(copy.deepcopy(layer).log_probs(features()), layer.log_probs(features()))


@pytest.mark.parametrize("kind", KINDS)
def test_each_word_has_a_row_of_its_own(kind: str) -> None:
    layer = make(kind)
    assert len(layer.leaf.unique()) == V
    inner = set(layer.above.tolist()) - {-1}
    assert not inner & set(layer.leaf.tolist())


def test_levels_are_neighbors() -> None:
    """Root with rows 0 1 2; below 0 the rows 3 4, below 2 the rows 5 6; below 4 the rows 7 8."""
    tree = Hierarchy(np.array([1, 3, 7, 8, 5, 6]), np.array([-1, 0, 2, 4]), np.array([0, 3, 5, 7, 9]))
    assert tree.levels().tolist() == [0, 3, 7, 9]
    assert tree.paths().tolist() == [
        [1, -1, -1],
        [3, 0, -1],
        [7, 4, 0],
        [8, 4, 0],
        [5, 2, -1],
        [6, 2, -1],
    ]


def test_it_cannot_be_tied() -> None:
    with pytest.raises(ConfigError, match="tied: goes with output: softmax only"):
        make("frequency").tie(nn.Embedding(V, 5))
