"""Training in bf16: other numbers than fp32, but nearly the same gradients."""

import gc
import weakref
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from nmt.cli.options import enter_all
from nmt.compute.autograd import Context, apply, apply_pair
from nmt.compute.precision import Mixed, Reduced, check_precision, deliver_product
from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.layers.output.softmax import Softmax
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from tests.nmt.models.models import with_options

# ---- test mixed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"encoder": "birnn", "attention": 64}, {"cell": "lstm"}, {"encoder": "grconv"}, {"decoder_layers": 2}],
    ids=str,
)
def test_mixed_gradients_are_those_of_fp32_up_to_rounding(options: dict[str, object]) -> None:
    """The loss to 1%, the direction of every gradient to a cosine of .99; and forward and backward passes
    really compute differently."""
    torch.manual_seed(0)
    config = RNNConfig(embedding=64, hidden=96, maxout=48, init="glorot", bias=True)
    model = RNNTranslator(with_options(config, options), 400, 500)
    batch = make_batch(
        [[3 + n % 90, 7, 8 + n] for n in range(40)], [[5 + n, 9, 11, 3 + n % 7] for n in range(40)]
    )
    results = []
    for mode in (nullcontext(), Mixed()):
        model.zero_grad()
        with mode:
            loss = model.loss(batch)
            torch.autograd.backward(loss)
        grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        results.append((float(loss.detach()), [grad.clone() for grad in grads]))
    assert results[1][0] == pytest.approx(results[0][0], rel=0.01) and results[1][0] != results[0][0]
    for (name, _), exact, rounded in zip(model.named_parameters(), results[0][1], results[1][1], strict=True):
        if exact.norm() > 1e-6:
            assert torch.cosine_similarity(exact.flatten(), rounded.flatten(), 0) > 0.99, name
    changed = {
        name
        for (name, _), exact, rounded in zip(
            model.named_parameters(), results[0][1], results[1][1], strict=True
        )
        if not torch.equal(exact, rounded)
    }
    assert "decoder.cell.recurrent" in changed  # a gradient of a hand-written backward pass
    assert Mixed.entered == []


def test_recurrent_gradients_are_made_in_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside backward the mode is entered again: its products are asked for there too."""
    torch.manual_seed(0)
    model = RNNTranslator(RNNConfig(embedding=64, hidden=128, maxout=48, init="glorot"), 90, 90)
    batch = make_batch([[3 + n, 7, 8] for n in range(64)], [[5 + n % 80, 9, 11] for n in range(64)])
    shapes: set[tuple[int, ...]] = set()
    product = Mixed.product

    def noted(self: Mixed, a: Tensor, b: Tensor) -> Tensor:
        shapes.add((*a.shape, *b.shape))
        return product(self, a, b)

    monkeypatch.setattr(Mixed, "product", noted)
    with Mixed():
        loss = model.loss(batch)
        shapes.clear()
        torch.autograd.backward(loss)
    assert (64, 256, 256, 128) in shapes  # dz and dr times U_z, U_r, for the 64 sentences of a step


def test_bf16_is_refused_where_the_processor_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.compute.precision.processor_flags", lambda: {"avx2", "avx512f"})
    with pytest.raises(ConfigError, match="bf16 needs a processor with avx512_bf16"):
        check_precision("bf16", "cpu")
    check_precision("fp32", "cpu")
    monkeypatch.setattr("nmt.compute.precision.processor_flags", lambda: {"avx512_bf16"})
    check_precision("bf16", "cpu")
    with pytest.raises(ConfigError, match="expected one of fp32, bf16"):
        check_precision("fp16", "cpu")


# ---- test products -----------------------------------------------------------------------------------------
# What is left of an intercepted product: torch's own results, in place and with out=.

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4)
SUMMAND = torch.full((2, 4), 0.5)


@pytest.mark.parametrize(("function", "given"), [(torch.mm, (A, B)), (torch.addmm, (SUMMAND, A, B))])
@pytest.mark.parametrize("target", [False, True])
def test_as_torch_does(function: Callable[..., Tensor], given: tuple[Tensor, ...], target: bool) -> None:
    expected = function(*given)
    out = torch.zeros(2, 4)
    found = deliver_product(function, given, {"out": out} if target else {}, A @ B)
    assert torch.equal(found, expected) and (found is out) == target
    assert torch.equal(out, expected) or not target
    assert (SUMMAND == 0.5).all()


def test_in_place() -> None:
    ours, theirs = SUMMAND.clone(), SUMMAND.clone()
    assert deliver_product(Tensor.addmm_, (ours, A, B), {}, A @ B) is ours
    assert torch.equal(ours, theirs.addmm_(A, B))


# ---- test reduced ------------------------------------------------------------------------------------------
# Products in bf16 and int8: a small error, and only inside.


@pytest.mark.parametrize(("precision", "least", "most"), [("bf16", 1e-4, 0.05), ("int8", 1e-4, 0.2)])
def test_reduced_products_err_a_little_and_only_inside(precision: str, least: float, most: float) -> None:
    torch.manual_seed(1)
    layer = torch.nn.Linear(100, 60)
    x, other = torch.randn(20, 100), torch.randn(100, 60)
    with torch.no_grad():
        whole = torch.addmm(layer.bias, x, layer.weight.t())
        exact = [
            torch.nn.functional.linear(x, layer.weight, layer.bias),
            torch.mm(x, layer.weight.t()),
            whole,
            whole + 1,
        ]
        with Reduced(precision, layer):
            out = torch.empty(20, 60)
            torch.mm(x, layer.weight.t(), out=out)
            found = [
                torch.nn.functional.linear(x, layer.weight, layer.bias),
                out,
                torch.addmm(layer.bias, x, layer.weight.t()),
            ]
            found.append((layer.bias + torch.ones(20, 60)).addmm_(x, layer.weight.t()))
            by_keyword = torch.nn.functional.linear(x, layer.weight, bias=layer.bias)
            assert torch.equal(by_keyword, found[0])
            assert torch.equal(torch.mm(x, other), x @ other)  # not a matrix of the model
        for a, b in zip(exact, found, strict=True):
            assert least < float((a - b).abs().max()) < most
        assert torch.equal(torch.mm(x, layer.weight.t()), exact[1])


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_model_too_narrow_to_gain_is_named(precision: str, caplog: pytest.LogCaptureFixture) -> None:
    """One line; the width is the mean over all weights, so that a few narrow matrices do not count."""
    wide = torch.nn.ModuleList([torch.nn.Linear(512, 64), torch.nn.Linear(16, 16)])
    with caplog.at_level("INFO"):
        Reduced(precision, wide)
        assert not caplog.messages
        Reduced(precision, torch.nn.Linear(128, 64))
    assert caplog.messages == [
        f"precision {precision} is hardly faster than fp32 for a model of this size: the rows of its "
        "matrices have 128 numbers on average, and it pays from 256 on"
    ]


def test_models_that_are_entered_together() -> None:
    layers = [torch.nn.Linear(8, 8) for _ in range(2)]
    x = torch.randn(3, 8)
    with torch.no_grad():
        exact = [layer(x) for layer in layers]
        with enter_all([Reduced("int8", layer) for layer in layers]):
            assert not any(torch.equal(layer(x), y) for layer, y in zip(layers, exact, strict=True))
        with enter_all([]):
            assert all(torch.equal(layer(x), y) for layer, y in zip(layers, exact, strict=True))


# ---- test autograd -----------------------------------------------------------------------------------------
# Functions with one result and with two, and their gradients.


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Tensor:
        return 2 * grad


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx: Context, s: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return s + p * y, s + p * x


def test_results_and_gradients() -> None:
    x, y = (torch.tensor(values, dtype=torch.float64, requires_grad=True) for values in ([1.0, 2], [3.0, 5]))
    assert torch.autograd.gradcheck(lambda a: apply(Twice, a), (x,))
    assert torch.autograd.gradcheck(lambda a, b: apply_pair(Both, a, b), (x, y))
    total, product = apply_pair(Both, x, y)
    assert apply(Twice, x).tolist() == [2, 4] and total.tolist() == [4, 7] and product.tolist() == [3, 10]


def test_the_softmax_computes_in_mixed_where_autocast_is_on() -> None:
    """The switch of CUDA's autocast has no effect on the CPU, so this is what a GPU would do."""
    torch.manual_seed(0)
    layer, features, words = Softmax(300, 2000), torch.randn(40, 300), torch.randint(0, 2000, (40,))
    torch.nn.init.normal_(layer.words)
    exact = layer.cross_entropy(features, words).item()
    with Mixed():
        rounded = layer.cross_entropy(features, words).item()
    torch.set_autocast_enabled("cuda", True)
    try:
        assert layer.cross_entropy(features, words).item() == rounded != exact
        assert torch.is_autocast_enabled("cuda") and not Mixed.entered
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_the_mode_keeps_nothing_of_an_update() -> None:
    """Its rounded copies must not wait for Python's collector of cycles: an update on a GPU has hundreds of
    megabytes."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)
    gc.collect()
    gc.disable()
    try:
        with Mixed():
            hidden = first(torch.randn(64, 256))
            torch.autograd.backward(second(hidden).sum())
        kept = weakref.ref(hidden)
        del hidden
        assert kept() is None
    finally:
        gc.enable()
