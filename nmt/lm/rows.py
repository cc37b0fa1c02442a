"""What search asks of a language model whose state is one tensor, a row for each hypothesis."""

from collections.abc import Sequence

import torch
from torch import Tensor


class RowState:
    def reorder(self, state: Tensor, rows: Tensor) -> Tensor:
        return state.index_select(0, rows)

    def join(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(states))

    def attention(self, state: Tensor) -> None:
        return None
