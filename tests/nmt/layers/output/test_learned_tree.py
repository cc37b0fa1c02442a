"""The learned tree: statistics of what was computed, rebuilt to where contexts lead, resumed with its
state."""

import numpy as np
import pytest
import torch

from nmt.layers.output.hierarchy import Hierarchy
from nmt.layers.output.learned_tree import LearnedTree
from nmt.layers.output.settings import OutputSettings
from tests.nmt.layers.output.layers import V, check_distribution, features, layer_of, slow_log_probs


def make(**settings: object) -> LearnedTree:
    layer = layer_of(output="learned-tree", **settings)  # type: ignore[arg-type]
    assert isinstance(layer, LearnedTree)
    return layer


def test_statistics_are_the_probabilities_on_the_paths() -> None:
    """SumProbas and Counts of algorithm 3.1, from the root down."""
    layer, given, targets = make(output_arity=3), features(6), torch.tensor([4, 1, 4, 12, 0, 4])
    layer.train()
    layer.cross_entropy(given, targets)
    sums, counts = torch.full_like(layer.sums, 1 / 3), torch.ones_like(layer.counts)
    for row, word in zip(given, targets.tolist(), strict=True):
        for level, taken in enumerate(reversed(layer.paths[word].tolist())):
            node = int(layer.node[taken])
            rows = slice(3 * node, 3 * node + 3)
            scores = layer.rows[rows] @ row + layer.rows_bias[rows] + layer.closed[rows]  # type: ignore[index]
            sums[word, level] += torch.softmax(scores, 0)
            counts[word, level] += 1
    assert torch.allclose(layer.sums, sums) and torch.equal(layer.counts, counts)
    layer.eval()
    layer.cross_entropy(given, targets)
    layer.log_probs_of(given, targets)
    assert torch.equal(layer.counts, counts)  # in training only


def shaken(layer: LearnedTree, seed: int = 0) -> LearnedTree:
    """Statistics that say: go elsewhere."""
    rng = np.random.default_rng(seed)
    layer.counts.copy_(torch.from_numpy(rng.integers(1, 20, layer.counts.shape).astype(float)))
    drawn = rng.dirichlet(np.ones(layer.arity), layer.counts.shape)
    layer.sums.copy_(torch.from_numpy(drawn) * layer.counts[:, :, None])
    return layer


@pytest.mark.parametrize("arity", [0, 2, 4, 13])
def test_after_a_rebuild_it_is_a_distribution_over_the_same_words(arity: int) -> None:
    layer = make(output_arity=arity)
    for seed in range(3):
        before = layer.leaf.clone()
        moved = shaken(layer, seed).rebuild()
        assert moved == int((layer.leaf != before).sum()) and (moved > 0 or arity == 13)
        assert len(layer.leaf.unique()) == V
        whole = check_distribution(layer, features())
        assert torch.allclose(whole, slow_log_probs(layer, features()), atol=1e-12)
        assert torch.equal(layer.best_words(features(), 1)[1][:, 0], whole.argmax(1))


def test_it_is_rebuilt_when_it_is_time() -> None:
    layer = make(output_rebuild=10, output_rebuild_until=20)
    changed = []
    for step in range(1, 41):
        before = shaken(layer, step).leaf.clone()
        layer.updated(step)
        changed.append(not torch.equal(before, layer.leaf))
    assert [step for step, yes in enumerate(changed, 1) if yes] == [10, 20]
    never = shaken(make(output_rebuild=0))
    before = never.leaf.clone()
    never.updated(200)
    assert torch.equal(before, never.leaf)


def test_words_take_their_rows_with_them_and_new_nodes_start_afresh() -> None:
    layer = make(output_arity=2)  # 13 words, 16 leaves
    assert layer.nodes_in_use().all()
    given = layer.hierarchy
    came = []
    for seed in range(8):
        layer.place(Hierarchy(np.arange(13) + 14, given.above, given.starts))
        empty = ~layer.nodes_in_use()
        assert empty.nonzero().tolist() == [[14]]  # above the last two leaves
        before, leaf = layer.rows.detach().clone(), layer.leaf.clone()
        shaken(layer, seed).rebuild()
        assert torch.equal(layer.rows[layer.leaf], before[leaf])
        new = (empty & layer.nodes_in_use())[layer.node]
        inner = torch.ones(len(new), dtype=torch.bool)
        inner[layer.leaf] = False  # rows of nodes, and of leaves without a word
        assert torch.equal((layer.rows != before).any(1) & inner, new & inner)
        came.append(bool(new.any()))
    assert any(came) and not all(came)


def test_the_state_is_saved() -> None:
    layer = shaken(make())
    layer.rebuild()
    other = make()
    other.load_state_dict(layer.state_dict())
    for one in (layer, other):
        torch.manual_seed(0)
        one.train()
        one.cross_entropy(features(), torch.arange(10))
        one.rebuild()
    assert torch.equal(layer.leaf, other.leaf) and torch.equal(layer.sums, other.sums)
    assert torch.equal(layer.rows, other.rows)


def train(rebuild: int, steps: int = 160) -> LearnedTree:
    """16 words of 4 contexts, 4 equally likely words of each, the context given."""
    torch.manual_seed(0)
    layer = LearnedTree(4, 16, True, OutputSettings(output_arity=4, output_rebuild=rebuild))
    layer.learn(np.zeros(0, int))
    # Contexts lead to different children from the start: with small weights words have learned where they
    # are before the first rebuilding, and stay.
    torch.nn.init.normal_(layer.rows, std=1.0)
    optimizer = torch.optim.Adam(layer.parameters(), 0.1)
    targets = torch.arange(16)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        torch.autograd.backward(layer.cross_entropy(torch.eye(4)[targets // 4], targets))
        optimizer.step()
        layer.updated(step)
    return layer.eval()


@pytest.mark.ci
def test_words_of_like_contexts_come_together() -> None:
    """Each context gets a child of the root of its own, and so J rises; in a random tree it does not."""
    learned, fixed = train(rebuild=10), train(rebuild=0)
    groups = learned.codes.reshape(4, 4) // 4
    assert (groups == groups[:, :1]).all() and len(set(groups[:, 0])) == 4
    assert learned.objectives()[0] > fixed.objectives()[0] + 0.1
