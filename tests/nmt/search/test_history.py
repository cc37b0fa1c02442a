"""What hypotheses have written, as a tree."""

import torch

from nmt.search.history import History


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
