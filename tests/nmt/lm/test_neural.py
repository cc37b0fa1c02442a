"""The neural language models against naive twins, sums over words, and themselves."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batches import Batch, make_batch
from nmt.data.running import ChunkStream, running, sentences
from nmt.data.vocab import BOS, EOS, UNK
from nmt.layers.batch_scores import word_scores
from nmt.layers.normalized import NormalizedLSTM
from nmt.lm.base import FeatureLM
from nmt.lm.config import LMConfig
from nmt.lm.cslm import CSLM, FirstLayer, distinct, ngrams
from nmt.lm.recurrent import RecurrentLM
from nmt.lm.registry import language_model_class
from nmt.search.beam import BeamConfig, search
from nmt.training.validation import running_cost

V = 8
TEXTS = [[3, 4, 5], [3, 4, 6, 7], [], [UNK], [3, 4, 5], [7, 7, 7, 7, 7, 7, 7, 7, 3]]
KINDS = {
    "cslm": {"type": "cslm", "order": 4, "layers": [6, 5]},
    "tanh": {"type": "cslm", "order": 3, "layers": [6], "activation": "tanh"},
    "lstm": {"type": "recurrent", "hidden": 6, "depth": 2},
    "gru": {"type": "recurrent", "cell": "gru", "hidden": 6, "tied": True, "embedding": 6},
    "normalized": {"type": "recurrent", "hidden": 6, "layer_norm": True},
}


def config_of(type: str, **options: object) -> LMConfig:
    return language_model_class(type).Config(**{"type": type, **options})  # type: ignore[arg-type]


def model_of(kind: str, seed: int = 0, **more: object) -> FeatureLM:
    torch.manual_seed(seed)
    options = {"embedding": 5, "init_scale": 1.0, **KINDS[kind], **more}
    config = config_of(**options)  # type: ignore[arg-type]
    model = language_model_class(config.type).build(config, [str(word) for word in range(V)])
    assert isinstance(model, FeatureLM)
    return with_biases(model.double().eval())


def with_biases(model: FeatureLM) -> FeatureLM:
    """Biases and gains that are not the zeros and ones of a fresh model."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.5 * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize("kind", list(KINDS))
def test_probabilities_of_every_next_word_sum_to_one_and_steps_are_the_whole(kind: str) -> None:
    model = model_of(kind)
    whole = word_scores(model, [((), text) for text in TEXTS])
    for text, scores in zip(TEXTS, whole, strict=True):
        state, word, found = model.start([()]), None, []
        for next_word in [*text, EOS]:
            with torch.no_grad():
                log_probs, state = model.step(state, word)
            assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-9)
            found.append(float(log_probs[0, next_word]))
            word = torch.tensor([next_word])
        assert found == pytest.approx(scores, abs=1e-9)
    assert word_scores(model, [((), TEXTS[1])])[0] == pytest.approx(whole[1], abs=1e-12), (
        "neighbours change nothing"
    )
    with torch.no_grad():
        loss = float(model.loss(make_batch([()] * len(TEXTS), TEXTS)))
    assert loss == pytest.approx(-sum(map(sum, whole)), abs=1e-9)


@pytest.mark.parametrize("kind", list(KINDS))
def test_scores_of_sentences_with_shared_work_are_those_word_by_word(kind: str) -> None:
    model = model_of(kind)
    assert model.score_sentences(TEXTS).tolist() == pytest.approx(
        [sum(scores) for scores in word_scores(model, [((), text) for text in TEXTS])], abs=1e-9
    )
    assert model.score_sentences([]).tolist() == []


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


def test_ngrams_of_sentences_and_their_distinct_contexts() -> None:
    contexts, words = ngrams([[3, 4], [], [3, 5]], 3)
    assert contexts.tolist() == [[BOS, BOS], [BOS, 3], [3, 4], [BOS, BOS], [BOS, BOS], [BOS, 3], [3, 5]]
    assert words.tolist() == [3, 4, EOS, EOS, 3, 5, EOS]
    unique, index = distinct(contexts)
    assert len(unique) == 4 and (unique[index] == contexts).all()
    assert np.unique(contexts, axis=0).tolist() == unique.tolist(), "sorted, each once"


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
        monkeypatch.setattr("nmt.lm.cslm.TABLES", 0)
    rng = np.random.default_rng(1)
    contexts, words = rng.integers(0, V, (3000, 3)), rng.integers(0, V, 3000)
    with torch.no_grad():
        assert (FirstLayer(model, contexts).table is not None) == tables
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
    check_gradients(model, batch)


def check_gradients(model: FeatureLM, batch: Batch) -> None:
    class Cost(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self) -> Tensor:
            return self.model.loss(batch)

    cost = Cost()
    names = [name for name, _ in cost.named_parameters()]
    assert torch.autograd.gradcheck(
        lambda *values: torch.func.functional_call(cost, dict(zip(names, values, strict=True)), ()),
        list(cost.parameters()),
    )


def test_training_with_the_penalty_brings_log_z_to_zero() -> None:
    means = []
    for normalizer in (0.0, 1.0):
        model = model_of("tanh", normalizer=normalizer)
        assert isinstance(model, CSLM)
        batch, optimizer = make_batch([()] * len(TEXTS), TEXTS), torch.optim.Adam(model.parameters(), 0.02)
        model.train()
        for _ in range(150):
            optimizer.zero_grad()
            model.loss(batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            features = model.features(model.contexts(batch.target))
            means.append(float(model.output.log_z(features).abs().mean()))
    assert means[1] < 0.1 < 0.5 < means[0], means


def test_chunks_of_running_text() -> None:
    """The picture of nmt/data/running.py: letters are 3 to 10, `.` is the end symbol."""
    text = running(sentences([[3, 4], [5, 6, 7, 8], [9], [10]]))
    assert text.tolist() == [3, 4, EOS, 5, 6, 7, 8, EOS, 9, EOS, 10, EOS]
    chunks = list(ChunkStream(text, 2, 4).batches(0))
    assert [chunk.ids.view(-1, 2).t().tolist() for chunk in chunks] == [
        [[3, 4, EOS, 5], [8, EOS, 9, EOS]],
        [[6, 7], [10, EOS]],
    ]
    assert [chunk.previous.view(-1, 2).t().tolist() for chunk in chunks] == [
        [[EOS, 3, 4, EOS], [EOS, 8, EOS, 9]],
        [[5, 6], [EOS, 10]],
    ]
    assert [chunk.fresh for chunk in chunks] == [True, False] and len(ChunkStream(text, 2, 4)) == 2
    later = next(ChunkStream(text, 2, 4).batches(3, start=1))
    assert later.ids.tolist() == chunks[1].ids.tolist(), "going on in the middle of an epoch"


@pytest.mark.parametrize("kind", ["lstm", "gru", "normalized"])
def test_text_in_chunks_is_the_text_at_once(kind: str) -> None:
    model = model_of(kind, carry=True)
    assert isinstance(model, RecurrentLM)
    text = running(sentences(TEXTS))
    costs = []
    for steps in (1, 5, 100):
        total, carried = 0.0, None
        for chunk in ChunkStream(text, 1, steps).batches(0):
            with torch.no_grad():
                cost, carried = model.cost(chunk, 0.0, carried)
            total += float(cost)
        costs.append(total)
    assert costs[0] == pytest.approx(costs[2], abs=1e-9) and costs[1] == pytest.approx(costs[2], abs=1e-9)
    assert running_cost(model, sentences(TEXTS), tracks=1) == pytest.approx(costs[2] / len(text), abs=1e-9)
    joined = [id for text in TEXTS for id in [*text, EOS]][:-1]
    assert costs[2] == pytest.approx(-sum(word_scores(model, [((), joined)])[0]), abs=1e-9), (
        "the state goes on through ends of sentences"
    )


def test_a_normalized_layer_is_what_its_equations_say() -> None:
    torch.manual_seed(3)
    layer = NormalizedLSTM(3, 4).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x, h, c = torch.randn(2, 3).double(), torch.randn(2, 4).double(), torch.randn(2, 4).double()
    state = layer.step(x, torch.cat([h, c], 1))

    def norm(a: Tensor) -> Tensor:
        return (a - a.mean(1, keepdim=True)) / (a.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    a = (
        norm(x @ layer.inputs.t()) * layer.gain_inputs
        + norm(h @ layer.recurrent.t()) * layer.gain_recurrent
        + layer.bias
    )
    i, f, o, g = a.chunk(4, 1)
    cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    assert torch.allclose(state[:, 4:], cell, atol=1e-12)
    assert torch.allclose(
        state[:, :4],
        torch.sigmoid(o) * torch.tanh(norm(cell) * layer.gain_cell + layer.cell_bias),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_gradients(kind: str) -> None:
    check_gradients(model_of(kind), make_batch([()] * 2, [[3, 4, 5], [6]]))


@pytest.mark.parametrize("kind", ["cslm", "lstm"])
def test_search_works_on_language_models_too(kind: str) -> None:
    """The most probable sentence of up to 3 words, by the beam and by trying all."""
    model = model_of(kind, seed=5)
    texts = [list(text) for length in range(4) for text in itertools.product(range(3, V), repeat=length)]
    scores = model.score_sentences(texts)
    found = search(model, [(3,)], BeamConfig(300, normalize="none"))[0][0]
    best = int(scores.argmax())
    assert found.words == texts[best] and found.log_prob == pytest.approx(scores[best], abs=1e-9)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"type": "ngram"}, "lm.type: 'ngram' is unknown, expected one of 'cslm', 'recurrent', 'multiscale'"),
        ({"order": 1}, "lm.order: 1 is out of range, expected 2 to 1000"),
        ({"layers": []}, "lm.layers: expected one size or more"),
        (
            {"type": "recurrent", "tied": True, "embedding": 4},
            "lm.tied: needs embedding = hidden, found 4 and 512",
        ),
        ({"type": "recurrent", "cell": "gru", "layer_norm": True}, "lm.layer_norm: only cell: lstm has it"),
        ({"normalizer": -1}, "lm.normalizer: -1 is out of range, expected 0 or more"),
    ],
)
def test_impossible_sizes(options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match="lm") as error:
        config_of(**{"type": "cslm", **options}).check()  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize("kind", ["cslm", "lstm"])
def test_beginnings_of_sentences_are_scored_without_their_end(kind: str) -> None:
    model = model_of(kind)
    expected = [sum(scores[:-1]) for scores in word_scores(model, [((), text) for text in TEXTS])]
    assert model.score_sentences(TEXTS, ends=False).tolist() == pytest.approx(expected, abs=1e-9)
