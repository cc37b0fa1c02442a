"""Every layer over a hierarchy: a distribution, word by word as all at once, with exact gradients, and where
the paths lead is part of its weights."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.layers.output import hierarchy
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy, Nodes, path_log_probs, softmax_blocks
from tests.nmt.layers.output.layers import (
    V,
    check_backward,
    check_by_differences,
    check_distribution,
    features,
    layer_of,
    slow_log_probs,
)

# ---- test hierarchy ----------------------------------------------------------------------------------------


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
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_PRODUCT", large)
    monkeypatch.setattr("nmt.layers.output.hierarchy.COPIED", 100)
    layer = make(kind, bias)
    whole = check_distribution(layer, features())
    assert torch.allclose(whole, slow_log_probs(layer, features()), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("large", [0, 1 << 12])
def test_gradients(kind: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_PRODUCT", large)
    check_backward(make(kind))
    check_backward(make(kind, bias=False))


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("large", [0, 1 << 12])
def test_gradients_by_differences(kind: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_PRODUCT", large)
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


# ---- test nodes --------------------------------------------------------------------------------------------
# Softmaxes at nodes: pairs in any order, large and small nodes alike.


STARTS = torch.tensor([0, 3, 4, 9])  # nodes of 3, 1 and 5 rows


def given() -> tuple[Tensor, Nodes]:
    torch.manual_seed(0)
    at = Nodes(torch.randn(9, 4, dtype=torch.float64), torch.randn(9, dtype=torch.float64), STARTS)
    return torch.randn(6, 4, dtype=torch.float64), at


@pytest.mark.parametrize("large", [0, 25, 1 << 12])
def test_each_pair_once(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_PRODUCT", large)
    monkeypatch.setattr("nmt.layers.output.hierarchy.COPIED", 50)
    features, at = given()
    where, of = torch.tensor([5, 0, 1, 2, 2, 2, 4]), torch.tensor([2, 0, 1, 2, 2, 0, 1])
    seen = []
    for block in softmax_blocks(features, where, of, at):
        for pair, found in zip(block.pairs.tolist(), block.log_probs, strict=True):
            rows = slice(*STARTS[int(of[pair]) : int(of[pair]) + 2].tolist())
            wanted = torch.log_softmax(at.matrix[rows] @ features[where[pair]] + at.bias[rows], 0)
            assert torch.allclose(found[: len(wanted)], wanted)
            assert torch.equal(found[len(wanted) :].exp(), torch.zeros(len(found) - len(wanted)).double())
            seen.append(pair)
    assert sorted(seen) == list(range(7))


def test_words_whose_paths_share_a_node() -> None:
    """Two words of the same row of features: both steps at node 0 count."""
    features, at = given()
    pairs = (torch.tensor([1, 1]), torch.tensor([0, 0]), torch.tensor([2, 0]), torch.tensor([0, 1]))
    found = path_log_probs(features, (at.matrix, None, at.bias, STARTS), pairs, 2)
    wanted = torch.log_softmax(at.matrix[:3] @ features[1] + at.bias[:3], 0)[[2, 0]]
    assert torch.allclose(found, wanted)


# ---- test best words ---------------------------------------------------------------------------------------
# The best words by branch and bound are those of all words; a wide beam over the tree finds them too.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3, V, V + 2])
@pytest.mark.parametrize("at_a_time", [1, 2, 50])
def test_exactly_the_best(kind: str, count: int, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.layers.output.hierarchy.NODES_AT_A_TIME", at_a_time)
    layer, given = make(kind), features(30) * 2
    whole = layer.log_probs(given).detach()
    values, words = whole.topk(min(count, V), 1)
    found, which = layer.best_words(given, count)
    assert torch.allclose(found[:, :V], values, atol=1e-12)
    assert torch.equal(which[:, :V], words)
    assert (which[:, V:] == -1).all() and (found[:, V:] == -torch.inf).all()


def test_few_nodes_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the paths are clear."""
    layer = layer_of(words=200, output="learned-tree")
    assert isinstance(layer, Hierarchical)
    given, looked = features(8) * 20, []
    blocks = hierarchy.softmax_blocks

    def counted(features, where, of, at):  # type: ignore[no-untyped-def]
        looked.append(len(of))
        return blocks(features, where, of, at)

    monkeypatch.setattr("nmt.layers.output.hierarchy.softmax_blocks", counted)
    words = layer.best_words(given, 1)[1]
    assert torch.equal(words[:, 0], layer.log_probs(given).argmax(1))
    assert sum(looked) < 8 * len(layer.above) / 3


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_rows_that_are_given_up_are_computed_in_full(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.layers.output.hierarchy.BOUND_ROUNDS", rounds)
    monkeypatch.setattr("nmt.layers.output.hierarchy.PLAIN", 7)
    for count in (1, V + 2):
        values, words = make("huffman").best_words(features(30), count)
        wanted = make("huffman").log_probs(features(30)).detach().topk(min(count, V), 1)
        assert torch.allclose(values[:, :V], wanted.values) and torch.equal(words[:, :V], wanted.indices)


@pytest.mark.parametrize("kind", KINDS)
def test_a_beam_over_the_tree(kind: str) -> None:
    """A width of all nodes is exact; a narrow one finds words whose log p is right, and no better ones."""
    layer, given = make(kind), features(30) * 2
    whole = layer.log_probs(given).detach()
    assert torch.equal(layer.best_words(given, 2, width=V)[1], whole.topk(2, 1).indices)
    found, words = layer.best_words(given, 1, width=1)
    assert torch.allclose(found, whole.gather(1, words), atol=1e-12)
    assert (found[:, 0] <= whole.amax(1) + 1e-12).all()
