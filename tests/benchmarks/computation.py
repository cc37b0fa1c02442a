"""Units of variable computation: the time of a step against m, one row alone and many rows grouped by m,
against whole matrices behind the same mask; and a training step against the plain units.

python tests/benchmarks/computation.py [--hidden 1024] [--rows 64]
"""

from timing import interleave, report  # first: it sets the thread policy

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from nmt.layers.cells import GRU, Elman
from nmt.layers.initialize import initialize
from nmt.papers.variable.cells import VCGRU, VCRNN, VariableCell, make_mask
from nmt.papers.settings import ComputationSettings

CELLS: dict[str, type[VariableCell]] = {"vcrnn": VCRNN, "vcgru": VCGRU}
SHARES = (1.0, 0.75, 0.5, 0.35, 0.2)
STEPS = 200


def cell_of(kind: str, hidden: int) -> VariableCell:
    torch.manual_seed(0)
    cell = CELLS[kind](hidden, hidden, ComputationSettings(sharpness=1.0))
    initialize(cell, "uniform", 0.05)
    return cell


def decided(cell: VariableCell, m: Tensor) -> Callable[[Tensor], Tensor]:
    """A step whose shares (R,) are given: x and v x + b, where b is m alone."""
    with torch.no_grad():
        cell.scheduler.bias.zero_()
    projected = torch.logit(m.clamp(1e-7, 1 - 1e-7))
    x = torch.cat([torch.randn(len(m), cell.inputs.shape[1]), projected[:, None]], 1)
    return lambda h: cell.advance(x, h)


def dense(cell: VariableCell, m: Tensor) -> Callable[[Tensor], Tensor]:
    """The same by whole matrices."""
    x = torch.randn(len(m), cell.inputs.shape[1])
    base = cell.bias.expand(len(m), -1)

    def step(h: Tensor) -> Tensor:
        e = make_mask(m, cell.hidden, cell.scheduler.sharpness)
        return cell.change(e * x, h, e, base)

    return step


@torch.no_grad()
def repeat(step: Callable[[Tensor], Tensor], h: Tensor, times: int) -> None:
    for _ in range(times):
        h = step(h)


def steps(kind: str, hidden: int, rows: int) -> None:
    cell = cell_of(kind, hidden)
    h, times = torch.rand(rows, hidden), max(1, STEPS // rows)
    variants = {"whole matrices": dense(cell, torch.full((rows,), 0.5))}
    for m in SHARES:
        variants[f"m = {m}"] = decided(cell, torch.full((rows,), m))
    if rows > 1:
        variants["m spread over 0.05 to 0.55"] = decided(cell, torch.linspace(0.05, 0.55, rows))
    seconds = interleave({name: partial(repeat, step, h, times) for name, step in variants.items()}, 5)
    report(f"{kind}, {rows} rows, H {hidden}, {times} steps without gradient", seconds, "falls with m")


def training(hidden: int, rows: int) -> None:
    sizes = [rows] * 35
    x, h = torch.randn(sum(sizes), hidden), torch.zeros(rows, hidden)
    plain = {"vcrnn": Elman(hidden, hidden), "vcgru": GRU(hidden, hidden, bias=True)}
    for kind, other in plain.items():
        initialize(other, "uniform", 0.05)

        def run(cell: nn.Module) -> None:
            cell.zero_grad(set_to_none=True)
            torch.autograd.backward(cell.unroll_state(x, sizes, h)[0].sum())  # type: ignore[operator]

        cells: dict[str, nn.Module] = {type(other).__name__: other, kind: cell_of(kind, hidden)}
        seconds = interleave({name: partial(run, cell) for name, cell in cells.items()}, 3)
        report(f"training, 35 steps of {rows} rows, H {hidden}", seconds, "at most 1.5x the time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=64)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for kind in CELLS:
        for rows in (1, args.rows):
            steps(kind, args.hidden, rows)
    training(args.hidden // 2, args.rows)


if __name__ == "__main__":
    main()
