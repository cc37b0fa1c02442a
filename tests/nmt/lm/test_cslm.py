"""The CSLM against its equations, and many n-grams at a time against one by one."""

import math

import numpy as np
import pytest
import torch

from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.layers.batch_scores import word_scores
from nmt.lm.cslm import CSLM, CSLMConfig, FirstLayer, LogBilinear, ngrams
from nmt.text.vocab import BOS, EOS
from tests.nmt.gradients import check_gradients
from tests.nmt.lm.models import TEXTS, V, model_of

# ---- test cslm ---------------------------------------------------------------------------------------------


def test_the_feed_forward_model_is_what_its_equations_say() -> None:
    """h1 = relu(W1 [e(w-3); e(w-2); e(w-1)] + b1), h2 = relu(W2 h1 + b2), p = softmax(G h2 + b); <s> before
    the beginning."""
    model = model_of("cslm")
    assert isinstance(model, CSLM)
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    for before, word in [((BOS, BOS, BOS), 3), ((BOS, 3, 4), 5)]:
        hidden = np.concatenate([weights["embedding.weight"][w] for w in before])
        hidden = np.maximum(weights["first.weight"] @ hidden + weights["first.bias"], 0)
        hidden = np.maximum(weights["layers.0.weight"] @ hidden + weights["layers.0.bias"], 0)
        scores = weights["output.words"] @ hidden + weights["output.words_bias"]
        expected = scores[word] - math.log(np.exp(scores).sum())
        assert word_scores(model, [((), [3, 4, 5])])[0][0 if word == 3 else 2] == pytest.approx(
            expected, abs=1e-12
        )


def test_ngrams_of_sentences() -> None:
    contexts, words = ngrams([[3, 4], [], [3, 5]], 3)
    assert contexts.tolist() == [[BOS, BOS], [BOS, 3], [3, 4], [BOS, BOS], [BOS, BOS], [BOS, 3], [3, 5]]
    assert words.tolist() == [3, 4, EOS, EOS, 3, 5, EOS]


def test_contexts_of_a_packed_batch_are_those_of_the_sentences() -> None:
    model = model_of("cslm")
    assert isinstance(model, CSLM)
    batch = make_batch([()] * len(TEXTS), TEXTS)
    found = torch.cat(batch.target.split(model.contexts(batch.target)))
    assert found.tolist() == ngrams(TEXTS, 4)[0].tolist()


@pytest.mark.parametrize("tables", [True, False])
def test_first_layer_tables_change_nothing(tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("cslm")
    assert isinstance(model, CSLM)
    if not tables:
        monkeypatch.setattr("nmt.lm.cslm.MOST_TABLE", 0)
    rng = np.random.default_rng(1)
    contexts, words = rng.integers(0, V, (3000, 3)), rng.integers(0, V, 3000)
    with torch.no_grad():
        assert (FirstLayer(model, torch.from_numpy(contexts)).table is not None) == tables
        one_by_one = model.output.log_probs(model.features(torch.from_numpy(contexts))).numpy()[
            np.arange(3000), words
        ]
    assert model.ngram_scores().score(contexts, words).tolist() == pytest.approx(
        one_by_one.tolist(), abs=1e-9
    )


def test_assuming_normalized_scores_is_leaving_log_z_out() -> None:
    model = model_of("cslm")
    assert isinstance(model, CSLM)
    contexts, words = ngrams(TEXTS, 4)
    with torch.no_grad():
        scores = model.output.scores(model.features(torch.from_numpy(contexts)))
    expected = scores.numpy()[np.arange(len(words)), words]
    assert model.ngram_scores(normalized=True).score(contexts, words).tolist() == pytest.approx(
        expected.tolist(), abs=1e-9
    )
    assert model.ngram_scores().score(contexts, words).tolist() == pytest.approx(
        (expected - scores.logsumexp(1).numpy()).tolist(), abs=1e-9
    )


def test_the_penalty_is_on_log_z_and_has_its_gradient() -> None:
    model = model_of("tanh", normalizer=0.3)  # without the kinks of relu
    batch = make_batch([()] * len(TEXTS), TEXTS)
    assert isinstance(model, CSLM)
    with torch.no_grad():
        plain = model.loss(batch)
        model.train()
        with_penalty = model.loss(batch)
        features = model.features(model.contexts(batch.target))
        log_z = model.output.log_z(features)
    assert float(with_penalty - plain) == pytest.approx(0.3 * float(log_z.square().sum()), abs=1e-9)
    check_gradients(model, lambda: model.loss(batch))


def test_training_with_the_penalty_brings_log_z_to_zero() -> None:
    means = []
    for normalizer in (0.0, 1.0):
        model = model_of("tanh", normalizer=normalizer)
        assert isinstance(model, CSLM)
        batch, optimizer = make_batch([()] * len(TEXTS), TEXTS), torch.optim.Adam(model.parameters(), 0.02)
        model.train()
        for _ in range(150):
            optimizer.zero_grad()
            torch.autograd.backward(model.loss(batch))
            optimizer.step()
        with torch.no_grad():
            features = model.features(model.contexts(batch.target))
            means.append(float(model.output.log_z(features).abs().mean()))
    assert means[1] < 0.1 < 0.5 < means[0], means


def test_tied_vectors_answer_too() -> None:
    """p(w | h) = softmax(E h2 + b), E being what h is read from; its gradient is that of both uses."""
    model = model_of("cslm", tied=True, embedding=5, layers=[6, 5])
    assert isinstance(model, CSLM)
    weights = dict(model.named_parameters())
    assert "output.words" not in weights
    contexts = torch.tensor([[BOS, 3, 4], [3, 4, 5]])
    features = model.features(contexts)
    scores = features @ weights["embedding.weight"].T + weights["output.words_bias"]
    assert torch.allclose(model.output.log_probs(features), torch.log_softmax(scores, 1), atol=1e-12)
    batch = make_batch([()] * len(TEXTS), TEXTS)
    check_gradients(model, lambda: model.loss(batch))


def test_tied_vectors_are_as_wide_as_the_last_layer() -> None:
    with pytest.raises(ConfigError, match=r"lm\.tied: the last of lm\.layers is 7, .* lm\.embedding: 5"):
        CSLMConfig(tied=True, embedding=5, layers=[6, 7]).check()


# ---- test log bilinear -------------------------------------------------------------------------------------
# The log-bilinear model is its equation, and a network of n-grams that the search can use.


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
    with pytest.raises(ConfigError, match=r"lm\.tied: cannot be combined with lm\.output: classes"):
        model_of("log-bilinear", output="classes")
    for kind, options in (("log-bilinear", {"tied": False}), ("characters", {})):
        model = model_of(kind, output="classes", output_class_count=3, **options)
        with torch.no_grad():
            log_probs, _ = model.step(model.start([()]), None)
        assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-9)
