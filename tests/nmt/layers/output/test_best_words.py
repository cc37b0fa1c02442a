"""The best words by branch and bound are those of all words; a wide beam over the tree finds them too."""

import pytest
import torch

from nmt.layers.output import best_words, hierarchy, nodes
from nmt.layers.output.hierarchy import Hierarchical
from tests.nmt.layers.output.layers import V, features, layer_of
from tests.nmt.layers.output.test_hierarchy import KINDS, make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3, V, V + 2])
@pytest.mark.parametrize("at_a_time", [1, 2, 50])
def test_exactly_the_best(kind: str, count: int, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_words, "AT_A_TIME", at_a_time)
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
    blocks = nodes.blocks

    def counted(features, where, of, at):  # type: ignore[no-untyped-def]
        looked.append(len(of))
        return blocks(features, where, of, at)

    monkeypatch.setattr(best_words, "blocks", counted)
    words = layer.best_words(given, 1)[1]
    assert torch.equal(words[:, 0], layer.log_probs(given).argmax(1))
    assert sum(looked) < 8 * len(layer.above) / 3


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_rows_that_are_given_up_are_computed_in_full(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_words, "ROUNDS", rounds)
    monkeypatch.setattr(hierarchy, "PLAIN", 7)
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
