"""The softmax against torch's own functions; parts of it against the whole."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.layers.output import OutputSettings, check_output, refuse, softmax
from nmt.layers.output.softmax import Softmax
from tests.nmt.layers.output.layers import K, V, check_backward, check_distribution, features

# ---- softmax -----------------------------------------------------------------------------------------------


def make(bias: bool = True, vocab_size: int = V) -> Softmax:
    torch.manual_seed(0)
    layer = Softmax(K, vocab_size, bias)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer.double().eval()


def expected(layer: Softmax, rows: Tensor) -> Tensor:
    return torch.log_softmax(F.linear(rows, layer.words, layer.words_bias), 1)


@torch.no_grad()
def test_what_is_cached_follows_the_bias_too() -> None:
    layer, rows = make(), features()
    layer.log_probs(rows)
    assert layer.words_bias is not None
    layer.words_bias[0] += 1
    assert torch.allclose(layer.log_probs(rows), expected(layer, rows), atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_cross_entropy_is_torchs_with_its_gradients(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "BLOCK", 4)  # several blocks, the last one shorter
    layer, rows, targets = make(bias), features().requires_grad_(), torch.arange(10)
    parameters = [rows, *layer.parameters()]
    ours = 2 * layer.cross_entropy(rows, targets)
    theirs = 2 * F.cross_entropy(F.linear(rows, layer.words, layer.words_bias), targets, reduction="sum")
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), abs=1e-12)
    pairs = zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True)
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in pairs)
    assert torch.allclose(-layer.target_log_probs(rows, targets).sum() * 2, ours)


@pytest.mark.parametrize("vocab_size", [13, 16])
@pytest.mark.parametrize("bias", [True, False])
def test_label_smoothing_is_torchs(vocab_size: int, bias: bool) -> None:
    """(1 - ε) -log p(y) + ε / V Σ -log p(v), value and gradients, whether or not rows of scores are padded to
    16."""
    layer, rows = make(bias, vocab_size), features(7).requires_grad_()
    targets = torch.arange(7)
    parameters = [rows, *layer.parameters()]
    ours = layer.cross_entropy(rows, targets, 0.1)
    scores = F.linear(rows, layer.words, layer.words_bias)
    theirs = F.cross_entropy(scores, targets, reduction="sum", label_smoothing=0.1)
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), abs=1e-10)
    pairs = zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True)
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in pairs)


def test_the_penalty_is_the_squared_normalizer() -> None:
    layer, rows, targets = make(), features().requires_grad_(), torch.arange(10)
    ours = layer.cross_entropy(rows, targets, penalty=0.3) - layer.cross_entropy(rows, targets)
    theirs = 0.3 * layer.log_z(rows).square().sum()
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()))
    assert torch.allclose(torch.autograd.grad(ours, rows)[0], torch.autograd.grad(theirs, rows)[0])


@pytest.mark.parametrize("bias", [True, False])
def test_padding_changes_no_probability(bias: bool) -> None:
    """13 words are computed as 16, three of them of probability 0."""
    layer, rows = make(bias), features(6)
    with torch.no_grad():
        probabilities = layer.log_probs(rows)
        assert layer.padded_weights()[0].shape == (16, K) and probabilities.shape == (6, V)
        assert torch.allclose(probabilities, expected(layer, rows), atol=1e-13)
        assert torch.allclose(layer.log_probs(rows, layer.room(6)), expected(layer, rows), atol=1e-13)
        layer.words.mul_(2)
        assert torch.allclose(layer.log_probs(rows), expected(layer, rows), atol=1e-13)  # the copy follows


@pytest.mark.parametrize("bias", [True, False])
def test_every_method_gives_the_same_distribution(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "BLOCK", 3)  # several blocks, the last one shorter
    check_distribution(make(bias), features())
    check_backward(make(bias))


class Halved(Softmax):
    """All scores halved: what a subclass that overrides `weights` does."""

    def weights(self) -> tuple[Tensor, Tensor | None]:
        return self.words / 2, None if self.words_bias is None else self.words_bias / 2


def test_every_method_follows_the_weights_of_a_subclass() -> None:
    plain, layer = make(), Halved(K, V).double().eval()
    layer.load_state_dict(plain.state_dict())
    wanted = torch.log_softmax(plain.scores(features()) / 2, 1)
    assert torch.allclose(check_distribution(layer, features()), wanted, atol=1e-12)


# ---- registry ----------------------------------------------------------------------------------------------
# Settings of output layers: those that a layer does not read are refused, and so is what it cannot do.


@pytest.mark.parametrize(
    "settings, tied, message",
    [
        ({"output": "sofmax"}, False, "lm.output: 'sofmax' is unknown, expected one of 'softmax', "),
        (
            {"output_class_count": 5},
            False,
            "lm.output_class_count: not used with output: softmax; leave it out",
        ),
        ({"output": "tree", "output_arity": 1}, False, "lm.output_arity: 1 makes no tree; expected 2 or"),
        ({"output": "nce", "output_arity": 3}, False, "lm.output_arity: not used with output: nce"),
        (
            {"output": "classes"},
            True,
            "lm.tied: cannot be combined with lm.output: classes: its matrix has rows of",
        ),
    ],
)
def test_refused(settings: dict[str, object], tied: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        check_output(OutputSettings(**settings), "lm", tied)  # type: ignore[arg-type]


def test_accepted() -> None:
    check_output(OutputSettings(), "model", tied=True)
    check_output(OutputSettings(output="classes", output_class_count=5), "model")
    refuse(OutputSettings(), "model", "label_smoothing", "training.label_smoothing")


def test_label_smoothing() -> None:
    with pytest.raises(
        ConfigError, match=r"^training\.label_smoothing: cannot be combined with model\.output: classes"
    ):
        refuse(OutputSettings(output="classes"), "model", "label_smoothing", "training.label_smoothing")
