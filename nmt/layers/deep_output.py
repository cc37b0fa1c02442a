"""From a decoder state to the output layer: the deep output with maxout of Cho et al. 2014 (section
4.4.1)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.layers.output import OutputSettings, make_output


class DeepOutput(nn.Module):
    """s = O_h h + O_y e(y) + O_c c;  m_i = max(s_2i, s_2i+1);  an output layer over the features G_right m,
    or m

    With `rank` the output matrix is G_left G_right of that rank, and G_left is the output layer's. N tokens,
    H hidden units, E embedding size, M maxout units, K features: M, or the rank.
    """

    words: nn.Parameter
    words_bias: nn.Parameter | None

    def __init__(
        self,
        hidden: int,
        embedding: int,
        context: int,
        maxout: int,
        vocab_size: int,
        rank: int = 0,
        bias: bool = False,
        dropout: float = 0.0,
        output: OutputSettings | None = None,
    ) -> None:
        """`context`: width of c, 0 for none. `output`: settings of the output layer."""
        super().__init__()
        self.hidden = nn.Parameter(torch.empty(2 * maxout, hidden))  # O_h
        self.previous = nn.Parameter(torch.empty(2 * maxout, embedding))  # O_y
        self.context = nn.Parameter(torch.empty(2 * maxout, context)) if context else None  # O_c
        self.right = nn.Parameter(torch.empty(rank, maxout)) if rank else None  # G_right
        self.layer = make_output(output or OutputSettings(), rank or maxout, vocab_size, bias)
        self.adopt("words")
        self.bias = nn.Parameter(torch.zeros(2 * maxout)) if bias else None
        self.adopt("words_bias")
        self.dropout = dropout

    def adopt(self, name: str) -> None:
        """Register a parameter of the output layer here, not there: weights and training states of every
        version have `words` and `words_bias` at these places among the parameters of this module."""
        parameter = getattr(self.layer, name, None)
        if not isinstance(parameter, nn.Parameter):
            self.register_parameter(name, None)
            return
        delattr(self.layer, name)
        self.register_parameter(name, parameter)
        vars(self.layer)[name] = parameter  # the same tensor, but no parameter of the layer

    def tie(self, embedding: nn.Embedding) -> None:
        """Use the matrix of word embeddings (V, K) as the output matrix."""
        vars(self.layer).pop("words", None)
        self.layer.tie(embedding)
        self.adopt("words")

    def project_context(self, context: Tensor) -> Tensor:
        """O_c c, once a sentence: (B, C) -> (B, 2M)"""
        assert self.context is not None, "this output was made without a context"
        return F.linear(context, self.context)

    def features(self, hidden: Tensor, previous: Tensor, context: Tensor | None = None) -> Tensor:
        """hidden (N, H), embedding of the previous word (N, E), projected context (N, 2M) -> (N, K)"""
        return self.combine(hidden, self.project_previous(previous), context)

    def project_previous(self, previous: Tensor) -> Tensor:
        """O_y e(y): (N, E) -> (N, 2M)"""
        return F.linear(previous, self.previous)

    def combine(self, hidden: Tensor, previous: Tensor, context: Tensor | None = None) -> Tensor:
        """As `features`, of a previous word that is projected already, (N, 2M)."""
        sums = F.linear(hidden, self.hidden, self.bias) + previous
        if context is not None:
            sums = sums + context
        maxout = sums.view(len(sums), -1, 2).amax(2)
        maxout = F.dropout(maxout, self.dropout, self.training)
        return maxout if self.right is None else F.linear(maxout, self.right)
