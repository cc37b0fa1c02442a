"""Objectives of any name."""

import numpy as np
import pytest
import torch

from nmt.models.discourse.registry import OBJECTIVES
from tests.nmt.models.discourse.texts import paragraphs_of, planted


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_there_are_as_many_scores_as_answers(name: str) -> None:
    kind, text = OBJECTIVES[name], paragraphs_of(planted(3))
    places, rng = kind.find(text), np.random.default_rng(1)
    examples = [kind.example(text, place, rng) for place in places]
    assert all(0 <= example.answer < kind.answers for example in examples)
    (sentences,) = {len(example.sentences) for example in examples}
    objective = kind(4)
    for parameter in objective.parameters():
        torch.nn.init.zeros_(parameter)
    assert objective(torch.randn(2, sentences, 4)).shape == (2, kind.answers)
