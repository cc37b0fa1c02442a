"""Softmaxes at nodes: pairs in any order, large and small nodes alike."""

import pytest
import torch
from torch import Tensor

from nmt.layers.output import nodes
from nmt.layers.output.nodes import Nodes, blocks, path_log_probs

STARTS = torch.tensor([0, 3, 4, 9])  # nodes of 3, 1 and 5 rows


def given() -> tuple[Tensor, Nodes]:
    torch.manual_seed(0)
    at = Nodes(torch.randn(9, 4, dtype=torch.float64), torch.randn(9, dtype=torch.float64), STARTS)
    return torch.randn(6, 4, dtype=torch.float64), at


@pytest.mark.parametrize("large", [0, 25, 1 << 12])
def test_each_pair_once(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LARGE", large)
    monkeypatch.setattr(nodes, "COPIED", 50)
    features, at = given()
    where, of = torch.tensor([5, 0, 1, 2, 2, 2, 4]), torch.tensor([2, 0, 1, 2, 2, 0, 1])
    seen = []
    for block in blocks(features, where, of, at):
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
