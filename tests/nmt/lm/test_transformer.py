"""The Transformer as a language model: in a batch = alone = step by step = through a trie."""

import numpy as np
import pytest
import torch

from nmt.data.batches import make_batch
from nmt.layers.batch_scores import word_scores
from nmt.lm.registry import language_model_class
from nmt.lm.transformer import TransformerLM, TransformerLMConfig
from nmt.models.protocols import StepModel
from nmt.search.config import SamplingConfig
from nmt.search.sampling import sample
from nmt.text.vocab import EOS
from tests.nmt.lm.models import TEXTS, V, with_biases


def make(**options: object) -> TransformerLM:
    torch.manual_seed(0)
    small: dict[str, object] = {"embedding": 6, "feed_forward": 5, "heads": 2, "depth": 2}
    config = TransformerLMConfig(**{**small, **options})  # type: ignore[arg-type]
    model = language_model_class("transformer").build(config, [str(word) for word in range(V)])
    assert isinstance(model, TransformerLM)
    with_biases(model)
    return model.double().eval()


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "positions": "learned", "tied": False}], ids=str)
def test_all_ways_to_score_agree(options: dict[str, object]) -> None:
    model = make(**options)
    expected = model.score_texts(TEXTS)
    for text, scores in zip(TEXTS, expected, strict=True):
        assert word_scores(model, [((), text)])[0] == pytest.approx(scores, abs=1e-12)
        state, words = model.start([()]), None
        for word, score in zip([*text, EOS], scores, strict=True):
            log_probs, state = model.step(state, words)
            assert float(log_probs.exp().sum()) == pytest.approx(1)
            assert float(log_probs[0, word]) == pytest.approx(score, abs=1e-10)
            words = torch.tensor([word])
    np.testing.assert_allclose(model.score_sentences(TEXTS), [sum(row) for row in expected], atol=1e-10)
    np.testing.assert_allclose(
        model.score_sentences(TEXTS, ends=False), [sum(row[:-1]) for row in expected], atol=1e-10
    )
    assert len(model.score_sentences([])) == 0 and not model.carries


def test_options_change_the_function() -> None:
    variants: list[dict[str, object]] = [
        {}, {"norm": "pre"}, {"positions": "none"}, {"positions": "learned"}, {"heads": 1}, {"depth": 1},
        {"feed_forward": 7}, {"tied": False}, {"init": "uniform", "init_scale": 0.5},
    ]  # fmt: skip
    totals = [float(make(**options).score_sentences(TEXTS).sum()) for options in variants]
    assert len({round(total, 9) for total in totals}) == len(variants)


def test_it_is_sampled_step_by_step() -> None:
    model = make()
    assert isinstance(model, StepModel)
    drawn = sample(model, [range(5)] * 4, SamplingConfig(samples=1, seed=1, max_length_factor=1.0))
    for [line] in drawn:
        if line.complete:
            assert line.log_prob == pytest.approx(float(model.score_sentences([line.words])[0]), abs=1e-9)


def test_gradients() -> None:
    model = make(norm="pre")
    batch = make_batch([()] * len(TEXTS), TEXTS)
    assert torch.autograd.gradcheck(lambda *_: model.loss(batch), list(model.parameters()), fast_mode=True)
