"""NEXT."""

import numpy as np
import torch

from nmt.models.discourse.following import Following
from tests.nmt.models.discourse.texts import paragraphs_of


def test_candidates_are_later_sentences_each_once() -> None:
    lines = [[f"s{place}"] for place in range(9)]
    text = paragraphs_of([["x"]] * 8 + [[]] + lines)
    places, rng, answers, seen = Following.find(text), np.random.default_rng(0), set(), set()
    assert places.tolist() == [[9, 18]], "a paragraph of 8 sentences is too short"
    for _ in range(100):
        example = Following.example(text, places[0], rng)
        words = [text.words[sentence[0]] for sentence in example.sentences]
        assert words[:3] == ["s0", "s1", "s2"] and words[3 + example.answer] == "s3"
        assert len({*words}) == 8
        answers.add(example.answer)
        seen |= {*words}
    assert answers == {0, 1, 2, 3, 4} and len(seen) == 9


def test_scores() -> None:
    objective = Following(2)
    torch.nn.init.normal_(objective.matrix)
    vectors = torch.randn(3, 8, 2)
    context = torch.cat([vectors[:, 0], vectors[:, 1], vectors[:, 2]], 1)
    wanted = [(context @ objective.matrix * vectors[:, place]).sum(1) for place in range(3, 8)]
    assert torch.allclose(objective(vectors), torch.stack(wanted, 1), atol=1e-6)
