"""CONJ."""

import numpy as np
import pytest
import torch

from nmt.models.discourse.conjunction import CONJUNCTIONS, KINDS, Conjunction, conjunction
from tests.nmt.models.discourse.texts import paragraphs_of

TIME, CONTRAST = list(KINDS).index("time"), list(KINDS).index("contrast")


@pytest.mark.parametrize(
    ("units", "found"),
    [
        ("However , it rains", (CONTRAST, 2)),
        ("in contrast , it rains", (CONTRAST, 3)),
        ("HOW@@ ever , it", (CONTRAST, 3)),
        ("\u2581How ever , \u2581it", (CONTRAST, 3)),
        ("\u2581In \u2581contra st, \u2581it", (CONTRAST, 3)),
        ("However it rains ,", (-1, 0)),
        ("then", (-1, 0)),
        ("", (-1, 0)),
        (", then", (-1, 0)),
    ],
)
def test_what_a_sentence_begins_with(units: str, found: tuple[int, int]) -> None:
    assert conjunction(units.split()) == found


def test_the_list_of_the_thesis() -> None:
    assert len(KINDS) == 9 and len(CONJUNCTIONS) == 40
    assert all(conjunction([*phrase.split(), ","])[0] == kind for phrase, kind in CONJUNCTIONS.items())


def test_conjunctions_are_taken_off_both() -> None:
    lines = ["Also , a b", "Then , c", "d", "However , e", "", "Now , f", "Then ,"]
    text = paragraphs_of([line.split() for line in lines])
    places = Conjunction.find(text)
    assert places.tolist() == [[0, TIME, 2, 2], [2, CONTRAST, 0, 2]]
    example = Conjunction.example(text, places[0], np.random.default_rng(0))
    said = [" ".join(text.words[word] for word in sentence) for sentence in example.sentences]
    assert said == ["a b", "c"] and example.answer == TIME


def test_scores() -> None:
    objective = Conjunction(2)
    torch.nn.init.normal_(objective.matrices)
    vectors = torch.randn(3, 2, 2)
    wanted = [(vectors[:, 0] @ matrix * vectors[:, 1]).sum(1) for matrix in objective.matrices]
    assert torch.allclose(objective(vectors), torch.stack(wanted, 1), atol=1e-6)
