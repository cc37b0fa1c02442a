"""The objective J of 000, and words assigned to children as the printed algorithm does it."""

import numpy as np
import pytest

from nmt.layers.output.assignment import ALIKE, MEMORY, affinities, assign, best_objective, objective, rebuild


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
        found = rebuild(codes, sums, counts)
        assert len(set(found.tolist())) == words and found.min() >= 0 and found.max() < arity**depth


def test_words_of_another_node_start_anew_and_the_others_keep_their_statistics() -> None:
    """Less what is forgotten."""
    codes = np.array([0, 1, 2, 3])
    sums, counts = np.full((4, 2, 2), 5.0), np.full((4, 2), 10.0)
    sums[:, 0] = [[9, 1], [1, 9], [2, 8], [8, 2]]  # words 1 and 3 want to change places
    found = rebuild(codes, sums, counts)
    assert (found // 2).tolist() == [0, 1, 1, 0]
    kept = 1 + MEMORY * 9
    assert counts == pytest.approx(np.array([[kept, kept], [kept, 1], [kept, kept], [kept, 1]]))
    assert sums[[1, 3], 1] == pytest.approx(np.full((2, 2), 0.5))
    assert sums[0, 0] == pytest.approx(0.5 + MEMORY * np.array([8.5, 0.5]))


@pytest.mark.parametrize("clear", [9.0, 1.8])
def test_words_that_their_place_suits_stay(clear: float) -> None:
    """Also those that another place would suit even better."""
    codes = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8])
    digits = np.stack([codes // 3, codes % 3], 1)
    sums = np.where(np.arange(3) == digits[:, :, None], clear, 1.0)
    sums[2, 0] = [5, 9, 1]
    counts = sums.sum(2)
    found = rebuild(codes, sums, counts)
    assert np.array_equal(found, codes)


def test_a_word_that_no_child_suits_more_than_others_stays() -> None:
    codes = np.random.default_rng(0).permutation(27)
    sums = np.random.default_rng(1).uniform(0.9, 1.1, (27, 3, 3))
    assert np.array_equal(rebuild(codes, sums, sums.sum(2)), codes)
