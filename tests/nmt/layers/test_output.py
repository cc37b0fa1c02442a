import pytest
import torch
import torch.nn.functional as F

from nmt.layers import output
from nmt.layers.initialize import initialize
from nmt.layers.output import DeepOutput

H, E, C, M, V = 4, 3, 5, 6, 11


def make(**options: object) -> DeepOutput:
    torch.manual_seed(0)
    layer = DeepOutput(H, E, C, M, V, **options)  # type: ignore[arg-type]
    initialize(layer, "glorot", 0)
    for bias in (layer.bias, layer.words_bias):
        if bias is not None:
            torch.nn.init.normal_(bias)
    return layer.double().eval()


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"rank": 2}, {"rank": 2, "bias": True}])
def test_cross_entropy_is_torchs_with_its_gradients(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "BLOCK", 4)  # several blocks, the last one shorter
    layer = make(**options)
    features = torch.randn(10, layer.words.shape[1], dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, V, (10,))
    results = []
    for loss in (
        2 * layer.cross_entropy(features, targets),
        2 * F.cross_entropy(F.linear(features, layer.words, layer.words_bias), targets, reduction="sum"),
    ):
        layer.zero_grad()
        features.grad = None
        loss.backward()
        results.append(
            [
                loss.detach(),
                features.grad,
                *(p.grad.clone() for p in layer.parameters() if p.grad is not None),
            ]
        )
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(*results, strict=True))
    assert torch.allclose(-layer.log_probs_of(features, targets).sum() * 2, results[0][0])


def test_maxout_takes_the_larger_of_neighbours() -> None:
    layer = make()
    h, y, c = (torch.randn(1, size, dtype=torch.float64) for size in (H, E, C))
    sums = (layer.hidden @ h[0] + layer.previous @ y[0] + layer.context @ c[0]).tolist()  # type: ignore[operator]
    expected = [max(sums[2 * i], sums[2 * i + 1]) for i in range(M)]
    assert layer.features(h, y, layer.project_context(c))[0].tolist() == pytest.approx(expected)


def test_probabilities_sum_to_one() -> None:
    probabilities = make(bias=True).log_probs(torch.randn(5, M, dtype=torch.float64)).exp()
    assert torch.allclose(probabilities.sum(1), torch.ones(5, dtype=torch.float64))


def test_low_rank_has_the_rank_and_the_parameters_it_says() -> None:
    full, low = make(), make(rank=2)
    assert low.right is not None
    assert sum(p.numel() for p in full.parameters()) - sum(
        p.numel() for p in low.parameters()
    ) == V * M - 2 * (V + M)
    assert int(torch.linalg.matrix_rank(low.words @ low.right)) == 2


@pytest.mark.parametrize("words", [13, 16])
@pytest.mark.parametrize("bias", [True, False])
def test_label_smoothing_equals_torchs(words: int, bias: bool) -> None:
    """(1 - ε) -log p(y) + ε / V Σ -log p(v), value and gradients, whether or not rows of scores are filled up
    to 16."""
    torch.manual_seed(0)
    layer = DeepOutput(4, 3, 0, 5, words, bias=bias).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    features, targets = torch.randn(7, 5, dtype=torch.float64, requires_grad=True), torch.randint(words, (7,))
    parameters = [features, layer.words, *([layer.words_bias] if bias else [])]
    ours = layer.cross_entropy(features, targets, 0.1)
    scores = torch.nn.functional.linear(features, layer.words, layer.words_bias)
    theirs = torch.nn.functional.cross_entropy(scores, targets, reduction="sum", label_smoothing=0.1)
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), abs=1e-10)
    for one, other in zip(
        torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True
    ):  # type: ignore[arg-type]
        assert torch.allclose(one, other, atol=1e-12)
