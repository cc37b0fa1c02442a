"""Encoders under discourse objectives: chance at first, planted cues learned, the vectors of sentences."""

import math

import pytest
import torch

from nmt.data.batches import pack_source
from nmt.errors import ConfigError
from nmt.papers.discourse.model import Discourse, DiscourseConfig
from nmt.papers.discourse.objectives import DiscourseStream
from nmt.text.vocab import Vocab
from nmt.training.optimizers import make_optimizer
from tests.nmt.gradients import check_gradients
from tests.nmt.papers.discourse.texts import paragraphs_of, planted

LINES = planted(40)
VOCAB = Vocab.count(LINES, 999)
CHANCE = {"order": 2, "next": 5, "conj": 9}


def make(**options: object) -> Discourse:
    torch.manual_seed(0)
    config = DiscourseConfig(**{"embedding": 8, "hidden": 8, **options})  # type: ignore[arg-type]
    return Discourse(config, VOCAB.words)


@pytest.mark.parametrize("encoder", ["rnn", "birnn", "grconv"])
@pytest.mark.parametrize("vector", ["maximum", "last"])
def test_chance_at_first(encoder: str, vector: str) -> None:
    """-log p of an answer is that of guessing, and about as many are right."""
    model = make(encoder=encoder, vector=vector)
    stream = DiscourseStream(paragraphs_of(LINES, VOCAB), list(CHANCE), 64, 1)
    found = model.accuracies(stream.batches(0))
    assert found.keys() == CHANCE.keys()
    for name, (cost, right) in found.items():
        assert cost == pytest.approx(math.log(CHANCE[name]), abs=0.02)
        assert abs(right - 1 / CHANCE[name]) < (0.35 if name == "next" else 0.15)


def test_vectors_are_of_each_sentence_alone() -> None:
    """The maximum over its own annotations, whatever stands beside it."""
    model = make(encoder="birnn").double()
    sentences = [[3, 4, 5, 6], [7], [], [4, 3]]
    with torch.no_grad():
        together = model.vectors(pack_source(sentences))
        for sentence, vector in zip(sentences, together, strict=True):
            source = pack_source([sentence])
            assert torch.allclose(model.vectors(source)[0], vector, atol=1e-12)
            assert torch.allclose(model.encoder(source).states.amax(0), vector, atol=1e-12)


@pytest.mark.ci
def test_gradients() -> None:
    sizes = {"embedding": 2, "hidden": 2, "encoder": "birnn"}
    model = make(init="uniform", init_scale=0.5, objectives="order conj", **sizes).double()
    stream = DiscourseStream(paragraphs_of(LINES[:33], VOCAB), ["order", "conj"], 3, 1)
    batches = {batch.objective: batch for batch in stream.batches(0)}
    check_gradients(
        model, lambda: sum((model.cost(batch, 0.0, None)[0] for batch in batches.values()), torch.zeros(()))
    )


@pytest.mark.ci
def test_planted_cues_are_learned() -> None:
    """Sentences that count, and words that say the kind of conjunction: on other text of the same kind."""
    model = make(init="glorot", encoder="birnn")
    stream = DiscourseStream(paragraphs_of(planted(300), VOCAB), list(CHANCE), 32, 1)
    optimizer = make_optimizer("adam", model.parameters(), 0.01, 0, 0)
    for epoch in range(6):
        for batch in stream.batches(epoch):
            optimizer.zero_grad()
            torch.autograd.backward(model.cost(batch, 0.0, None)[0] / batch.sentences)
            optimizer.step()
    held_out = DiscourseStream(paragraphs_of(planted(60, seed=9), VOCAB), list(CHANCE), 64, 1)
    found = {name: right for name, (_, right) in model.eval().accuracies(held_out.batches(0)).items()}
    assert all(right > 0.9 for right in found.values()), found


@pytest.mark.parametrize("objectives", ["", "order nex"])
def test_unknown_objectives_are_refused(objectives: str) -> None:
    with pytest.raises(ConfigError, match="expected one or more of 'order', 'next', 'conj'"):
        make(objectives=objectives)
