"""The Transformer: what attention guarantees, hypotheses of different lengths in search, and its
capabilities."""

import math
import random

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batches import make_batch, pack_source
from nmt.errors import ConfigError
from nmt.layers.output import OUTPUTS, OutputLayer
from nmt.models.config import RNNConfig
from nmt.models.protocols import Layered, PrefixTrees, WordParameters
from nmt.models.registry import AnyModel
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.scoring import pair_scores, word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.search.steps import Ensemble, Reading
from nmt.text.vocab import EOS
from tests.nmt.models.models import PAIRS, SOURCE, TARGET, make_transformer

RNG = random.Random(0)
SOURCES = [[RNG.randrange(3, SOURCE) for _ in range(RNG.randrange(8))] for _ in range(20)]
TARGETS = [[RNG.randrange(3, TARGET) for _ in range(RNG.randrange(8))] for _ in range(60)]


@torch.no_grad()
@pytest.mark.parametrize("key", ["dropout", "attention_dropout", "feed_forward_dropout"])
def test_dropout_is_of_training_alone(key: str) -> None:
    none: dict[str, object] = {"dropout": 0.0, "attention_dropout": 0.0, "feed_forward_dropout": 0.0}
    plain, noisy = make_transformer(**none), make_transformer(**{**none, key: 0.5})
    batch = make_batch(*zip(*PAIRS, strict=True))
    exact = float(plain.loss(batch))
    assert float(noisy.loss(batch)) == exact == pytest.approx(float(plain.train().loss(batch)), abs=1e-12)
    assert abs(float(noisy.train().loss(batch)) - exact) > 1e-6


# ---- what attention guarantees -----------------------------------------------------------------------------


def first_logits(model: Transformer, target: list[int]) -> Tensor:
    return model.unroll(make_batch([[3, 4]], [target]))[:3]


@torch.no_grad()
def test_later_words_change_nothing_before_them() -> None:
    """The third word is edited: the output at the first three places sees only the first two."""
    model = make_transformer()
    before, after = first_logits(model, [3, 4, 5, 6]), first_logits(model, [3, 4, 9, 7])
    assert torch.equal(before, after)
    assert not torch.allclose(before, first_logits(model, [3, 8, 5, 6]))


@torch.no_grad()
@pytest.mark.parametrize(("positions", "same"), [("none", True), ("sinusoidal", False), ("learned", False)])
def test_without_positions_the_encoder_is_equivariant(positions: str, same: bool) -> None:
    """Permuted words have permuted states; with positions they do not."""
    model, permutation = make_transformer(positions=positions), [2, 0, 3, 1]
    words = [3, 4, 5, 6]
    states, _ = model.encode(pack_source([words]))
    permuted, _ = model.encode(pack_source([[words[place] for place in permutation]]))
    expected = states[[*permutation, 4]]  # the end symbol stays
    assert torch.allclose(permuted, expected, atol=1e-12) == same


@torch.no_grad()
def test_attention_weights_are_a_distribution_over_the_source() -> None:
    """Of each row over its own source words and end symbol, zero behind it; the layer can be chosen."""
    seen = []
    for layer in (0, 1, 2, 3):
        model = make_transformer(decoder_layers=3, attention_layer=layer)
        _, state = model.step(model.start([[3, 4, 5], [6]]), None)
        weights = model.attention(state)
        assert weights is not None and weights.shape == (2, 4)
        assert torch.allclose(weights.sum(1), torch.ones(2, dtype=torch.float64))
        assert not weights[1, 2:].any() and (weights[1, :2] > 0).all()
        seen.append(weights)
    assert torch.equal(seen[0], seen[2]), "0 is the last but one"
    assert not torch.allclose(seen[1], seen[2]) and not torch.allclose(seen[2], seen[3])


# ---- search ------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_rows_of_different_lengths_side_by_side() -> None:
    """Rows are reordered, joined with fresh ones, dropped and joined again: each is as if it were alone."""
    model = make_transformer()
    sources = [[3, 4, 5], [6], [7, 8, 9, 10]]
    state = model.start(sources[:2])
    _, state = model.step(state, None)
    _, state = model.step(model.reorder(state, torch.tensor([1, 0, 1])), torch.tensor([3, 4, 5]))
    _, fresh = model.step(model.start(sources[2:]), None)
    state = model.join([model.reorder(state, torch.tensor([2, 1])), fresh])
    _, state = model.step(state, torch.tensor([6, 7, 8]))
    state = model.reorder(state, torch.tensor([2, 2, 0]))
    log_probs, _ = model.step(state, torch.tensor([9, 10, 11]))
    texts = [(sources[2], [8, 9]), (sources[2], [8, 10]), (sources[1], [5, 6, 11])]
    for row, (source, target) in enumerate(texts):
        for word in (3, EOS):
            expected = word_scores(model, [(source, [*target, word])])[0][len(target)]
            assert float(log_probs[row, word]) == pytest.approx(expected, abs=1e-10)
    state = model.reorder(state, torch.tensor([1, 0]))
    assert len(state.columns.columns) == 2, "what only the longest hypothesis had read is dropped"


@pytest.mark.parametrize("options", [{}, {"norm": "pre", "positions": "learned"}], ids=str)
def test_beam_scores_are_those_of_the_scorer(options: dict[str, object]) -> None:
    """Many sentences, refilled while others go on; and the same one by one."""
    model = make_transformer(**options)
    sources = SOURCES[:6]
    found = search(model, sources, BeamConfig(beam_size=3, rows=9))
    for source, candidates in zip(sources, found, strict=True):
        for candidate in candidates:
            expected = sum(word_scores(model, [(source, candidate.words)])[0])
            assert candidate.log_prob == pytest.approx(expected, abs=1e-10)
        [alone] = search(model, [source], BeamConfig(beam_size=3))
        assert [one.words for one in alone] == [one.words for one in candidates]
        assert [one.looked_at for one in alone] == [one.looked_at for one in candidates]


def test_an_ensemble_with_an_rnn_is_the_mean_of_probabilities() -> None:
    torch.manual_seed(1)
    rnn = RNNTranslator(RNNConfig(embedding=6, hidden=7, maxout=4, init_scale=1.0), SOURCE, TARGET)
    models: list[AnyModel] = [make_transformer(), rnn.double().eval()]
    readings = [Reading((source, source[::-1])) for source in SOURCES[:3]]
    for reading, candidates in zip(readings, search(Ensemble(models), readings, BeamConfig(3)), strict=True):
        for candidate in candidates:
            pairs = [[(ids, candidate.words)] for ids in reading.ids]
            first, second = (word_scores(model, pair)[0] for model, pair in zip(models, pairs, strict=True))
            expected = sum(
                math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(first, second, strict=True)
            )
            assert candidate.log_prob == pytest.approx(expected, abs=1e-10)


# ---- capabilities ------------------------------------------------------------------------------------------


def test_tries_give_the_scores_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a level takes several blocks."""
    model, source_of = make_transformer(), [number // 3 for number in range(len(TARGETS))]
    expected = [
        sum(word_scores(model, [(SOURCES[row], target)])[0])
        for row, target in zip(source_of, TARGETS, strict=True)
    ]
    assert isinstance(model, PrefixTrees)
    np.testing.assert_allclose(pair_scores(model, SOURCES, TARGETS, source_of), expected, atol=1e-10)
    monkeypatch.setattr("nmt.data.prefix_tree.BLOCK", 7)
    monkeypatch.setattr("nmt.data.prefix_tree.blocks.__defaults__", (7,))
    np.testing.assert_allclose(pair_scores(model, SOURCES, TARGETS, source_of), expected, atol=1e-10)


@pytest.mark.parametrize("output", OUTPUTS)
def test_with_every_output_layer(output: str) -> None:
    """Loss, tries and beam have the scores of pairs, whatever turns features into words."""
    model = make_transformer(output=output, tied="none")
    for layer in model.modules():
        if isinstance(layer, OutputLayer) and layer.learns_text:
            layer.learn(np.array([3, 4, 5, EOS, 6, 7, 8, 9, 10, 11, 3, 3, 4, EOS]))
    expected = [sum(scores) for scores in word_scores(model, PAIRS)]
    sources, targets = zip(*PAIRS, strict=True)
    loss = model.loss(make_batch(sources, targets)).detach()
    assert float(loss) == pytest.approx(-sum(expected), abs=1e-10)
    np.testing.assert_allclose(pair_scores(model, sources, targets, range(4)), expected, atol=1e-10)
    for source, candidates in zip(sources, search(model, sources, BeamConfig(2)), strict=True):
        scores = sum(word_scores(model, [(source, candidates[0].words)])[0])
        assert candidates[0].log_prob == pytest.approx(scores, abs=1e-10)


@torch.no_grad()
def test_a_short_list_is_the_softmax_over_its_words() -> None:
    model, words = make_transformer(), torch.tensor([1, 4, 7])
    assert isinstance(model, Layered) and model.output_layer.vocab_size == TARGET
    features, _ = model.features(model.start([[3], [4, 5]]), None)
    log_probs, _ = model.step(model.start([[3], [4, 5]]), None)
    expected = torch.log_softmax(log_probs[:, words], 1)
    restricted = model.output_layer.restrict(words)
    assert torch.allclose(torch.log_softmax(restricted.scores(features), 1), expected)


def test_vectors_and_rows_of_words() -> None:
    model = make_transformer()
    vectors = model.source_vectors([[3, 4], [5, 6, 7]])
    states, _ = model.encode(pack_source([[3, 4]]))
    assert vectors.shape == (2, 8) and torch.allclose(vectors[0], states.mean(0))
    assert model.word_embedding("source") is model.encoder.embedding
    assert isinstance(model, WordParameters)
    rows = model.row_words(["a"] * SOURCE, ["b"] * TARGET)
    sizes = {name: len(parameter) for name, parameter in model.named_parameters()}
    assert {sizes[name]: set(words) for name, words in rows.items() if name in sizes} == {
        SOURCE: {"a"}, TARGET: {"b"},
    }  # fmt: skip


def test_ties() -> None:
    """One matrix, with the gradient of all its uses; all three need one vocabulary."""
    target = make_transformer(tied="target")
    assert target.output.words is target.decoder.embedding.weight
    config = TransformerConfig(embedding=8, feed_forward=8, heads=2, tied="all")
    model = Transformer(config, TARGET, TARGET)
    assert model.encoder.embedding.weight is model.decoder.embedding.weight
    assert sum(p.numel() for p in model.parameters() if len(p) == TARGET and p.dim() == 2) == 8 * TARGET
    with pytest.raises(ConfigError, match=r"model\.tied: all needs one vocabulary"):
        Transformer(config, SOURCE, TARGET)


@pytest.mark.parametrize(
    ("given", "layers", "shown"), [(0, 6, 4), (0, 2, 0), (0, 1, 0), (3, 6, 2), (6, 6, 5)]
)
def test_the_layer_whose_attention_is_shown(given: int, layers: int, shown: int) -> None:
    config = TransformerConfig(attention_layer=given, decoder_layers=layers)
    config.check()
    assert config.shown_layer == shown
