"""Ensembles: the mean of probabilities."""

import itertools
import math

import pytest
import torch

from nmt.scoring import word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.search.steps import Ensemble, Reading, mean_log_probs
from tests.nmt.search.models import ATTENTIVE, SOURCES, make


def test_the_mean_is_of_probabilities() -> None:
    first, second = torch.tensor([0.2, 0.8]).log(), torch.tensor([0.6, 0.4]).log()
    assert mean_log_probs([first, second]).exp().tolist() == pytest.approx([0.4, 0.6])
    assert mean_log_probs([first, torch.tensor([-math.inf, 0.0])]).exp().tolist() == pytest.approx([0.1, 0.9])
    assert mean_log_probs([first]) is first


@torch.no_grad()
def test_an_ensemble_steps_its_members_side_by_side() -> None:
    """Also after rows were reordered and joined: as the members asked one by one."""
    members = [make(words=5, seed=1), make(words=5, seed=2)]
    ensemble = Ensemble(members)
    readings = [Reading(([3, 4], [4])), Reading(([5], [5, 6]))]
    rows, words = torch.tensor([1, 0, 1]), torch.tensor([3, 4, 5])
    state = ensemble.join([ensemble.reorder(ensemble.start(readings), rows), ensemble.start(readings[:1])])
    found, _ = ensemble.step(state, torch.cat([words, torch.tensor([6])]))
    expected = []
    for number, member in enumerate(members):
        start = member.start([readings[row].ids[number] for row in [1, 0, 1, 0]])
        expected.append(member.step(start, torch.tensor([3, 4, 5, 6]))[0])
    assert torch.allclose(found, mean_log_probs(expected), atol=1e-12)
    assert len(readings[0]) == 2


def test_an_ensemble_of_one_model_is_that_model() -> None:
    model = make(words=20, seed=6, **ATTENTIVE)
    readings = [Reading((source, source, source)) for source in SOURCES]
    alone, three = (
        search(model, SOURCES, BeamConfig(4)),
        search(Ensemble([model] * 3), readings, BeamConfig(4)),
    )
    for a, b in zip(itertools.chain(*alone), itertools.chain(*three), strict=True):
        assert (
            a.words == b.words
            and a.looked_at == b.looked_at
            and a.log_prob == pytest.approx(b.log_prob, abs=1e-10)
        )


def test_an_ensemble_is_the_mean_of_probabilities() -> None:
    """Σ over words of log (p_1 + p_2) / 2, each model reading the source in its own way."""
    models = [make(words=20, seed=1), make(words=20, seed=2, **ATTENTIVE)]
    readings = [Reading((source, source[::-1])) for source in SOURCES]
    for reading, candidates in zip(readings, search(Ensemble(models), readings, BeamConfig(4)), strict=True):
        for candidate in candidates:
            first, second = (
                word_scores(model, [(ids, candidate.words)])[0]
                for model, ids in zip(models, reading.ids, strict=True)
            )
            expected = sum(
                math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(first, second, strict=True)
            )
            assert candidate.log_prob == pytest.approx(expected, abs=1e-10)
