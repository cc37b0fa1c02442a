"""ORDER."""

import numpy as np
import torch

from nmt.models.discourse.order import Order
from tests.nmt.models.discourse.texts import paragraphs_of


def test_one_half_is_turned_round() -> None:
    text = paragraphs_of([["a"], ["b"], ["c"], [], ["d"]])
    places, rng, found = Order.find(text), np.random.default_rng(0), []
    assert places.tolist() == [[0], [1]]
    for _ in range(400):
        example = Order.example(text, places[1], rng)
        words = [text.words[sentence[0]] for sentence in example.sentences]
        assert words == (["c", "b"] if example.answer else ["b", "c"])
        found.append(example.answer)
    assert 160 < sum(found) < 240


def test_scores() -> None:
    """log p of (5.1): σ of the bilinear form for answer 1."""
    objective = Order(3)
    torch.nn.init.normal_(objective.matrix)
    vectors = torch.randn(4, 2, 3)
    form = torch.stack([left @ objective.matrix @ right for left, right in vectors])
    assert torch.allclose(objective(vectors).softmax(1)[:, 1], form.sigmoid(), atol=1e-6)
