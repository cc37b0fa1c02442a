"""The learned tree: statistics of what was computed, rebuilt to where contexts lead, resumed with its
state."""

import numpy as np
import pytest
import torch

from nmt.config.settings import changed
from nmt.layers.output.base import OutputSettings
from nmt.layers.output.hierarchy import Hierarchy
from nmt.papers.learned_tree import (
    ALIKE,
    RETAINED,
    LearnedTree,
    affinities,
    assign,
    best_objective,
    objective,
    rebuild_codes,
)
from tests.nmt.layers.output.layers import V, check_distribution, features, layer_of, slow_log_probs

# ---- learned tree ------------------------------------------------------------------------------------------


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
    layer.target_log_probs(given, targets)
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
        layer.on_update(step)
        changed.append(not torch.equal(before, layer.leaf))
    assert [step for step, yes in enumerate(changed, 1) if yes] == [10, 20]
    never = shaken(make(output_rebuild=0))
    before = never.leaf.clone()
    never.on_update(200)
    assert torch.equal(before, never.leaf)


def test_words_take_their_rows_with_them_and_new_nodes_start_afresh() -> None:
    layer = make(output_arity=2)  # 13 words, 16 leaves
    assert layer.nodes_in_use().all()
    given = layer.hierarchy
    came = []
    for seed in range(8):
        layer.set_hierarchy(Hierarchy(np.arange(13) + 14, given.above, given.starts))
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
    layer = LearnedTree(4, 16, True, changed(OutputSettings(output_arity=4), {"output_rebuild": rebuild}))
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
        layer.on_update(step)
    return layer.eval()


@pytest.mark.ci
def test_words_of_like_contexts_come_together() -> None:
    """Each context gets a child of the root of its own, and so J rises; in a random tree it does not."""
    learned, fixed = train(rebuild=10), train(rebuild=0)
    groups = learned.codes.reshape(4, 4) // 4
    assert (groups == groups[:, :1]).all() and len(set(groups[:, 0])) == 4
    assert learned.objectives()[0] > fixed.objectives()[0] + 0.1


# ---- assignment --------------------------------------------------------------------------------------------
# The objective J of 000, and words assigned to children as the printed algorithm does it.


def random_node(seed: int, words: int, arity: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(words)), rng.dirichlet(np.ones(arity), words)


def test_the_worked_node_of_the_thesis() -> None:
    """Figure 3.4: p_r = .4508, J = .3235 (printed .45 and .32)."""
    right = np.array([0.55, 0.62, 0.25, 0.30])
    shares = np.array([0.15, 0.39, 0.23, 0.23])
    assert shares @ right == pytest.approx(0.4508, abs=5e-5)
    assert objective(shares, np.stack([right, 1 - right], 1)) == pytest.approx(0.3235, abs=5e-5)


@pytest.mark.parametrize("arity", [2, 3, 7])
def test_j_lies_between_0_and_its_maximum(arity: int) -> None:
    shares, given = random_node(50, 9, arity)
    for seed in range(50):
        shares, given = random_node(seed, 9, arity)
        sharp = np.eye(arity)[given.argmax(1)]
        for found in (objective(shares, given), objective(shares, sharp)):
            assert -1e-12 <= found <= best_objective(arity) + 1e-12
    assert objective(shares, np.tile(given[:1], (9, 1))) == pytest.approx(0)  # every word alike


@pytest.mark.parametrize("arity", [2, 3, 7])
def test_j_is_greatest_where_the_node_is_balanced_and_pure(arity: int) -> None:
    pure, shares = np.eye(arity)[np.arange(3 * arity) % arity], np.full(3 * arity, 1 / (3 * arity))
    assert objective(shares, pure) == pytest.approx(best_objective(arity))
    assert objective(shares, 0.9 * pure + 0.1 / arity) < best_objective(arity) - 0.01  # not pure
    uneven = np.where(np.arange(3 * arity) == 0, 2.0, 1.0)
    assert objective(uneven / uneven.sum(), pure) < best_objective(arity) - 0.001  # not balanced


def greedy(node: np.ndarray, gains: np.ndarray, room: int, present: np.ndarray) -> np.ndarray:
    """Algorithm 3.3, line by line, at each node; of equals the first word, then its present child."""
    child = np.full(len(node), -1)
    for number in np.unique(node):
        unassigned, full = set(np.flatnonzero(node == number).tolist()), set[int]()
        assigned = [0] * gains.shape[1]
        while unassigned:
            word, best = min(
                ((i, j) for i in unassigned for j in range(gains.shape[1]) if j not in full),
                key=lambda pair: (-gains[pair], pair[0], pair[1] != present[pair[0]], pair[1]),
            )
            child[word] = best
            unassigned.remove(word)
            assigned[best] += 1
            if assigned[best] == room:
                full.add(best)
    return child


@pytest.mark.parametrize("seed", range(30))
def test_filling_all_nodes_side_by_side_is_the_greedy_algorithm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, arity, room = (int(rng.integers(1, 5)), int(rng.integers(2, 6)), int(rng.integers(1, 5)))
    node = np.sort(rng.integers(0, nodes, min(60, nodes * room)))
    node = np.concatenate([np.flatnonzero(node == n)[: arity * room] * 0 + n for n in range(nodes)])
    rng.shuffle(node)
    gains = rng.normal(size=(len(node), arity))
    if seed % 3 == 0:
        gains = gains.round(0)  # many ties
    if seed % 3 == 1:
        gains[:] = gains[0]  # all like the same child
    present = rng.integers(0, arity, len(node))
    found = assign(node, gains, room, present)
    assert np.array_equal(found, greedy(node, gains, room, present))
    assert np.bincount(node * arity + found).max(initial=0) <= room


def test_affinities_are_those_of_each_node() -> None:
    """q (1 - q) p_{j|i} sign(p_{j|i} - p_j), with p_j = Σ S / Σ C; the sign is 0 where they are alike."""
    rng = np.random.default_rng(0)
    node = np.array([0, 1, 0, 2, 1, 0, 0, 1, 1, 0])
    counts = rng.integers(2, 9, 10).astype(float)
    sums = rng.dirichlet(np.ones(3), 10) * counts[:, None]
    found = affinities(node, sums, counts)
    signs = set()
    for number in range(3):
        of = node == number
        q, given = counts[of] / counts[of].sum(), sums[of] / counts[of][:, None]
        mean = sums[of].sum(0) / counts[of].sum()
        assert mean == pytest.approx(q @ given)
        sign = np.where((given > ALIKE * mean) | (given < mean / ALIKE), np.sign(given - mean), 0)
        assert found[of] == pytest.approx((q * (1 - q))[:, None] * given * sign)
        signs |= set(sign.flatten())
    assert signs == {-1, 0, 1}
    counts[4] = 1
    assert not affinities(node, sums, counts)[4].any()  # not seen there


@pytest.mark.parametrize("words, arity, depth", [(8, 2, 3), (20, 3, 3), (9, 3, 2), (5, 5, 1), (1, 2, 1)])
def test_a_rebuilt_tree_has_a_leaf_for_each_word(words: int, arity: int, depth: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = rng.permutation(arity**depth)[:words]
        counts = rng.integers(1, 20, (words, depth)).astype(np.float32)
        sums = (rng.dirichlet(np.ones(arity), (words, depth)) * counts[:, :, None]).astype(np.float32)
        found = rebuild_codes(codes, sums, counts)
        assert len(set(found.tolist())) == words and found.min() >= 0 and found.max() < arity**depth


def test_words_of_another_node_start_anew_and_the_others_keep_their_statistics() -> None:
    """Less what is forgotten."""
    codes = np.array([0, 1, 2, 3])
    sums, counts = np.full((4, 2, 2), 5.0), np.full((4, 2), 10.0)
    sums[:, 0] = [[9, 1], [1, 9], [2, 8], [8, 2]]  # words 1 and 3 want to change places
    found = rebuild_codes(codes, sums, counts)
    assert (found // 2).tolist() == [0, 1, 1, 0]
    kept = 1 + RETAINED * 9
    assert counts == pytest.approx(np.array([[kept, kept], [kept, 1], [kept, kept], [kept, 1]]))
    assert sums[[1, 3], 1] == pytest.approx(np.full((2, 2), 0.5))
    assert sums[0, 0] == pytest.approx(0.5 + RETAINED * np.array([8.5, 0.5]))


@pytest.mark.parametrize("clear", [9.0, 1.8])
def test_words_that_their_place_suits_stay(clear: float) -> None:
    """Also those that another place would suit even better."""
    codes = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8])
    digits = np.stack([codes // 3, codes % 3], 1)
    sums = np.where(np.arange(3) == digits[:, :, None], clear, 1.0)
    sums[2, 0] = [5, 9, 1]
    counts = sums.sum(2)
    found = rebuild_codes(codes, sums, counts)
    assert np.array_equal(found, codes)


def test_a_word_that_no_child_suits_more_than_others_stays() -> None:
    codes = np.random.default_rng(0).permutation(27)
    sums = np.random.default_rng(1).uniform(0.9, 1.1, (27, 3, 3))
    assert np.array_equal(rebuild_codes(codes, sums, sums.sum(2)), codes)
