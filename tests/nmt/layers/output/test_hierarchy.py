"""Every layer over a hierarchy: a distribution, word by word as all at once, with exact gradients, and where
the paths lead is part of its weights."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.layers.output import hierarchy
from nmt.layers.output.classes import ClassSoftmax, at_random, by_frequency
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy, NodeWeights, softmax_blocks
from nmt.layers.output.softmax import Softmax
from nmt.layers.output.tree import complete_tree, huffman, spread_words, three_level_arity, tree_depth
from tests.nmt.layers.output.layers import (
    K,
    V,
    check_backward,
    check_by_differences,
    check_distribution,
    features,
    layer_of,
    slow_log_probs,
    zipf,
)

# ---- hierarchy ---------------------------------------------------------------------------------------------


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
@pytest.mark.ci
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
    assert torch.equal(
        other.target_log_probs(features(), targets), layer.target_log_probs(features(), targets)
    )
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
    assert tree.paths().tolist() == [[1, -1, -1], [3, 0, -1], [7, 4, 0], [8, 4, 0], [5, 2, -1], [6, 2, -1]]


def test_it_cannot_be_tied() -> None:
    with pytest.raises(ConfigError, match="tied: requires output: softmax"):
        make("frequency").tie(nn.Embedding(V, 5))


# ---- nodes -------------------------------------------------------------------------------------------------
# Softmaxes at nodes: pairs in any order, large and small nodes alike.


STARTS = torch.tensor([0, 3, 4, 9])  # nodes of 3, 1 and 5 rows


def given() -> tuple[Tensor, NodeWeights]:
    torch.manual_seed(0)
    at = NodeWeights(torch.randn(9, 4, dtype=torch.float64), torch.randn(9, dtype=torch.float64), STARTS)
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


# ---- best words --------------------------------------------------------------------------------------------
# The best words by branch and bound are those of all words.


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


# ---- classes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, V])
def test_one_class_or_as_many_as_words_is_the_flat_softmax(count: int) -> None:
    layer = layer_of(output="classes", output_class_count=count)
    assert isinstance(layer, ClassSoftmax) and layer.rows_bias is not None
    flat = Softmax(K, V).double().eval()
    assert flat.words_bias is not None
    # of V classes each has one word, of probability 1, so the rows that matter are those of the classes
    rows = layer.leaf if count == 1 else layer.above[layer.node[layer.leaf]]
    with torch.no_grad():
        flat.words.copy_(layer.rows[rows])
        flat.words_bias.copy_(layer.rows_bias[rows])
    assert torch.allclose(layer.log_probs(features()), flat.log_probs(features()), atol=1e-12)


def test_classes_by_frequency_are_about_equally_likely() -> None:
    text = zipf(1000, 20000)
    counts = np.bincount(text, minlength=1000)
    classes = by_frequency(text, counts, 10)
    mass = np.bincount(classes, counts, minlength=10) / len(text)
    assert classes[1] == 0 and mass[0] < 0.14  # the most frequent word has a class of its own
    assert (mass > 0.05).all() and (mass[2:] < 0.13).all()
    order = np.argsort(-counts, kind="stable")
    assert (np.diff(classes[order]) >= 0).all()


def test_every_class_has_a_word_even_where_one_word_is_nearly_all_of_the_text() -> None:
    counts = np.array([1000, 1, 0, 0, 1, 0])
    for count in (1, 2, 4, 6):
        assert (np.bincount(by_frequency(np.zeros(0, int), counts, count), minlength=count) > 0).all()


def test_random_classes_are_equally_large_and_always_the_same() -> None:
    classes = at_random(np.zeros(0, int), np.zeros(100, int), 10)
    assert (np.bincount(classes) == 10).all() and not np.array_equal(classes, np.sort(classes))
    assert np.array_equal(classes, at_random(np.zeros(0, int), np.zeros(100, int), 10))


def test_the_default_is_the_square_root_of_the_vocabulary() -> None:
    layer = layer_of(words=100, output="classes")
    assert isinstance(layer, ClassSoftmax) and layer.count == 10
    check_distribution(layer, features(4), 100)


def test_a_vocabulary_smaller_than_the_number_of_classes() -> None:
    layer = layer_of(output="classes", output_class_count=50)
    assert isinstance(layer, ClassSoftmax) and layer.count == V


# ---- tree --------------------------------------------------------------------------------------------------
# Huffman trees are optimal; trees of equal depth have a leaf for each word.


def depths(tree_paths: np.ndarray) -> np.ndarray:
    return np.asarray((tree_paths >= 0).sum(1))


def least_cost(counts: list[int], arity: int) -> int:
    """Σ count x depth of the best tree, by trying what is merged first: any `arity` words or fewer."""
    if len(counts) == 1:
        return 0
    best = math.inf
    for size in range(2, arity + 1):
        for chosen in itertools.combinations(range(len(counts)), size):
            total = sum(counts[i] for i in chosen)
            rest = [count for i, count in enumerate(counts) if i not in chosen]
            best = min(best, total + least_cost([*rest, total], arity))
    return int(best)


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize(
    "counts", [[5], [3, 1], [1, 1, 1], [9, 4, 2, 1], [8, 1, 1, 5, 3], [0, 0, 7, 2, 2, 0]]
)
def test_no_tree_is_better(counts: list[int], arity: int) -> None:
    tree = huffman(np.array(counts), arity)
    cost = int((depths(tree.paths()) * counts).sum())
    assert cost == (least_cost(counts, arity) if len(counts) > 1 else counts[0])


@pytest.mark.parametrize("arity", [2, 3, 5, 20])
@pytest.mark.parametrize("words", [1, 2, 3, 4, 5, 6, 7, 21, 50])
def test_every_word_has_a_leaf_of_its_own_and_kraft_holds(words: int, arity: int) -> None:
    """Σ M^-depth <= 1; and the number of nodes does not depend on the counts."""
    rng = np.random.default_rng(words)
    tree = huffman(rng.integers(0, 30, words), arity)
    paths = tree.paths()
    assert len(set(tree.leaf.tolist())) == words
    assert not set(tree.leaf.tolist()) & set(tree.above.tolist())
    assert (float(arity) ** -depths(paths)).sum() <= 1 + 1e-12
    assert len(tree.above) == max(1, -(-(words - 1) // (arity - 1)))
    assert (np.diff(tree.above) > 0).all()  # nodes are numbered level by level


def test_frequent_words_are_near_the_root() -> None:
    counts = 10000 // np.arange(1, 201)
    found = depths(huffman(counts, 2).paths())
    assert (np.diff(found) >= 0).all() and found[0] < 4 < found[-1]
    entropy = -(counts / counts.sum() * np.log2(counts / counts.sum())).sum()
    assert entropy <= (found * counts).sum() / counts.sum() <= entropy + 1


@pytest.mark.parametrize("words, arity", [(1, 2), (7, 2), (8, 2), (9, 2), (60, 4), (1000, 11)])
def test_leaves_of_equal_depth(words: int, arity: int) -> None:
    codes = spread_words(np.random.default_rng(0).permutation(words), arity)
    tree = complete_tree(codes, arity)
    paths = tree.paths()
    depth = tree_depth(words, arity)
    assert (depths(paths) == depth).all() and arity**depth >= words
    assert depth == 1 or arity ** (depth - 1) < words
    assert len(set(tree.leaf.tolist())) == words
    root = np.bincount(paths[:, -1], minlength=arity)
    assert root.max() - root.min() <= 1 or depth == 1  # spread evenly
    digits = [(codes // arity**level) % arity for level in range(depth)]  # from the leaf up
    assert all(np.array_equal(paths[:, level] % arity, digits[level]) for level in range(depth))


def test_three_levels_have_room_to_spare() -> None:
    for words in (2, 10, 1000, 30_000, 250_000):
        assert three_level_arity(words) ** 3 >= 1.05 * words
    assert three_level_arity(250_000) == 65  # that of 000, section 3.5
