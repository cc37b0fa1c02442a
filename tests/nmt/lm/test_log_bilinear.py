"""The log-bilinear model is its equation, and a network of n-grams that the search can use."""

import numpy as np
import pytest
import torch

from nmt.errors import ConfigError
from nmt.lm.log_bilinear import LogBilinear
from tests.nmt.lm.models import TEXTS, V, model_of


@pytest.mark.parametrize("tied", [True, False])
def test_equation(tied: bool) -> None:
    model = model_of("log-bilinear", tied=tied)
    assert isinstance(model, LogBilinear)
    names = {name for name, _ in model.named_parameters()}
    assert names == {
        "embedding.weight",
        "first.weight",
        "output.words_bias",
        *([] if tied else ["output.words"]),
    }
    parameters = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    U, R, b = parameters["embedding.weight"], parameters["first.weight"], parameters["output.words_bias"]
    answers = U if tied else parameters["output.words"]
    context = [0, 5, 3]  # the last word last
    r = sum(R[:, 5 * place : 5 * place + 5] @ U[word] for place, word in enumerate(context))
    scores = answers @ r + b
    with torch.no_grad():
        found, _ = model.step(torch.tensor([context]), None)
    assert found[0].numpy() == pytest.approx(scores - np.log(np.exp(scores).sum()), abs=1e-9)


def test_scores_of_ngrams_with_and_without_tables() -> None:
    model = model_of("log-bilinear", normalizer=0.1)
    assert isinstance(model, LogBilinear)
    contexts = np.array([[0, 0, 3], [3, 4, 5], [0, 0, 3]])
    words = np.array([4, V - 1, 5])
    whole = model.ngram_scores().score(contexts, words)
    assert model.ngram_scores(keep_tables=True).score(contexts, words) == pytest.approx(whole, abs=1e-9)
    plain = model.ngram_scores(normalized=True).score(contexts, words)
    assert plain[0] - plain[2] == pytest.approx(whole[0] - whole[2], abs=1e-9)
    assert len(model.log_normalizers(TEXTS)) > 3


def test_other_output_layers_need_vectors_of_their_own() -> None:
    with pytest.raises(ConfigError, match=r"lm\.tied: does not go with lm\.output: classes"):
        model_of("log-bilinear", output="classes")
    for kind, options in (("log-bilinear", {"tied": False}), ("characters", {})):
        model = model_of(kind, output="classes", output_class_count=3, **options)
        with torch.no_grad():
            log_probs, _ = model.step(model.start([()]), None)
        assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-9)
