"""The best continuations of hypotheses, by hand and against torch.topk, and their history, as a tree."""

import math

import pytest
import torch

from nmt.search.hypotheses import FOLD, PARTLY, History, expand, topk


def test_expand_by_hand() -> None:
    """Two sentences; the first has two rows and room for two, the second one row and room for one."""
    log_probs = torch.tensor([[-9.0, -1.0, -2.0], [-0.5, -3.0, -9.0], [-1.0, -2.0, -3.0]])
    best = expand(
        log_probs,
        torch.tensor([-1.0, -2.0, 0.0], dtype=torch.float64),
        torch.tensor([0, 0, 1]),
        torch.tensor([2, 1]),
    )
    assert best.parent.tolist() == [0, 1, 2] and best.word.tolist() == [1, 0, 0]
    assert best.total.tolist() == [-2.0, -2.5, -1.0] and best.ends.tolist() == [True, False, False]


@pytest.mark.parametrize("words", [PARTLY * 80, PARTLY * 13 + 7, 3 * FOLD + 1, 5])
@pytest.mark.parametrize("k", [1, 4, 5])
def test_folded_rows_have_the_same_best_words(words: int, k: int) -> None:
    """The best stand where folding puts them into one column, at random, and behind the last whole column."""
    scores = torch.randn(8, words + 3)[:, :words]  # rows with a gap, as the output layer gives them
    scores[0, :: max(1, words // FOLD)] += 9
    scores[1, -3:] += 9
    scores[2, k:] = -math.inf
    values, found = topk(scores, k)
    assert torch.equal(values, torch.topk(scores, k).values)
    assert torch.equal(scores.gather(1, found), values)
    assert torch.equal(found[:2], torch.topk(scores[:2], k).indices)


def test_words_are_read_from_the_first_to_a_node() -> None:
    history = History()
    first = history.append(torch.tensor([7, 8]), torch.tensor([-1, -1]), torch.tensor([0, 1]))
    second = history.append(torch.tensor([9]), first[1:], None)
    assert history.read(int(second[0])) == ([8, 9], [1, -1])


def test_forgetting_keeps_what_leads_to_the_nodes() -> None:
    history = History()
    nodes = torch.tensor([-1, -1, -1])
    for step in range(5):
        nodes = history.append(torch.arange(3) + 10 * step, nodes, torch.arange(3))
    before = [history.read(int(node)) for node in nodes[[2, 0]]]
    kept = history.forget(nodes[[2, 0]])
    assert [history.read(int(node)) for node in kept] == before
    assert len(history) == 10
    assert history.forget(torch.tensor([-1])).tolist() == [-1] and len(history) == 0
