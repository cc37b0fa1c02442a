"""Ensembles: the mean of probabilities."""

import math

import pytest
import torch

from nmt.models.config import RNNConfig
from nmt.models.rnn.translator import Translator
from nmt.search.steps import Ensemble, Reading, mean_log_probs


def make(seed: int) -> Translator:
    torch.manual_seed(seed)
    return Translator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=1.0), 7, 8).double().eval()


def test_the_mean_is_of_probabilities() -> None:
    first, second = torch.tensor([0.2, 0.8]).log(), torch.tensor([0.6, 0.4]).log()
    assert mean_log_probs([first, second]).exp().tolist() == pytest.approx([0.4, 0.6])
    assert mean_log_probs([first, torch.tensor([-math.inf, 0.0])]).exp().tolist() == pytest.approx([0.1, 0.9])
    assert mean_log_probs([first]) is first


@torch.no_grad()
def test_an_ensemble_steps_its_members_side_by_side() -> None:
    """Also after rows were reordered and joined: as the members asked one by one."""
    members = [make(1), make(2)]
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
