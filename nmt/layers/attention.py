"""Attention, and the grids that it works on.

Additive attention (Bahdanau et al. 2015, RNNsearch): e_ij = v·tanh(K h_j + Q s_{i-1}), a = softmax over j,
context = Σ a_j h_j.

S sentences of at most L source words, D width of an annotation, A attention units, R rows (hypotheses, or
sentences of a batch). Since tanh a = 2σ(2a) - 1, and a constant changes no softmax, energies are computed as
2v·σ(2K h + 2Q s): torch's σ is six times as fast as its tanh.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply, apply_triple
from nmt.compute.precision import in_mode
from nmt.data.batches import Guidance, Packed
from nmt.layers.cells import GRU, add_rows, earlier_states, sigmoid_gradient, tanh_gradient

# ---- grids -------------------------------------------------------------------------------------------------
# Attention needs words and hypotheses padded, with a row for each sentence: `pad` builds such a grid,
# `unpad` reverses it.
#
# N packed words of B sentences of at most T words, R hypotheses of S sentences, at most W of each, K columns.


# Hypotheses of a sentence share its memory in a grid if that has at most this many positions for each;
# otherwise each gets a copy of the memory.
DENSE_GRID = 1.5


class _Unpad(torch.autograd.Function):
    """Selects rows of a matrix, each at most once, so that gradients are copied instead of added."""

    @staticmethod
    def forward(ctx: Context, values: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.sizes = list(values.shape)
        return values.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return grad.new_zeros(ctx.sizes).index_copy_(0, rows, grad), None


@dataclass
class WordGrid:
    """Packed words padded to the longest sentence, in the order of the batch."""

    index: Tensor  # (N,) position of each word in the flattened grid
    steps: Tensor  # (N,) its position in the sentence
    shape: tuple[int, int]  # B, T
    mask: Tensor | None  # (B, T) 0 at words, -inf past the end of a sentence; None: all have T words

    @staticmethod
    def of(packed: Packed, like: Tensor) -> "WordGrid":
        """The grid of a batch; its mask has the type of `like`."""
        B, T = len(packed.order), len(packed.sizes)
        steps = packed.steps
        index = packed.order[packed.rows] * T + steps
        mask = None
        if packed.padded or len(index) < B * T:
            by_row = length_mask(packed.lengths, T, like)
            mask = torch.empty_like(by_row).index_copy_(0, packed.order, by_row)
        return WordGrid(index, steps, (B, T), mask)

    def pad(self, values: Tensor) -> Tensor:
        """(N, K) -> (B, T, K), zeros past the ends of sentences"""
        B, T = self.shape
        return values.new_zeros(B * T, values.shape[1]).index_copy(0, self.index, values).view(B, T, -1)

    def unpad(self, grid: Tensor) -> Tensor:
        """(B, T, K) -> (N, K)"""
        return apply(_Unpad, grid.flatten(0, 1), self.index)


def length_mask(lengths: Tensor, longest: int, like: Tensor) -> Tensor:
    """0 at the words of sentences, -inf past their ends, (S,) -> (S, longest), with the type of `like`."""
    outside = torch.arange(longest, device=lengths.device) >= lengths[:, None]
    return like.new_zeros(outside.shape).masked_fill_(outside, -torch.inf)


@dataclass
class HypothesisGrid:
    """R hypotheses of some sentences as a grid (S, W): a row for each sentence, padded to the largest number
    of hypotheses. In a grid of `hypothesis_grid` that is not dense, each hypothesis is a row."""

    used: Tensor | None  # (S,) the sentence of each row; None: all sentences, in their order
    index: Tensor | None  # (R,) position of each hypothesis in the flattened grid; None: its own row
    shape: tuple[int, int]  # S, W

    def pad(self, values: Tensor) -> Tensor:
        """(R, K) -> (S, W, K)"""
        S, W = self.shape
        if self.index is None:
            return values[:, None]
        return values.new_zeros(S * W, values.shape[1]).index_copy_(0, self.index, values).view(S, W, -1)

    def unpad(self, grid: Tensor) -> Tensor:
        """(S, W, K) -> (R, K)"""
        rows = grid.flatten(0, 1)
        return rows if self.index is None else rows.index_select(0, self.index)


def sentence_grid(sentence: Tensor, count: int) -> HypothesisGrid:
    """Lay out hypotheses by their sentences (R,), with a row for each of `count` sentences."""
    counts = torch.bincount(sentence, minlength=count)
    W = max(1, int(counts.max())) if count else 1
    return HypothesisGrid(None, sentence * W + columns(sentence, counts), (count, W))


def hypothesis_grid(sentence: Tensor, count: int, dense: float = DENSE_GRID) -> HypothesisGrid:
    """Lay out hypotheses by their sentences (R,), indices below `count`, with a row for each sentence that
    has any, or for each hypothesis if the grid would have more than `dense` positions for each of them."""
    used, row, counts = sentence.unique(return_inverse=True, return_counts=True)
    W = int(counts.max()) if len(counts) else 1
    if len(used) * W > dense * len(sentence):
        return HypothesisGrid(used=sentence, index=None, shape=(len(sentence), 1))
    index = row * W + columns(row, counts)
    return HypothesisGrid(None if len(used) == count else used, index, (len(used), W))


def columns(row: Tensor, counts: Tensor) -> Tensor:
    """The column of each hypothesis in a grid, its number among those of its row: (R,). `row` (R,): its row;
    `counts`: hypotheses of each row."""
    order = row.argsort(stable=True)
    column = torch.empty_like(row)
    number = torch.arange(len(row), device=row.device)
    column[order] = number - (counts.cumsum(0) - counts).index_select(0, row[order])
    return column


def grids_by_size(sentence: Tensor, count: int) -> list[tuple[Tensor, HypothesisGrid]]:
    """Split hypotheses into grids that are at most half padding: sentences with 1, 2 to 3, 4 to 7 ...
    hypotheses share a grid. Returns the hypotheses of each grid, and the grid."""
    sizes = torch.bincount(sentence, minlength=count)[sentence].log2().long()
    parts = [torch.nonzero(sizes == size)[:, 0] for size in sizes.unique().tolist()]
    return [(rows, hypothesis_grid(sentence[rows], count, dense=2.0)) for rows in parts]


def join_sentences(parts: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Renumber the sentences of several states, leaving out sentences without hypotheses. `parts`: for each
    state the sentence of each hypothesis, (R,). Returns the new numbers, and the indices of the remaining
    sentences of each state."""
    sentences, used, count = [], [], 0
    for sentence in parts:
        present, index = sentence.unique(return_inverse=True)
        sentences.append(index + count)
        used.append(present)
        count += len(present)
    return torch.cat(sentences), used


# ---- attention ---------------------------------------------------------------------------------------------


class Buffer:
    """Scratch memory that all steps of a search reuse: allocating new pages would take a third of the time.
    Each search has a buffer of its own."""

    def __init__(self) -> None:
        self.floats = torch.empty(0)

    def tensor(self, shape: torch.Size, like: Tensor) -> Tensor:
        """A tensor of this shape and any values, like `like`, in the memory of those returned before."""
        if (
            self.floats.numel() < shape.numel()
            or self.floats.dtype != like.dtype
            or self.floats.device != like.device
        ):
            self.floats = like.new_empty(shape.numel())
        return self.floats[: shape.numel()].view(shape)


@dataclass
class AttentionMemory:
    """Encoder memory that the decoder attends to: S sentences side by side, padded to the longest."""

    keys: Tensor  # (S, L, A) 2K h_j; or a Transformer's keys
    values: Tensor  # (S, L, D) h_j, in search C h_j and O_c h_j side by side; or a Transformer's values
    mask: Tensor  # (S, L) 0 at words, -inf past the end of a sentence
    room: Buffer = field(default_factory=Buffer)  # scratch memory of the search

    def rows(self, rows: Tensor) -> "AttentionMemory":
        """Sentence i of the result is sentence rows[i]."""
        return AttentionMemory(
            keys=self.keys.index_select(0, rows),
            values=self.values.index_select(0, rows),
            mask=self.mask.index_select(0, rows),
            room=self.room,
        )

    @property
    def longest(self) -> int:
        """Words of the longest sentence, its end symbol included."""
        return int((self.mask == 0).sum(1).max()) if len(self.mask) else 0

    @staticmethod
    def join(parts: "Sequence[AttentionMemory]", lengths: Sequence[int] | None = None) -> "AttentionMemory":
        """Concatenate all sentences, padded to the longest of them. `lengths`: the `longest` of each part,
        which all layers of a model share."""
        lengths = [part.longest for part in parts] if lengths is None else lengths
        return AttentionMemory(
            keys=stack_padded([part.keys for part in parts], lengths),
            values=stack_padded([part.values for part in parts], lengths),
            mask=stack_padded([part.mask for part in parts], lengths, -torch.inf),
            room=parts[0].room,
        )


def stack_padded(parts: Sequence[Tensor], lengths: Sequence[int], padding: float = 0.0) -> Tensor:
    """Concatenate tensors (S_i, L_i or more, ...), of which `lengths` gives L_i, padded with the value
    `padding` to the greatest length L: (S, L, ...)"""
    L = max(lengths)
    if all(part.shape[1] == L for part in parts):
        return torch.cat(list(parts))
    padded = parts[0].new_full((sum(map(len, parts)), L, *parts[0].shape[2:]), padding)
    first = 0
    for part, length in zip(parts, lengths, strict=True):
        padded[first : first + len(part), :length] = part[:, :length]
        first += len(part)
    return padded


class AdditiveAttention(nn.Module):
    """Additive attention: maps a decoder state to the weighted mean of a sentence's annotations. Widths D
    (annotations), H (state) and A (attention)."""

    def __init__(self, annotation: int, hidden: int, units: int) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.empty(units, annotation))  # K
        self.query = nn.Parameter(torch.empty(units, hidden))  # Q
        self.energy = nn.Parameter(torch.empty(1, units))  # v

    def memory(self, values: Tensor, lengths: Tensor) -> AttentionMemory:
        """Build the memory of annotations (S, L, D), zeros past the lengths (S,), end symbols included."""
        mask = length_mask(lengths, values.shape[1], values)
        return AttentionMemory(keys=F.linear(values, 2 * self.keys), values=values, mask=mask)

    def forward(
        self, hidden: Tensor, memory: AttentionMemory, sentence: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """s_{i-1} (R, H) -> mean of the values (R, D), weights (R, L)

        Row i attends to sentence[i] of the memory; without `sentence` to sentence i. Rows of one sentence
        share its keys and values: they are laid out side by side, (S, W), where that wastes little.
        """
        query = F.linear(hidden, 2 * self.query)
        if sentence is None:
            mean, weights = self._attend(query[:, None], memory)
            return mean[:, 0], weights[:, 0]
        grid = hypothesis_grid(sentence, len(memory.keys))
        if grid.used is not sentence:
            return self._attend_in_grid(query, memory, grid)
        # A wide beam among narrow ones: a copy of the memory for each row would cost many times as much.
        parts = grids_by_size(sentence, len(memory.keys))
        results = [self._attend_in_grid(query[rows], memory, grid) for rows, grid in parts]
        back = torch.cat([rows for rows, _ in parts]).argsort()
        means, weights = (torch.cat(values)[back] for values in zip(*results, strict=True))
        return means, weights

    def _attend_in_grid(
        self, query: Tensor, memory: AttentionMemory, grid: HypothesisGrid
    ) -> tuple[Tensor, Tensor]:
        """(R, A) -> means (R, D), weights (R, L)"""
        memory = memory if grid.used is None else memory.rows(grid.used)
        mean, weights = self._attend(grid.pad(query), memory)
        return grid.unpad(mean), grid.unpad(weights)

    def _attend(self, query: Tensor, memory: AttentionMemory) -> tuple[Tensor, Tensor]:
        """W queries for each of S sentences, (S, W, A) -> means (S, W, D), weights (S, W, L)"""
        squashed = self._sum(memory.keys[:, None], query[:, :, None], memory.room).sigmoid_()  # (S, W, L, A)
        energies = torch.matmul(squashed, 2 * self.energy[0]) + memory.mask[:, None]
        weights = torch.softmax(energies, 2)
        return torch.bmm(weights, memory.values), weights

    @staticmethod
    def _sum(keys: Tensor, query: Tensor, room: Buffer) -> Tensor:
        """keys (S, 1, L, A) + query (S, W, 1, A)"""
        if torch.is_grad_enabled():
            return keys + query
        return torch.add(keys, query, out=room.tensor(torch.Size((*query.shape[:2], *keys.shape[2:])), keys))


class _AttentiveGRUFunction(torch.autograd.Function):
    """The GRU of cells.py with attention: the context of a step is the weighted mean of the annotations, with
    the weights that the state before the step gives them.

    Weight gradients are one product after the loop; the (rows, L, A) energies are computed again in the
    backward pass rather than stored, so that memory does not grow with the target's length times the
    source's.
    """

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, start: Tensor, gates_matrix: Tensor, matrix: Tensor, context_matrix: Tensor,
        keys: Tensor, values: Tensor, mask: Tensor, query: Tensor, energy: Tensor, cell: Tensor,
        sizes: list[int],
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """x (N, 3H), start (B, H), keys (B, L, A), values (B, L, D), `cell` (N,): see `values_gradient` ->
        states (N, H), contexts (N, D), weights (N, L)"""
        (N, _), H, (_, L, D) = x.shape, start.shape[1], values.shape
        gates = x.new_empty(N, 2 * H)
        reset, candidate, states = x.new_empty(N, H), x.new_empty(N, H), x.new_empty(N, H)
        contexts, weights = x.new_empty(N, D), x.new_empty(N, L)
        query, energy = 2 * query, 2 * energy
        room = torch.empty_like(keys)
        gates_t, matrix_t, context_t, query_t = gates_matrix.t(), matrix.t(), context_matrix.t(), query.t()
        h, end = start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            squashed = torch.add(keys[:rows], (h @ query_t)[:, None], out=room[:rows]).sigmoid_()
            energies = (squashed.view(rows * L, -1) @ energy[0]).view(rows, L).add_(mask[:rows])
            a = torch.softmax(energies, 1, out=weights[now])
            context = torch.bmm(a[:, None], values[:rows], out=contexts[now, None])[:, 0]
            inputs = torch.addmm(x[now], context, context_t)
            zr = torch.addmm(inputs[:, : 2 * H], h, gates_t, out=gates[now]).sigmoid_()
            rh = torch.mul(zr[:, H:], h, out=reset[now])
            c = torch.addmm(inputs[:, 2 * H :], rh, matrix_t, out=candidate[now]).tanh_()
            h = torch.lerp(c, h, zr[:, :H], out=states[now])
            end += rows
        ctx.save_for_backward(
            gates_matrix, matrix, context_matrix, keys, values, query, energy,
            gates, earlier_states(states, start, sizes), reset, candidate, contexts, weights,
        )  # fmt: skip
        ctx.sizes, ctx.values = sizes, cell  # a tensor that needs no gradient
        ctx.set_materialize_grads(False)  # most trainings need no gradient of the weights
        return states, contexts, weights

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(
        ctx: Context, d_states: Tensor | None, d_contexts: Tensor | None, d_weights: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        (
            gates_matrix, matrix, context_matrix, keys, values, query, energy,
            gates, previous, reset, candidate, contexts, weights,
        ) = ctx.saved_tensors  # fmt: skip
        (N, H), L = candidate.shape, values.shape[1]
        d_states = torch.zeros_like(candidate) if d_states is None else d_states
        d_contexts = torch.zeros_like(contexts) if d_contexts is None else d_contexts
        dx, d_query_rows = d_states.new_empty(N, 3 * H), d_states.new_empty(N, keys.shape[2])
        d_context = torch.empty_like(contexts)
        d_keys, d_energy = torch.zeros_like(keys), torch.zeros_like(energy[0])
        room, slope = torch.empty_like(keys), torch.empty_like(keys)
        dh, end, query_t = d_states.new_zeros(0, H), N, query.t()
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            d = add_rows(d_states[now], dh)
            z, r, c, h = gates[now, :H], gates[now, H:], candidate[now], previous[now]
            dzr, dc = dx[now, : 2 * H], dx[now, 2 * H :]
            tanh_gradient(torch.addcmul(d, d, z, value=-1), c, out=dc)
            drh = dc @ matrix
            sigmoid_gradient((h - c).mul_(d), z, out=dzr[:, :H])
            sigmoid_gradient(drh * h, r, out=dzr[:, H:])
            dh = torch.addmm(d.mul_(z), dzr, gates_matrix).addcmul_(drh, r)
            # through the weighted mean, the softmax and the energies
            d_mean = torch.addmm(d_contexts[now], dx[now], context_matrix, out=d_context[now])
            a, da = weights[now], torch.bmm(values[:rows], d_mean[:, :, None])[:, :, 0]
            if d_weights is not None:
                da += d_weights[now]
            de = a * (da - (a * da).sum(1, keepdim=True))
            squashed = torch.add(keys[:rows], (h @ query_t)[:, None], out=room[:rows]).sigmoid_()
            d_energy.addmv_(squashed.view(rows * L, -1).t(), de.view(-1))
            # σ' de, without v
            change = slope[:rows]
            sigmoid_gradient(de[:, :, None].expand_as(squashed), squashed, out=change)
            d_keys[:rows] += change
            dq = torch.mul(change.sum(1), energy, out=d_query_rows[now])
            dh.addmm_(dq, query)
            end -= rows
        d_keys *= energy
        return (
            dx, dh, dx[:, : 2 * H].t() @ previous, dx[:, 2 * H :].t() @ reset, dx.t() @ contexts,
            d_keys, values_gradient(weights, d_context, ctx.values, ctx.sizes), None,
            2 * (d_query_rows.t() @ previous), 2 * d_energy[None], None, None,
        )  # fmt: skip


def values_gradient(weights: Tensor, d_context: Tensor, cell: Tensor, sizes: list[int]) -> Tensor:
    """Gradient of the annotations, Σ_i a_ij d_i: attention weights (N, L), gradients of contexts (N, D) ->
    (B, L, D). One matrix product per sentence, over all its steps. `cell` (N,): the position of each word in
    a grid (B, T), flattened; `sizes`: the number of rows at each step."""
    L, D, B = weights.shape[1], d_context.shape[1], sizes[0]
    grid_a = weights.new_zeros(B * len(sizes), L).index_copy_(0, cell, weights).view(B, -1, L)
    grid_d = weights.new_zeros(B * len(sizes), D).index_copy_(0, cell, d_context).view(B, -1, D)
    return torch.bmm(grid_a.transpose(1, 2), grid_d)


def attend(
    attention: AdditiveAttention,
    cell: GRU,
    x: Tensor,
    start: Tensor,
    memory: AttentionMemory,
    target: Packed,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run a GRU with attention over all words of a batch: projected words `x` (N, 3H), start (B, H) and
    memory of B sentences, longest target first -> states (N, H), contexts (N, D), attention weights (N, L).
    `cell`: with a context, reset `before` and gate `keep_old`; `target`: the layout of the words."""
    assert cell.reset == "before" and cell.gate == "keep_old" and cell.context is not None
    return apply_triple(
        _AttentiveGRUFunction, x, start, cell.recurrent_gates, cell.recurrent, cell.context,
        memory.keys, memory.values, memory.mask, attention.query, attention.energy,
        target.rows * len(target.sizes) + target.steps, target.sizes,
    )  # fmt: skip


LEAST_WEIGHT = 1e-30  # lower bound of attention weights in `alignment_cost`, which takes their logarithm


def alignment_cost(weights: Tensor, guidance: Guidance) -> Tensor:
    """The cross-entropy Σ_t Σ_j -A_tj log a_tj between normalized links A and attention weights a (N, L),
    over the target tokens that have links: (). Natural logarithm; the shares in `guidance` include the weight
    of this cost."""
    linked = weights.flatten().index_select(0, guidance.tokens * weights.shape[1] + guidance.positions)
    return -(guidance.shares * linked.clamp_min(LEAST_WEIGHT).log()).sum()
