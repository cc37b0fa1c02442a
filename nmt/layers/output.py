"""From a decoder state to word probabilities: the deep output with maxout of Cho et al. 2014, softmax,
cross-entropy.

M maxout units, V words, K the width of the last matrix (M, or the rank of a low-rank output matrix), N
tokens.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.fastmath import rounded

# rows of scores are this many floats or a multiple: a row of 6,478 instead of 6,480 costs matrix products a
# quarter of their speed
ALIGN = 16
# rows of V scores at a time: memory does not grow with the batch, and 256 x 15k floats still fit a shared
# cache
BLOCK = 256


class _CrossEntropy(torch.autograd.Function):
    """Σ -log softmax(f Gᵀ + b)[y], block by block; the gradient is formed at once, so no (N, V) matrix ever
    exists.

    With smoothing ε the answer is not y alone but (1 - ε) y + ε / V of every word (Szegedy et al. 2016). With
    a penalty α the sum has α (log Z)² of each token, Z being the softmax's denominator (Devlin et al. 2014):
    scores learn to be log p themselves.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        matrix: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        penalty: float,
    ) -> Tensor:
        words = len(matrix)
        matrix, all_bias = aligned(matrix, bias)
        d_features, d_matrix = torch.empty_like(features), torch.zeros_like(matrix)
        d_bias = None if bias is None or all_bias is None else torch.zeros_like(all_bias)
        total = features.new_zeros((), dtype=torch.float64)
        for start in range(0, len(features), BLOCK):
            rows = features[start : start + BLOCK]
            answers = targets[start : start + BLOCK, None]
            scores = F.linear(rows, matrix, all_bias)
            log_z = scores.logsumexp(1, keepdim=True) if penalty else None
            scores = torch.log_softmax(scores, 1)
            total -= (1 - smoothing) * scores.gather(1, answers).sum(dtype=torch.float64)
            if smoothing:
                total -= smoothing * scores[:, :words].mean(1, dtype=torch.float64).sum()
            scores.exp_()
            if log_z is not None:
                total += penalty * log_z.double().square().sum()
                scores *= 1 + 2 * penalty * log_z
            scores.scatter_add_(
                1, answers, scores.new_full(answers.shape, smoothing - 1)
            )  # softmax minus the answer
            if smoothing:
                scores[:, :words] -= smoothing / words
            if d_bias is not None:
                d_bias += scores.sum(0)
            scores = rounded(scores)
            torch.mm(scores, matrix, out=d_features[start : start + BLOCK])
            d_matrix.addmm_(scores.t(), rows)
        ctx.save_for_backward(d_features, d_matrix[:words], *([] if d_bias is None else [d_bias[:words]]))
        return total.to(features.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_matrix, *rest = ctx.saved_tensors
        return d_features * grad, d_matrix * grad, rest[0] * grad if rest else None, None, None, None


def aligned(matrix: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Matrix (V, K) and bias with rows of probability 0 added, up to a multiple of ALIGN: every softmax over
    them is the same."""
    more = -len(matrix) % ALIGN
    if not more:
        return matrix, bias
    bias = matrix.new_zeros(len(matrix)) if bias is None else bias
    return F.pad(matrix, (0, 0, 0, more)), F.pad(bias, (0, more), value=-torch.inf)


class Softmax(nn.Module):
    """p = softmax(G f + b) of features f: (N, K) -> (N, V)"""

    def __init__(self, inputs: int, words: int) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(words, inputs))  # G
        self.words_bias: nn.Parameter | None = nn.Parameter(torch.zeros(words))
        self._aligned: tuple[object, tuple[Tensor, Tensor | None]] | None = None

    def train(self, mode: bool = True) -> "Softmax":
        self._aligned = None
        return super().train(mode)

    def aligned(self) -> tuple[Tensor, Tensor | None]:
        """`aligned` of the output matrix; kept while nothing is trained."""
        if self.training or torch.is_grad_enabled():
            return aligned(self.words, self.words_bias)
        version = (self.words.data_ptr(), self.words._version)
        kept = self._aligned  # read once: another thread may replace it
        if kept is None or kept[0] != version:
            kept = self._aligned = (
                version,
                aligned(self.words.detach(), None if self.words_bias is None else self.words_bias.detach()),
            )
        return kept[1]

    def room(self, rows: int) -> Tensor:
        """Memory for `log_probs` of so many rows."""
        return self.words.new_empty(rows, len(self.words) + -len(self.words) % ALIGN)

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        """(R, K) -> (R, V), natural logarithm; into `out`, a `room`, where no gradient is wanted: fresh pages
        cost a sixth of the time"""
        matrix, bias = self.aligned()
        if out is None:
            return torch.log_softmax(F.linear(features, matrix, bias), 1)[:, : len(self.words)]
        if bias is None:
            torch.mm(features, matrix.t(), out=out)
        else:
            torch.addmm(bias, features, matrix.t(), out=out)
        return torch.log_softmax(out, 1, out=out)[:, : len(self.words)]

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """Σ -log p(target), natural logarithm, and the penalty Σ α (log Z)²: (N, K), (N,) -> ()"""
        return _CrossEntropy.apply(features, self.words, self.words_bias, targets, smoothing, penalty)

    def log_probs_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """log p of the given words, without gradient: (N, K), (N,) -> (N,)"""
        with torch.no_grad():
            blocks = [
                self.log_probs(features[start : start + BLOCK]).gather(
                    1, targets[start : start + BLOCK, None]
                )[:, 0]
                for start in range(0, len(features), BLOCK)
            ]
            return torch.cat(blocks) if blocks else features.new_zeros(0)

    def scores_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """The scores of given words alone, log p short of log Z, without gradient: (N, K), (N,) -> (N,)"""
        with torch.no_grad():
            scores = (features * self.words.index_select(0, targets)).sum(1)
            return scores if self.words_bias is None else scores + self.words_bias.index_select(0, targets)


class DeepOutput(Softmax):
    """s = O_h h + O_y e(y) + O_c c;  m_i = max(s_2i, s_2i+1);  p = softmax(G m)   (section 4.4.1; pairs are
    neighbours)

    With `rank` the output matrix is G_left G_right of that rank.
    """

    def __init__(
        self,
        hidden: int,
        embedding: int,
        context: int,
        maxout: int,
        words: int,
        rank: int = 0,
        bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        nn.Module.__init__(
            self
        )  # not Softmax's: parameters are filled in the order in which they are named here
        self.hidden = nn.Parameter(torch.empty(2 * maxout, hidden))  # O_h
        self.previous = nn.Parameter(torch.empty(2 * maxout, embedding))  # O_y
        self.context = nn.Parameter(torch.empty(2 * maxout, context)) if context else None  # O_c
        self.right = nn.Parameter(torch.empty(rank, maxout)) if rank else None  # G_right
        self.words = nn.Parameter(torch.empty(words, rank or maxout))  # G, or G_left
        self.bias = nn.Parameter(torch.zeros(2 * maxout)) if bias else None
        self.words_bias = nn.Parameter(torch.zeros(words)) if bias else None
        self.dropout = dropout
        self._aligned: tuple[object, tuple[Tensor, Tensor | None]] | None = None

    def project_context(self, context: Tensor) -> Tensor:
        """O_c c, once a sentence: (B, C) -> (B, 2M)"""
        assert self.context is not None, "this output was made without a context"
        return F.linear(context, self.context)

    def features(self, hidden: Tensor, previous: Tensor, context: Tensor | None = None) -> Tensor:
        """hidden (N, H), embedding of the word before (N, E), projected context (N, 2M) -> (N, K)"""
        return self.combine(hidden, self.project_previous(previous), context)

    def project_previous(self, previous: Tensor) -> Tensor:
        """O_y e(y): (N, E) -> (N, 2M)"""
        return F.linear(previous, self.previous)

    def combine(self, hidden: Tensor, previous: Tensor, context: Tensor | None = None) -> Tensor:
        """As `features`, of a previous word that is projected already, (N, 2M)"""
        sums = F.linear(hidden, self.hidden, self.bias) + previous
        if context is not None:
            sums = sums + context
        maxout = sums.view(len(sums), -1, 2).amax(2)
        maxout = F.dropout(maxout, self.dropout, self.training)
        return maxout if self.right is None else F.linear(maxout, self.right)
