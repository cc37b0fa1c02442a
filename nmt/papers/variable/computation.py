"""Measures how much of its state each layer of a language model of cells vcrnn or vcgru computes at each unit
of a text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.errors import ConfigError, DataError
from nmt.lm.recurrent import RecurrentLM
from nmt.papers.variable.cells import VariableCell
from nmt.runs.checkpoint import SavedLM
from nmt.text.vocab import EOS, SPECIALS


@dataclass
class ComputationStep:
    """How much one layer computes when it reads one unit."""

    line: int  # from 1
    position: int  # from 0, the end symbol of the line before
    unit: str
    layer: int  # from 1
    m: float  # share of the state that the layer decides to compute, 0 to 1
    dimensions: int  # hidden units that are computed
    equivalent: float  # hidden units of an Elman layer that does as much


@dataclass
class LayerComputation:
    """Amount of computation of one layer at each of T units of a text."""

    equivalent: float  # hidden units of an Elman layer with as many operations as one of this layer
    shares: Tensor  # (T,) m
    dimensions: Tensor  # (T,) hidden units that were computed


@torch.no_grad()
def layer_computations(
    model: RecurrentLM, token_ids: Tensor, state: Tensor | None
) -> tuple[Sequence[LayerComputation], Tensor]:
    """Read running text (T,) from a state, or with None from the beginning. Returns how much each layer
    computed, and the state after the text; an empty list and the first state if cells compute everything."""
    hidden, layers, after = model.embedding(token_ids), [], []
    start = model.zeros(1) if state is None else state
    for cell, part in zip(model.cells, torch.split(start, model.state_sizes, 1), strict=True):
        if not isinstance(cell, VariableCell):
            return [], start
        hidden, m = cell.unroll_shares(hidden, [1] * len(token_ids), part)
        layers.append(LayerComputation(cell.equivalent, m, cell.dimensions(m)))
        after.append(hidden[-1:])
    return layers, torch.cat(after, 1)


def computation_steps(run: SavedLM, lines: Iterable[str]) -> Iterator[ComputationStep]:
    """Read a text with a model, each line after an end symbol, and yield a step for each unit and layer.
    ConfigError for a model that computes everything, DataError for a text without lines."""
    model, state, line = run.model, None, 0
    if not isinstance(model, RecurrentLM):
        raise no_variable_cells(run)
    for line, text in enumerate(lines, 1):
        units = run.text.units(text)
        ids = torch.tensor([EOS, *run.encode([units])[0]], device=model.device)
        layers, after = layer_computations(model, ids, state)
        if not layers:
            raise no_variable_cells(run)
        state = after if model.carries else None
        for number, layer in enumerate(layers, 1):
            values = zip(
                [SPECIALS[EOS], *units], layer.shares.tolist(), layer.dimensions.tolist(), strict=True
            )
            for position, (unit, m, d) in enumerate(values):
                yield ComputationStep(line, position, unit, number, m, d, d * layer.equivalent)
    if not line:
        raise DataError("empty text, expected one sentence a line")


def no_variable_cells(run: SavedLM) -> ConfigError:
    """Build the error for a model without cells vcrnn or vcgru."""
    return ConfigError(
        f"{run.directory}: computes all of its state at each step; train with lm.cell vcrnn or vcgru"
    )
