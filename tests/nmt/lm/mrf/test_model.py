"""p of a word given its neighbors = that of the joint model by enumeration; rings and windows."""

import itertools

import numpy as np
import pytest
import torch

from nmt.lm.mrf.config import MRFConfig
from nmt.lm.mrf.model import NONE, ChainMRF, ring, windows
from nmt.text.vocab import EOS


def small(order: int = 2, vocab_size: int = 5) -> ChainMRF:
    model = ChainMRF(MRFConfig(order=order, dimension=3), vocab_size).double()
    torch.manual_seed(1)
    for part in model.parameters():
        torch.nn.init.normal_(part)
    return model


@torch.no_grad()
def joint(model: ChainMRF, text: list[int]) -> float:
    """Σ of all potentials of a ring."""
    edges, total = model.edges(), 0.0
    for place, word in enumerate(text):
        total += float(model.unary[word])
        for distance in range(1, model.order + 1):
            total += float(edges[distance - 1, word, text[(place + distance) % len(text)]])
    return total


@pytest.mark.parametrize("order", [1, 2, 3])
def test_conditionals_are_those_of_the_joint_model(order: int) -> None:
    model, line = small(order), [3, 4, 2, 3]
    text = ring([line], order)
    expected = 0.0
    for place in range(len(text)):
        rivals = [joint(model, [*text[:place], word, *text[place + 1 :]]) for word in range(5)]
        expected += joint(model, text) - float(np.logaddexp.reduce(rivals))
    assert model.score_sentences([line])[0] == pytest.approx(expected)


@torch.no_grad()
def test_conditionals_sum_to_1_and_phrases_have_no_neighbors_outside() -> None:
    model = small()
    before, after = torch.tensor([[3, NONE], [NONE, NONE]]), torch.tensor([[4, 2], [NONE, NONE]])
    found = model.conditional(before, after)
    assert found.exp().sum(1).tolist() == pytest.approx([1, 1])
    alone = torch.log_softmax(model.unary, 0)
    assert found[1].tolist() == pytest.approx(alone.tolist())
    assert model.score_sentences([[3]], ends=False)[0] == pytest.approx(float(alone[3]))
    edge = model.edges()[0]
    expected = (
        torch.log_softmax(model.unary + edge[:, 4], 0)[3] + torch.log_softmax(model.unary + edge[3], 0)[4]
    )
    assert model.score_sentences([[3, 4]], ends=False)[0] == pytest.approx(float(expected))


def test_many_lines_are_scored_as_one_by_one() -> None:
    model = small()
    texts = [[3, 4, 4], [], [2], [4, 3, 2, 2, 3]]
    for ends in (True, False):
        together = model.score_sentences(texts, ends)
        assert together == pytest.approx([model.score_sentences([text], ends)[0] for text in texts])
    assert model.score_sentences(texts, False)[1] == 0 and len(model.score_sentences([])) == 0


@torch.no_grad()
def test_lines_do_not_depend_on_each_other() -> None:
    """K separators are between words of different lines."""
    text = ring([[3, 4], [2]], 2)
    assert text == [3, 4, EOS, EOS, 2, EOS, EOS]
    _, before, after = windows(text, 2)
    assert before[0].tolist() == [EOS, EOS] and after[0].tolist() == [4, EOS]
    assert before[4].tolist() == [EOS, EOS] and after[6].tolist() == [3, 4]
    assert windows([3, 4], 2, closed=False)[1].tolist() == [[NONE, NONE], [3, NONE]]
    model = small()
    for place, alone in ((0, [3, 4]), (4, [2])):
        apart = windows(ring([alone], 2), 2)
        rows = [model.conditional(*map(torch.from_numpy, part)) for part in (apart[1:], (before, after))]
        assert torch.equal(rows[0][0], rows[1][place])


@torch.no_grad()
def test_low_rank_potentials() -> None:
    model = small()
    for distance, one, two in itertools.product(range(2), range(5), range(5)):
        expected = float(model.left[one] @ model.right[distance, two])
        assert float(model.edges()[distance, one, two]) == pytest.approx(expected)
    assert torch.linalg.matrix_rank(model.edges()[0]) == 3
