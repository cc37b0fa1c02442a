"""Ensembles average probabilities; a short-list renormalizes the model over its words."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer
from nmt.scoring import word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.search.steps import Ensemble, LayeredModel, Reading, Shortlisted, mean_log_probs
from tests.nmt.search.models import ATTENTIVE, SOURCES, make, make_transformer


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
    alone = search(model, SOURCES, BeamConfig(4))
    three = search(Ensemble([model] * 3), readings, BeamConfig(4))
    for a, b in zip(itertools.chain(*alone), itertools.chain(*three), strict=True):
        assert (a.words, a.looked_at) == (b.words, b.looked_at)
        assert a.log_prob == pytest.approx(b.log_prob, abs=1e-10)


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


# ---- short-lists ----


def rnn() -> RNNTranslator:
    return make(words=17, seed=2, **ATTENTIVE)


def transformer() -> Transformer:
    return make_transformer(words=17)


BOTH = pytest.mark.parametrize("made", [rnn, transformer])


@BOTH
def test_all_words_change_nothing(made: Callable[[], LayeredModel[Any]]) -> None:
    model, config = made(), BeamConfig(3, rows=6)
    for a, b in zip(
        search(model, SOURCES, config),
        search(Shortlisted(model, lambda source: set(range(20))), SOURCES, config),
        strict=True,
    ):
        assert [candidate.words for candidate in a] == [candidate.words for candidate in b]
        assert [candidate.log_prob for candidate in a] == pytest.approx(
            [candidate.log_prob for candidate in b], abs=1e-10
        )


@BOTH
def test_some_words_for_each_sentence(made: Callable[[], LayeredModel[Any]]) -> None:
    """Only listed words are used, whatever the neighbours may; log p is that of the softmax over the list."""
    model = made()
    short = Shortlisted(
        model, lambda source: {0, 1, 2, *(word + 4 for word in source), *(word + 9 for word in source)}
    )
    together = search(short, SOURCES, BeamConfig(3, rows=6))
    for source, candidates in zip(SOURCES, together, strict=True):
        allowed = sorted(short.shortlist(source))
        assert {word for candidate in candidates for word in candidate.words} <= set(allowed)
        assert [candidate.words for candidate in candidates] == [
            candidate.words for candidate in search(short, [source], BeamConfig(3))[0]
        ]
        best, total, words = candidates[0], 0.0, None
        with torch.no_grad():
            state = model.start([source])
            for word in [*best.words, 1]:
                log_probs, state = model.step(state, words)
                total += float(log_probs[0, word] - log_probs[0, allowed].logsumexp(0))
                words = torch.tensor([word])
        if best.complete:
            assert best.log_prob == pytest.approx(total, abs=1e-10)
    assert any(candidates[0].words for candidates in together)


def test_probabilities_sum_to_one() -> None:
    model = rnn()
    short = Shortlisted(model, lambda source: {0, 1, 2, source[0] + 4})
    with torch.no_grad():
        log_probs, _ = short.step(short.start(SOURCES), None)
    assert torch.allclose(log_probs.exp().sum(1), torch.ones(5, dtype=torch.float64))
    assert not math.isfinite(float(log_probs[0, 19]))
