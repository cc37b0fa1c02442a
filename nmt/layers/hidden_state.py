"""What recurrent layers have in common whose state is a hidden vector, and which may read a context.

E input size, H hidden units, C context size, G matrices of a layer, B sentences, N tokens, R rows.
"""

import torch.nn.functional as F
from torch import Tensor, nn


class HiddenState(nn.Module):
    """A state is h, (R, H)."""

    hidden: int  # H
    context: nn.Parameter | None  # (GH, C)

    @property
    def state_size(self) -> int:
        """Width of a state."""
        return self.hidden

    def project_context(self, context: Tensor) -> Tensor:
        """C c, once for all steps: (B, C) -> (B, GH)"""
        assert self.context is not None, "this layer was made without a context"
        return F.linear(context, self.context)

    def start(self, hidden: Tensor) -> Tensor:
        """The state that a first hidden vector (B, H) stands for."""
        return hidden

    def output(self, state: Tensor) -> Tensor:
        """What the layer above reads of a state: (R, H)"""
        return state

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        """Inputs (N, E), start (B, H), projected context of each token (N, GH) -> hidden states (N, H)"""
        raise NotImplementedError

    def unroll_state(self, inputs: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """As `unroll`, and the state after the last step of the rows still alive then, (R, H)."""
        states = self.unroll(inputs, sizes, start)
        return states, states[-sizes[-1] :]
