"""The readout below the output layer, and whose parameters are whose."""

import copy

import pytest
import torch
from torch import nn

from nmt.layers.deep_output import DeepOutput
from nmt.layers.initialize import initialize
from nmt.layers.output import OUTPUTS, OutputSettings, Softmax

H, E, C, M, V = 4, 3, 5, 6, 11


def make(rank: int = 0, bias: bool = False, output: str = "softmax") -> DeepOutput:
    torch.manual_seed(0)
    layer = DeepOutput(
        hidden=H,
        embedding=E,
        context=C,
        maxout=M,
        vocab_size=V,
        rank=rank,
        bias=bias,
        output=OutputSettings(output=output),
    )
    initialize(layer, "glorot", 0)
    for parameter in (layer.bias, layer.words_bias):
        if parameter is not None:
            nn.init.normal_(parameter)
    return layer.double().eval()


def test_maxout_takes_the_larger_of_neighbors() -> None:
    layer = make()
    assert layer.context is not None
    h, y, c = (torch.randn(1, size, dtype=torch.float64) for size in (H, E, C))
    sums = (layer.hidden @ h[0] + layer.previous @ y[0] + layer.context @ c[0]).tolist()
    expected = [max(sums[2 * i], sums[2 * i + 1]) for i in range(M)]
    assert layer.features(h, y, layer.project_context(c))[0].tolist() == pytest.approx(expected)


def test_probabilities_sum_to_one() -> None:
    probabilities = make(bias=True).layer.log_probs(torch.randn(5, M, dtype=torch.float64)).exp()
    assert torch.allclose(probabilities.sum(1), torch.ones(5, dtype=torch.float64))


def test_low_rank_has_the_rank_and_the_parameters_it_says() -> None:
    full, low = make(), make(rank=2)
    assert low.right is not None
    counts = [sum(parameter.numel() for parameter in layer.parameters()) for layer in (full, low)]
    assert counts[0] - counts[1] == V * M - 2 * (V + M)
    assert int(torch.linalg.matrix_rank(low.words @ low.right)) == 2


def test_parameters_have_the_names_and_the_order_of_every_version() -> None:
    """Weights are loaded by name, states of optimizers by place."""
    names = ["hidden", "previous", "context", "right", "words", "bias", "words_bias"]
    assert list(make(rank=2, bias=True).state_dict()) == names
    assert [name for name, _ in make(rank=2, bias=True).named_parameters()] == names


def test_the_output_layer_follows_its_parameters_wherever_they_go() -> None:
    """Loaded, converted, trained, copied and tied parameters are those that the layer computes with."""
    model, features = make(bias=True), torch.randn(3, M, dtype=torch.float64)
    for change in (
        lambda: model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()}),
        lambda: model.float().double(),
        lambda: torch.optim.SGD(model.parameters(), 0.1).step(),
        lambda: model.tie(nn.Embedding(V, M, dtype=torch.float64)),
    ):
        model.layer.cross_entropy(features, torch.tensor([0, 1, 2])).backward()
        change()
        model.zero_grad()
        for one in (model, copy.deepcopy(model)):
            scores = torch.nn.functional.linear(features, one.words, one.words_bias)
            assert torch.equal(one.layer.scores(features), scores)
    assert len(list(model.parameters())) == len(set(model.state_dict()))


class Shifted(Softmax):
    """An output layer with a parameter of its own."""

    def __init__(self, inputs: int, vocab_size: int, bias: bool = True) -> None:
        super().__init__(inputs, vocab_size, bias)
        self.shift = nn.Parameter(torch.ones(inputs))


def test_another_output_layer_keeps_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OUTPUTS, "shifted", Shifted)
    model = make(output="shifted")
    assert isinstance(model.layer, Shifted)
    assert list(model.state_dict()) == ["hidden", "previous", "context", "words", "layer.shift"]
