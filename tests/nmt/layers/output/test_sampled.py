"""NCE and negative sampling: what is optimal, and what the layers are outside training."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.config import settings
from nmt.errors import ConfigError
from nmt.layers.output.base import OutputSettings
from nmt.layers.output.sampled import NegativeSampling, NoiseContrastive, alias_draw, alias_table
from tests.nmt.layers.output.layers import K, V, check_distribution, features, layer_of, zipf

# ---- sampled -----------------------------------------------------------------------------------------------


KINDS = {"nce": NoiseContrastive, "negative-sampling": NegativeSampling}
CONTEXTS, WORDS, SAMPLES = 3, 4, 400


def corpus() -> Tensor:
    """Counts of words after contexts: (CONTEXTS, WORDS)"""
    return torch.tensor([[40, 10, 5, 5], [6, 30, 2, 2], [14, 10, 13, 63]], dtype=torch.float64)


def unigrams() -> Tensor:
    """The words of the corpus, SAMPLES of them."""
    counts = corpus().sum(0).long()
    return torch.arange(WORDS).repeat_interleave(counts * (SAMPLES // int(counts.sum())))


def tiny(kind: str) -> NoiseContrastive:
    """Features are one-hot contexts, so that each word has a number for each context; the noise is the
    unigram distribution of the corpus."""
    settings = OutputSettings(output=kind, output_samples=SAMPLES, output_power=1.0)
    layer = KINDS[kind](CONTEXTS, WORDS, False, settings).double()
    layer.noise.copy_(torch.log(corpus().sum(0) / corpus().sum()))  # `learn` rounds to single precision
    return layer


def gradient(layer: NoiseContrastive, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """Of the loss of the whole corpus, its noise words exactly as frequent as Ψ says: (WORDS, CONTEXTS)"""
    monkeypatch.setattr("nmt.layers.output.sampled.alias_draw", lambda share, other, count: unigrams())
    pairs = torch.arange(CONTEXTS * WORDS).repeat_interleave(corpus().long().flatten())
    loss = layer.train().cross_entropy(torch.eye(CONTEXTS).double()[pairs // WORDS], pairs % WORDS)
    return torch.autograd.grad(loss, layer.words)[0]


def pmi() -> Tensor:
    """log p(w, c) / p(w) p(c): (WORDS, CONTEXTS)"""
    joint = corpus() / corpus().sum()
    return torch.log(joint / (joint.sum(1, keepdim=True) * joint.sum(0))).t()


def test_the_optimum_of_negative_sampling_is_pmi_less_log_k(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levy and Goldberg 2014: there the gradient vanishes, beside it not."""
    layer = tiny("negative-sampling")
    with torch.no_grad():
        layer.words.copy_(pmi() - np.log(SAMPLES))
    assert gradient(layer, monkeypatch).abs().max() < 1e-9
    with torch.no_grad():
        layer.words.add_(0.1)
    assert gradient(layer, monkeypatch).min() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_optimum_scores_are_log_p(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """log p(w | c) of the corpus; log Z is 0 without being computed."""
    layer = tiny(kind)
    wanted = torch.log(corpus() / corpus().sum(1, keepdim=True))
    with torch.no_grad():
        layer.words.copy_(wanted.t() - layer.base[:, None])
    assert gradient(layer, monkeypatch).abs().max() < 1e-9
    given = torch.eye(CONTEXTS).double()
    assert torch.allclose(layer.eval().scores(given), wanted)
    assert torch.allclose(layer.log_z(given), torch.zeros(CONTEXTS).double(), atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_outside_training_it_is_a_softmax(kind: str, bias: bool) -> None:
    layer = layer_of(bias, output=kind)
    check_distribution(layer, features())


@pytest.mark.parametrize("kind", KINDS)
def test_before_training_scores_are_those_of_the_noise(kind: str) -> None:
    layer = KINDS[kind](K, 1000, True, OutputSettings(output=kind))
    torch.nn.init.zeros_(layer.words)
    layer.learn(zipf(1000, 3000))
    assert torch.allclose(layer.scores(features(2).float()), layer.noise.expand(2, -1), atol=1e-5)
    assert torch.allclose(layer.log_z(features(2).float()), torch.zeros(2), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_only_target_and_noise_get_a_gradient(kind: str) -> None:
    layer = layer_of(output=kind, output_samples=2)
    assert isinstance(layer, NoiseContrastive)
    layer.train()
    torch.manual_seed(3)
    torch.autograd.backward(layer.cross_entropy(features(2), torch.tensor([1, 2])))
    assert layer.words.grad is not None
    assert 2 <= int((layer.words.grad.abs().sum(1) > 0).sum()) <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: str) -> None:
    layer = layer_of(output=kind, output_samples=4)
    assert isinstance(layer, NoiseContrastive)
    layer.train()

    def loss(rows: Tensor) -> Tensor:
        torch.manual_seed(1)
        return layer.cross_entropy(rows, torch.tensor([1, 5, 12]))

    assert torch.autograd.gradcheck(loss, features(3).requires_grad_())


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_is_saved_with_the_weights(kind: str) -> None:
    layer, other = (layer_of(output=kind, text=text) for text in (True, False))
    assert isinstance(layer, NoiseContrastive) and isinstance(other, NoiseContrastive)
    assert not torch.allclose(layer.share, other.share)
    other.load_state_dict(layer.state_dict())
    assert torch.allclose(layer.share, other.share) and torch.equal(layer.alias, other.alias)
    assert torch.equal(layer.log_probs(features()), other.log_probs(features()))


def test_a_power_beyond_any_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="output_power: 1000 is out of range, expected 0 to 10"):
        settings.check(OutputSettings(output="nce", output_power=1000))


def test_the_power_flattens_the_noise() -> None:
    """By default it is 3/4, as in Mikolov et al. 2013."""
    usual, three_quarters = layer_of(output="nce"), layer_of(output="nce", output_power=3 / 4)
    assert torch.equal(usual.get_buffer("noise"), three_quarters.get_buffer("noise"))
    one, half = (layer_of(output="nce", output_power=power) for power in (1.0, 0.5))
    assert isinstance(one, NoiseContrastive) and isinstance(half, NoiseContrastive)
    assert torch.allclose(half.noise, torch.log_softmax(one.noise / 2, 0), atol=1e-6)
    assert len(one.noise) == V


# ---- alias -------------------------------------------------------------------------------------------------
# Draws have the frequencies of the distribution.


@pytest.mark.parametrize("weights", [[1.0], [1, 1, 1], [5, 1, 0, 2], [1e-9, 1.0], 1 / np.arange(1, 40.0)])
def test_the_columns_add_up_to_the_probabilities(weights: list[float]) -> None:
    probabilities = np.array(weights) / np.sum(weights)
    share, other = alias_table(probabilities)
    total = share.copy()
    np.add.at(total, other, 1 - share)
    assert total / len(total) == pytest.approx(probabilities, abs=1e-12)
    assert (share >= 0).all() and (share <= 1).all()


def test_frequencies() -> None:
    """Chi-squared of 100,000 draws, 9 degrees of freedom: 27.9 is exceeded once in a thousand times."""
    probabilities = 1 / np.arange(1, 11)
    probabilities /= probabilities.sum()
    share, other = (torch.from_numpy(part) for part in alias_table(probabilities))
    torch.manual_seed(1)
    counts = torch.bincount(alias_draw(share, other, 100_000), minlength=10).numpy()
    expected = 100_000 * probabilities
    assert ((counts - expected) ** 2 / expected).sum() < 27.9
    torch.manual_seed(1)
    assert np.array_equal(torch.bincount(alias_draw(share, other, 100_000), minlength=10).numpy(), counts)
