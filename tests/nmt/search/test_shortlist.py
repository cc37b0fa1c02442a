"""A short-list of all words is the model; one of some words is the model renormalized over them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.models.rnn.translator import Translator
from nmt.models.transformer import Transformer
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.search.shortlist import RestrictableModel, Shortlisted
from tests.nmt.search.models import ATTENTIVE, make, make_transformer

SOURCES = [[3, 4], [5], [3, 3, 4, 5], [6, 6], [4, 3, 5]]


def rnn() -> Translator:
    return make(words=17, seed=2, **ATTENTIVE)


def transformer() -> Transformer:
    return make_transformer(words=17)


BOTH = pytest.mark.parametrize("made", [rnn, transformer])


@BOTH
def test_all_words_change_nothing(made: Callable[[], RestrictableModel[Any]]) -> None:
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
def test_some_words_for_each_sentence(made: Callable[[], RestrictableModel[Any]]) -> None:
    """Only listed words are used, whatever the neighbours may; log p is that of the softmax over the list."""
    model = made()
    short = Shortlisted(
        model, lambda source: {0, 1, 2, *(word + 4 for word in source), *(word + 9 for word in source)}
    )
    together = search(short, SOURCES, BeamConfig(3, rows=6))
    for source, candidates in zip(SOURCES, together, strict=True):
        allowed = sorted(short.words_of(source))
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
