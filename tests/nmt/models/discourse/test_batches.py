"""Batches of examples."""

import pytest
import torch

from nmt.errors import DataError
from nmt.models.discourse.batches import DiscourseBatch, DiscourseStream
from tests.nmt.models.discourse.texts import paragraphs_of, planted


def equal(a: DiscourseBatch, b: DiscourseBatch) -> bool:
    same = torch.equal(a.source.ids, b.source.ids) and torch.equal(a.answers, b.answers)
    return a.objective == b.objective and same


def test_an_epoch_goes_on_anywhere() -> None:
    """Each example once but of NEXT, which has a share; the batches from any number on are those of all."""
    stream = DiscourseStream(paragraphs_of(planted(12)), ["order", "next", "conj"], 8, 3)
    whole = list(stream.batches(1))
    assert len(whole) == stream.count(1)
    found = {name: sum(b.sentences for b in whole if b.objective == name) for name in stream.places}
    assert found["order"] == 12 * 9 and found["next"] == 3 and found["conj"] == len(stream.places["conj"])
    for start in (0, 5, len(whole)):
        rest = list(stream.batches(1, start))
        assert len(rest) == len(whole) - start and all(map(equal, rest, whole[start:]))
    assert not all(map(equal, whole, stream.batches(2))), "epochs differ"
    assert whole[0].tokens == len(whole[0].source.ids) and whole[0].longest >= 3


def test_alone_an_objective_has_all_its_examples() -> None:
    stream = DiscourseStream(paragraphs_of(planted(12)), ["next"], 8, 3)
    assert sum(batch.sentences for batch in stream.batches(0)) == 12


def test_a_text_without_examples_is_refused() -> None:
    with pytest.raises(DataError, match="objective next: the text has no example, in 1 paragraphs"):
        DiscourseStream(paragraphs_of([["a"], ["b"]]), ["order", "next"], 8, 3)
