"""The softmax over the vocabulary, its log probabilities and its cross-entropy.

V words, K features, N tokens, R rows.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.compute.device import block_rows
from nmt.compute.precision import mixed_instead_of_autocast, round_operand
from nmt.layers.output.base import OutputLayer

# Rows of scores are padded to a multiple of this many floats: a row of 6,478 instead of 6,480 costs matrix
# products a quarter of their speed.
ALIGN = 16
# Rows of V scores at a time: memory does not grow with the batch, and 256 x 15k floats still fit a shared
# cache.
BLOCK = 256


class _CrossEntropy(torch.autograd.Function):
    """Σ -log softmax(f Gᵀ + b)[y], block by block; the gradient is computed in the same pass, so no (N, V)
    matrix ever exists.

    With smoothing ε the target distribution is (1 - ε) y + ε / V (Szegedy et al. 2016). A penalty α adds α
    (log Z)² for each token, Z being the softmax's denominator (Devlin et al. 2014), so that scores learn to
    be log p themselves.
    """

    @staticmethod
    @mixed_instead_of_autocast
    def forward(
        ctx: Context,
        features: Tensor,
        matrix: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        penalty: float,
        counted: Tensor | None,
    ) -> Tensor:
        vocab_size, block = len(matrix), block_rows(features.device, BLOCK, len(matrix))
        matrix, all_bias = pad_vocabulary(matrix, bias)
        d_features, d_matrix = torch.empty_like(features), torch.zeros_like(matrix)
        d_bias = None if bias is None or all_bias is None else torch.zeros_like(all_bias)
        total = features.new_zeros((), dtype=torch.float64)
        for start in range(0, len(features), block):
            rows = features[start : start + block]
            answers = targets[start : start + block, None]
            counts = None if counted is None else counted[start : start + block, None]
            scores = F.linear(rows, matrix, all_bias)
            log_z = scores.logsumexp(1, keepdim=True) if penalty else None
            scores = torch.log_softmax(scores, 1)
            total -= (1 - smoothing) * counted_sum(scores.gather(1, answers), counts)
            if smoothing:
                total -= smoothing * counted_sum(scores[:, :vocab_size].mean(1, keepdim=True), counts)
            scores.exp_()
            if log_z is not None:
                total += penalty * counted_sum(log_z.double().square(), counts)
                scores *= 1 + 2 * penalty * log_z
            # softmax minus the answer
            scores.scatter_add_(1, answers, scores.new_full(answers.shape, smoothing - 1))
            if smoothing:
                scores[:, :vocab_size] -= smoothing / vocab_size
            if counts is not None:
                scores *= counts
            if d_bias is not None:
                d_bias += scores.sum(0)
            scores = round_operand(scores)
            torch.mm(scores, matrix, out=d_features[start : start + block])
            d_matrix.addmm_(scores.t(), rows)
        ctx.save_for_backward(
            d_features, d_matrix[:vocab_size], *([] if d_bias is None else [d_bias[:vocab_size]])
        )
        return total.to(features.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_matrix, *rest = ctx.saved_tensors
        return d_features * grad, d_matrix * grad, rest[0] * grad if rest else None, None, None, None, None


def counted_sum(values: Tensor, counts: Tensor | None) -> Tensor:
    """The sum of values (N, 1) in double precision, (); with `counts` (N, 1), of those whose count is 1."""
    return (values if counts is None else values * counts).sum(dtype=torch.float64)


def pad_vocabulary(matrix: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Matrix (V, K) and bias with rows of probability 0 appended, up to a multiple of ALIGN; the softmax over
    them is the same."""
    padding = -len(matrix) % ALIGN
    if not padding:
        return matrix, bias
    bias = matrix.new_zeros(len(matrix)) if bias is None else bias
    return F.pad(matrix, (0, 0, 0, padding)), F.pad(bias, (0, padding), value=-torch.inf)


class _LogProbsAt(torch.autograd.Function):
    """log softmax(f Gᵀ + b) of some rows at some words; the softmax is computed again, block by block, in the
    backward pass."""

    @staticmethod
    def forward(
        ctx: Context, features: Tensor, matrix: Tensor, bias: Tensor | None, rows: Tensor, targets: Tensor
    ) -> Tensor:
        ctx.save_for_backward(features, matrix, bias, rows, targets)
        parts = []
        wide, wide_bias = pad_vocabulary(matrix, bias)
        for start, span in blocks(rows, len(features)):
            scores = torch.log_softmax(F.linear(features[start : start + BLOCK], wide, wide_bias), 1)
            parts.append(scores[rows[span] - start, targets[span]])
        return torch.cat(parts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        features, matrix, bias, rows, targets = ctx.saved_tensors
        wide, wide_bias = pad_vocabulary(matrix, bias)
        d_features, d_matrix = torch.empty_like(features), torch.zeros_like(wide)
        d_bias = None if wide_bias is None else torch.zeros_like(wide_bias)
        for start, span in blocks(rows, len(features)):
            block = features[start : start + BLOCK]
            weights = grad.new_zeros(len(block)).index_add_(0, rows[span] - start, grad[span])
            scores = torch.softmax(F.linear(block, wide, wide_bias), 1).mul_(-weights[:, None])
            scores.index_put_((rows[span] - start, targets[span]), grad[span], accumulate=True)
            torch.mm(scores, wide, out=d_features[start : start + BLOCK])
            d_matrix.addmm_(scores.t(), block)
            if d_bias is not None:
                d_bias += scores.sum(0)
        V = len(matrix)
        return d_features, d_matrix[:V], None if bias is None or d_bias is None else d_bias[:V], None, None


def counted_cross_entropy(
    layer: OutputLayer,
    features: Tensor,
    targets: Tensor,
    counted: Tensor | None,
    smoothing: float,
    penalty: float = 0.0,
) -> Tensor:
    """`OutputLayer.cross_entropy` of the tokens for which `counted` (N,) is 1, not of padding: (). None: of
    all. Only `Softmax` takes padding."""
    if counted is None:
        return layer.cross_entropy(features, targets, smoothing, penalty)
    assert isinstance(layer, Softmax)
    return apply(_CrossEntropy, features, *layer.weights(), targets, smoothing, penalty, counted)


def blocks(rows: Tensor, count: int) -> list[tuple[int, slice]]:
    """Cut `count` rows into blocks of BLOCK: the first row of each block, and the slice of the sorted `rows`
    (T,) that is in it."""
    starts = torch.arange(0, count + BLOCK, BLOCK, device=rows.device)
    cuts = torch.searchsorted(rows, starts).tolist()
    return [
        (start, slice(low, high))
        for start, low, high in zip(range(0, count, BLOCK), cuts, cuts[1:], strict=False)
    ]


class Softmax(OutputLayer):
    """p = softmax(G f + b) of features f.

    Every method reads G and b from `weights`: a subclass that overrides it changes loss, scores and search
    alike.
    """

    words_bias: nn.Parameter | None

    def __init__(self, inputs: int, vocab_size: int, bias: bool = True) -> None:
        super().__init__(inputs, vocab_size, bias)
        self.words = nn.Parameter(torch.empty(vocab_size, inputs))  # G
        self.words_bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None  # b
        self._padded: tuple[object, tuple[Tensor, Tensor | None]] | None = None

    def train(self, mode: bool = True) -> "Softmax":
        self._padded = None  # torch's fused optimizers change weights without changing their version
        return super().train(mode)

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix G (V, K) and the bias b (V,), or None, that scores are computed from."""
        return self.words, self.words_bias

    def padded_weights(self) -> tuple[Tensor, Tensor | None]:
        """The current matrix and bias, padded by `pad_vocabulary`; outside training,
        and without gradients, cached until they change."""
        if self.training or torch.is_grad_enabled():
            return pad_vocabulary(*self.weights())
        tensors = (self.words, self.words_bias, *self.buffers(recurse=False))
        version = [(tensor.data_ptr(), tensor._version) for tensor in tensors if tensor is not None]
        cached = self._padded  # read once: another thread may replace it
        if cached is None or cached[0] != version:
            matrix, bias = self.weights()
            padded = pad_vocabulary(matrix.detach(), None if bias is None else bias.detach())
            cached = self._padded = version, padded
        return cached[1]

    def room(self, rows: int) -> Tensor:
        return self.words.new_empty(rows, self.vocab_size + -self.vocab_size % ALIGN)

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        """log p of every word: (R, K) -> (R, V). `out`: memory from `room` to compute it in, where no
        gradient is needed; fresh pages would cost a sixth of the time."""
        matrix, bias = self.padded_weights()
        if out is None:
            return torch.log_softmax(F.linear(features, matrix, bias), 1)[:, : self.vocab_size]
        if bias is None:
            torch.mm(features, matrix.t(), out=out)
        else:
            torch.addmm(bias, features, matrix.t(), out=out)
        return torch.log_softmax(out, 1, out=out)[:, : self.vocab_size]

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """Σ -log p(target), natural logarithm, plus `penalty` times Σ (log Z)²: (N, K), (N,) -> ()"""
        return apply(_CrossEntropy, features, *self.weights(), targets, smoothing, penalty, None)

    def target_log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            parts = [
                self.log_probs(features[start : start + BLOCK]).gather(
                    1, targets[start : start + BLOCK, None]
                )[:, 0]
                for start in range(0, len(features), BLOCK)
            ]
            return torch.cat(parts) if parts else features.new_zeros(0)

    def selected_log_probs(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        return apply(_LogProbsAt, features, *self.weights(), rows, targets)

    def scores(self, features: Tensor) -> Tensor:
        return F.linear(features, *self.weights())

    def target_scores(self, features: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            matrix, bias = self.weights()
            scores = (features * matrix.index_select(0, targets)).sum(1)
            return scores if bias is None else scores + bias.index_select(0, targets)

    def log_z(self, features: Tensor) -> Tensor:
        return self.scores(features).logsumexp(1)

    def restrict(self, token_ids: Tensor) -> "Softmax":
        """Softmax restricted to these words (T,), with copies of their rows; later changes of the weights do
        not affect it."""
        with torch.no_grad():
            matrix, bias = self.weights()
            part = Softmax(matrix.shape[1], 0, bias is not None)
            part.words = nn.Parameter(matrix[token_ids])
            if bias is not None:
                part.words_bias = nn.Parameter(bias[token_ids])
        return part.eval()

    def tie(self, embedding: nn.Embedding) -> None:
        assert isinstance(embedding.weight, nn.Parameter)
        self.words = embedding.weight

    def word_parameters(self) -> Sequence[str]:
        return ("words", "words_bias")
