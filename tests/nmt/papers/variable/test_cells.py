"""Units of variable computation: their equations, steps as the whole, gradients, and what is not computed."""

import math

import pytest
import torch
from torch import Tensor

from nmt.config.settings import problems
from nmt.layers.cells import GRU, Elman, penalized_parts, total_penalty
from nmt.layers.initialize import initialize
from nmt.papers.settings import ComputationSettings
from nmt.papers.variable.cells import MASK_EPSILON, VCGRU, VCRNN, Scheduler, VariableCell, make_mask

# ---- variable ----------------------------------------------------------------------------------------------


E, H, C, SIZES = 4, 6, 3, [3, 3, 2, 1]
VARIABLE_CELLS: dict[str, type[VariableCell]] = {"vcrnn": VCRNN, "vcgru": VCGRU}
CELLS = list(VARIABLE_CELLS)


def make(
    kind: str, sharpness: float = 0.8, inputs: int = E, hidden: int = H, context: int = C
) -> VariableCell:
    torch.manual_seed(0)
    cell = VARIABLE_CELLS[kind](inputs, hidden, ComputationSettings(sharpness=sharpness), context)
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter)
    return cell.double()


def given(cell: VariableCell, rows: int = sum(SIZES), start: int = SIZES[0]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, first states, projected contexts."""
    torch.manual_seed(1)
    G, E = cell.matrices * cell.hidden, cell.inputs.shape[1]
    return tuple(torch.randn(shape).double() for shape in ((rows, E), (start, cell.hidden), (rows, G)))  # type: ignore[return-value]


def decided(cell: VariableCell, m: float) -> VariableCell:
    """The cell with m at every step."""
    with torch.no_grad():
        cell.scheduler.state.zero_()
        cell.scheduler.inputs.zero_()
        cell.scheduler.bias.fill_(torch.tensor(m, dtype=torch.float64).logit())
    return cell


@pytest.mark.parametrize("kind", CELLS)
def test_equations(kind: str) -> None:
    """By a loop over (2.8) to (2.14), with the old state in the last term."""
    cell = make(kind)
    x, start, context = given(cell)
    states, m = cell.unroll_shares(x, SIZES, start, context)
    U, V = cell.recurrent.view(-1, H, H), cell.inputs.view(-1, H, E)
    base = (cell.bias + context).view(len(x), -1, H)
    for row in range(3):
        h, place = start[row], row
        for rows in SIZES[: 4 if row == 0 else 3 if row == 1 else 2]:
            scheduler = cell.scheduler
            share = torch.sigmoid(scheduler.state @ h + scheduler.inputs @ x[place] + scheduler.bias)
            e, f = (make_mask(share, size, scheduler.sharpness)[0] for size in (H, E))
            a = [V[g] @ (f * x[place]) + base[place, g] for g in range(cell.matrices)]
            if kind == "vcrnn":
                h = e * torch.sigmoid(U[0] @ (e * h) + a[0]) + (1 - e) * h
            else:
                z = e * torch.sigmoid(U[0] @ (e * h) + a[0])
                r = torch.sigmoid(U[1] @ (e * h) + a[1])
                h = z * torch.tanh(U[2] @ (r * e * h) + a[2]) + (1 - z) * h
            assert torch.allclose(states[place], h, atol=1e-12) and torch.allclose(m[place], share)
            place += rows


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("sharpness", [0.8, 50.0])
def test_without_gradient_the_same(kind: str, sharpness: float) -> None:
    """Unrolled with and without what the mask leaves out, and step by step."""
    cell = make(kind, sharpness)
    x, start, context = given(cell)
    wanted, shares = cell.unroll_shares(x, SIZES, start, context)
    with torch.no_grad():
        found, m = cell.unroll_shares(x, SIZES, start, context)
        assert torch.allclose(found, wanted, atol=1e-12) and torch.allclose(m, shares, atol=1e-12)
        h, parts = start, zip(x.split(SIZES), context.split(SIZES), wanted.split(SIZES), strict=True)
        for inputs, seen, states in parts:
            h = cell.step(inputs, h[: len(inputs)], seen)
            assert torch.allclose(h, states, atol=1e-12)
    h = cell.step(x[:3], start, context[:3])  # with gradient: what a decoder with attention does
    assert torch.allclose(h, wanted[:3], atol=1e-12)


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("kind", CELLS)
def test_batches_and_masked_products(kind: str, rows: int) -> None:
    """Rows in groups of about the same m are what the whole matrices give, to 1e-6 in single precision."""
    cell = make(kind, 2.0, inputs=48, hidden=64, context=0).float()
    torch.nn.init.normal_(cell.scheduler.inputs, std=0.5)
    x, h = torch.randn(rows, 48), torch.rand(rows, 64)
    wanted = cell.step(x, h).detach()
    with torch.no_grad():
        assert torch.allclose(cell.step(x, h), wanted, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("kind", CELLS)
def test_masked_dimensions_are_not_multiplied(kind: str, rows: int) -> None:
    """Matrices may hold anything where the mask is 0, and only the first ⌈m D⌉ dimensions change."""
    cell = decided(make(kind, 1e6, hidden=16, context=0), 0.3)  # ⌈4.8⌉ of 16, ⌈1.2⌉ of 4
    x, h = torch.randn(rows, E).double(), torch.rand(rows, 16).double()
    wanted = cell.step(x, h).detach()
    with torch.no_grad():
        for U, V in zip(cell.recurrent.view(-1, 16, 16), cell.inputs.view(-1, 16, E), strict=True):
            U[5:] = U[:, 5:] = V[5:] = V[:, 2:] = torch.nan
        found = cell.step(x, h)
    assert torch.allclose(found, wanted, atol=1e-12)
    assert torch.equal(found[:, 5:], h[:, 5:]) and not (found[:, :5] == h[:, :5]).any()


@pytest.mark.parametrize("kind", CELLS)
def test_all_of_it_is_the_plain_unit(kind: str) -> None:
    """m = 1: the Elman layer, and the gated unit whose z takes the new state."""
    cell = decided(make(kind, 1e6, context=0), 1 - 1e-12)
    plain = Elman(E, H) if kind == "vcrnn" else GRU(E, H, bias=True, gate="take_new")
    plain.double()
    with torch.no_grad():
        plain.inputs.copy_(cell.inputs)
        plain.bias.copy_(cell.bias)  # type: ignore[union-attr]
        plain.recurrent.copy_(cell.recurrent[-H:])
        if isinstance(plain, GRU):
            plain.recurrent_gates.copy_(cell.recurrent[: 2 * H])
    x, start, _ = given(cell)
    assert torch.allclose(
        cell.unroll_state(x, SIZES, start)[0], plain.unroll_state(x, SIZES, start)[0], atol=1e-12
    )


def test_operations_grow_with_the_square_of_m(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is multiplied at batch 1, counted."""
    counted = []

    def product(self: VariableCell, gate: int, inputs: Tensor, hidden: Tensor, base: Tensor) -> Tensor:
        counted.append(hidden.shape[1] * (hidden.shape[1] + inputs.shape[1]))
        return torch.zeros_like(hidden)

    monkeypatch.setattr(VCRNN, "product", product)
    for m in (0.25, 0.5, 0.75):
        with torch.no_grad():
            decided(make("vcrnn", 1e6, inputs=512, hidden=512, context=0), m - 1e-4).step(
                torch.zeros(1, 512).double(), torch.zeros(1, 512).double()
            )
    assert counted == [2 * 128**2, 2 * 256**2, 2 * 384**2]


# ---- variable functions ------------------------------------------------------------------------------------
# The hand-written gradients of units of variable computation.


@pytest.mark.ci
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("inputs", [E, H])
def test_gradients(kind: str, inputs: int) -> None:
    """Of states and shares, in everything that is trained."""
    cell = make(kind, inputs=inputs)
    x, start, context = (part.requires_grad_() for part in given(cell))
    trained = [parameter for name, parameter in cell.named_parameters() if name != "context"]
    assert torch.autograd.gradcheck(
        lambda *_: cell.unroll_shares(x, SIZES, start, context), [x, start, context, *trained]
    )


# ---- computation -------------------------------------------------------------------------------------------
# The mask, the scheduler's sharpness and what computation costs.


D = 8


@pytest.mark.parametrize("m", [0.0, 0.01, 0.25, 0.3, 0.5, 0.99, 1.0])
def test_a_sharp_mask_is_the_first_dimensions(m: float) -> None:
    """λ → ∞: ones at the first ⌈m D⌉ dimensions, but for one half where m D is a whole number."""
    mask = make_mask(torch.tensor([m]).double(), D, torch.tensor(1e9))[0]
    whole = math.ceil(m * D)
    assert mask[:whole].eq(1).all() and mask[whole + 1 :].eq(0).all()
    assert whole == D or mask[whole] in (0, 0.5)


def test_a_soft_mask_falls_and_is_cut_off() -> None:
    shares = torch.tensor([0.2, 0.9]).double()
    mask = make_mask(shares, 1000, torch.tensor(0.1))
    assert (mask.diff(dim=1) <= 0).all()
    assert mask.min() == 0 and mask.max() == 1
    inside = mask[(mask > 0) & (mask < 1)]
    assert inside.min() >= MASK_EPSILON and inside.max() <= 1 - MASK_EPSILON
    expected = torch.sigmoid(0.1 * (shares[:, None] * 1000 - torch.arange(1000)))
    assert torch.allclose(mask, expected, atol=2 * MASK_EPSILON)


def scheduler(**settings: float) -> Scheduler:
    made = Scheduler(2, 3, ComputationSettings(**settings))
    initialize(made, "uniform", 0.1)
    return made


def test_m_starts_where_training_wants_it() -> None:
    made = scheduler(computation=0.3)
    found = made.share(made.project(torch.randn(4, 2))[:, 0], torch.randn(4, 3))
    assert found.tolist() == pytest.approx([0.3] * 4)


@pytest.mark.parametrize("share", [0, 1])
def test_none_and_all_of_the_units_are_no_share(share: float) -> None:
    """The scheduler starts at the logit of the share."""
    assert list(problems(ComputationSettings(computation=0.99))) == []
    [problem] = problems(ComputationSettings(computation=share))
    assert problem.startswith(f"computation: {share} is out of range")


def test_sharpness_grows_from_epoch_to_epoch() -> None:
    made, found = scheduler(), []
    made.on_start(3)
    for step in range(1, 40):
        made.on_update(step)
        found.append(round(float(made.sharpness), 6))
    assert found[:6] == [0.1, 0.1, 0.2, 0.2, 0.2, 0.3] and found[-12:] == [1.0] * 12
    made = scheduler(sharpness=2.0)
    made.on_start(1)
    made.on_update(1)
    assert made.sharpness == 2, "it never falls"


def test_penalty() -> None:
    """The weight times the distances from the target, of training alone, and each once."""
    made = scheduler(computation=0.5, computation_penalty=2)
    m = torch.tensor([0.25, 0.5, 1.0], requires_grad=True)
    made.note(m)
    made.note(torch.tensor([0.0]))
    found = total_penalty(penalized_parts(torch.nn.ModuleList([made])))
    assert isinstance(found, torch.Tensor) and float(found.detach()) == pytest.approx(2 * 1.25)
    torch.autograd.backward(found)
    assert m.grad is not None and m.grad.tolist() == [-2, 0, 2]
    made.eval().note(m)
    assert total_penalty([made]) == 0
