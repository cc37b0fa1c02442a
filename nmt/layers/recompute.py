"""Gradient checkpointing (Chen et al. 2016b; van Merriënboer 2018, section 9.2.3): what layers compute is
computed again in the backward pass instead of being kept. Recurrent layers over long texts segment by segment
of time steps, layers of attention one by one.

E input size, H hidden units, S size of a state, B sentences, N tokens, R rows."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from nmt.compute.precision import Mixed

# Inputs (N, E), rows of each step, state (R, S), dropout masks (N, H) -> features (N, H), state (R, S)
Layers = Callable[[Tensor, list[int], Tensor, Sequence[Tensor]], tuple[Tensor, Tensor]]


def unroll_in_segments(
    layers: Layers, inputs: Tensor, sizes: list[int], start: Tensor, masks: Sequence[Tensor], steps: int
) -> tuple[Tensor, Tensor]:
    """Compute `layers` for all time steps, `steps` at a time, storing only the states between segments:
    inputs (N, E), start (R, S) -> features (N, H), and the last state (R, S). `sizes`: rows of each step;
    `masks`: dropout masks (N, H) of each layer, drawn beforehand so that both computations use the same."""
    parts = [sizes[first : first + steps] for first in range(0, len(sizes), steps)]
    rows = [sum(part) for part in parts]
    split = [mask.split(rows) for mask in masks]
    segments, state = [], start
    for number, (part, here) in enumerate(zip(parts, inputs.split(rows), strict=True)):
        features, state = checkpoint(
            layers,
            here,
            part,
            state[: part[0]],
            [mask[number] for mask in split],
            use_reentrant=False,
            preserve_rng_state=False,
            context_fn=contexts,
        )
        segments.append(features)
    return torch.cat(segments), state


def recompute(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Compute layer(x), storing only x: the backward pass computes the rest again, with the same dropout."""
    output: Tensor = checkpoint(layer, x, use_reentrant=False, context_fn=contexts)
    return output


def contexts() -> tuple[AbstractContextManager[object], AbstractContextManager[object]]:
    """Contexts of the computation and of its repetition in the backward pass. The repetition enters bf16
    again, because torch's autograd engine leaves such modes."""
    return nullcontext(), Mixed.entered[-1] if Mixed.entered else nullcontext()
