"""The multi-scale LSTM (van Merriënboer 2018, chapter 8): states at every symbol, transitions over tokens of
several symbols, likelihood by dynamic programming.

Every token that ends at position t is an arc from the position where it begins; all arcs lead to one state
at t:

    f, i, o, g of each arc = W h + U x + b        h of the arc's beginning, x its token's vector
    c_t = mean over arcs (σ(f) c + σ(i) tanh(g))        h_t = σ(mean o) tanh(c_t)

With a dictionary of single symbols this is the LSTM of nmt/lm/recurrent.py. A line is read after an end
symbol, and ends with one. B tracks (strings side by side), T steps, L length of the longest token, H hidden
units, A arcs, D tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.config.settings import MOST_UNITS, choice, number, setting
from nmt.data.batches import Batch
from nmt.data.running import TrackChunk
from nmt.errors import ConfigError
from nmt.layers.initialize import initialize
from nmt.layers.output import OUTPUTS, make_output
from nmt.lm.base import NO_FILES, Carried, LanguageModel, LMConfig, RunFile
from nmt.papers.multiscale.dictionary import FILE, REMOVALS, Dictionary
from nmt.search.sampling import truncate
from nmt.text.vocab import EOS

# ---- lattice -----------------------------------------------------------------------------------------------
# Strings as lattices of tokens: which arcs there are, log p of arcs, and the likelihood summed over all
# segmentations (van Merriënboer 2018, eq. 8.8).
#
#     log α_t = logsumexp over arcs that end at t of (log p(token | state at its beginning) + log α at its
#     beginning)
#
# Position 0 stands before the first step; the L - 1 positions before it belong to the text that was read
# before.


Ids = NDArray[np.int64]


@dataclass
class Arcs:
    """Arcs ordered by the step at which they end, then by row, then by length."""

    rows: Ids  # (A,) tracks
    ends: Ids  # (A,) steps 1 .. T
    lengths: Ids  # (A,) symbols
    tokens: Ids  # (A,) ids of `Tokens`


class Tokens:
    """Output tokens of the model: the V symbols of a vocabulary, specials included, then the longer tokens of
    the dictionary. A trie of their symbols finds all tokens that end at each position of a text."""

    def __init__(self, symbols: Sequence[str], dictionary: Dictionary) -> None:
        numbers = {symbol: number for number, symbol in enumerate(symbols)}
        longer = [
            token
            for token in dictionary.tokens
            if len(token) > 1 and all(symbol in numbers for symbol in token)
        ]
        self.spelling = [[number] for number in range(len(symbols))]
        self.spelling += [[numbers[symbol] for symbol in token] for token in longer]
        self.texts = ["\n" if number == EOS else symbol for number, symbol in enumerate(symbols)]
        self.texts += ["".join(token) for token in longer]
        self.size, self.longest = len(self.spelling), max(map(len, self.spelling))
        # code of a prefix * size + symbol -> code of the longer prefix; the empty one is 0
        codes: dict[int, int] = {}
        token_of = [-1]
        for token, spelling in enumerate(self.spelling):
            code = 0
            for symbol in spelling:
                code = codes.setdefault(code * self.size + symbol, len(token_of))
                if code == len(token_of):
                    token_of.append(-1)
            token_of[code] = token
        self.keys = np.array(sorted(codes), np.int64)
        self.codes = np.array([codes[key] for key in sorted(codes)], np.int64)
        self.token_of = np.array(token_of, np.int64)

    def arcs(self, symbols: Ids, steps: int) -> Arcs:
        """Find every token that ends at one of the last `steps` symbols: (B, N) -> Arcs, whose step 1 is the
        first of these symbols. No token has the symbol -1."""
        prefix_length, parts = symbols.shape[1] - steps, []
        code = np.zeros_like(symbols)  # of the string of this length that ends here; -1: not a prefix
        for length in range(1, self.longest + 1):
            if length > 1:
                code = np.concatenate([np.full((len(symbols), 1), -1), code[:, :-1]], 1)
            code = np.where((code >= 0) & (symbols >= 0), self.find(code * self.size + symbols), -1)
            token = np.where(code >= 0, self.token_of[code], -1)[:, prefix_length:]
            rows, columns = np.nonzero(token >= 0)
            parts.append(np.stack([rows, columns + 1, np.full(len(rows), length), token[rows, columns]]))
        rows, ends, lengths, tokens = np.concatenate(parts, 1)
        order = np.lexsort([lengths, rows, ends])
        return Arcs(rows=rows[order], ends=ends[order], lengths=lengths[order], tokens=tokens[order])

    def find(self, keys: Ids) -> Ids:
        """Look up the codes of keys, -1 for unknown keys."""
        index = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[index] == keys, self.codes[index], -1)


class _Marginal(torch.autograd.Function):
    """The forward recursion; its gradient is the posterior of each arc, by the backward recursion."""

    @staticmethod
    def forward(ctx: Context, scores: Tensor, initial: Tensor) -> Tensor:
        """scores (T, B, L) of the arc of length l + 1 that ends at step t + 1, -inf: none; initial (L, B):
        log α of positions 1 - L .. 0"""
        T, B, L = scores.shape
        alpha = torch.cat([initial, scores.new_empty(T, B)])  # position t is row t + L - 1
        for t in range(T):
            alpha[t + L] = torch.logsumexp(scores[t] + alpha[t : t + L].flip(0).t(), 1)
        ctx.save_for_backward(scores, alpha)
        return alpha[L:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, alpha = ctx.saved_tensors
        T, _, L = scores.shape
        d_alpha = torch.cat([torch.zeros_like(alpha[:L]), grad])
        d_scores = torch.empty_like(scores)
        for t in range(T - 1, -1, -1):
            share = torch.exp(
                scores[t] + alpha[t : t + L].flip(0).t() - alpha[t + L][:, None]
            )  # (B, L) of each arc into this position
            d_scores[t] = share * d_alpha[t + L][:, None]
            d_alpha[t : t + L] += d_scores[t].t().flip(0)
        return d_scores, None


def marginal(scores: Tensor, initial: Tensor) -> Tensor:
    """log α of positions 1 .. T: (T, B, L), (L, B) -> (T, B). `scores`: log p of the arc of length l + 1 that
    ends at step t + 1, -inf without such an arc; `initial`: log α of positions 1 - L .. 0."""
    return apply(_Marginal, scores, initial)


# ---- model -------------------------------------------------------------------------------------------------


NEVER = -1e30  # log α of an unreachable position


@dataclass
class MultiscaleConfig(LMConfig):
    """The keys of `lm` for type multiscale."""

    type: str = "multiscale"
    hidden: int = number(512, least=1, most=MOST_UNITS, help="units of the LSTM layer")
    carry: bool = setting(
        False, help="carry the state from line to line: for running text, not for translations"
    )
    bptt: int = number(35, least=1, help="with carry: steps that a gradient is propagated back")
    dictionary: int = number(2048, least=1, help="tokens, single symbols included")
    removals: str = choice(
        *REMOVALS, help="which rare tokens the dictionary drops, see nmt/papers/multiscale/dictionary.py"
    )

    def check(self) -> None:
        super().check()
        if OUTPUTS[self.output].learns_text:
            raise ConfigError(
                f"lm.output: {self.output} counts the units of the text, but a multiscale model predicts "
                "tokens; use output: softmax"
            )


@dataclass
class Window:
    """The last L positions of a text in B tracks, oldest first."""

    symbols: Tensor  # (B, L) -1: before the beginning
    hidden: Tensor  # (L, B, H)
    cells: Tensor  # (L, B, H)
    alpha: Tensor  # (L, B) log α, that of the last position 0


class _UnrollFunction(torch.autograd.Function):
    """The recurrence over steps; `recurrent` times a state is computed once per state, not once per arc."""

    @staticmethod
    def forward(
        ctx: Context,
        table: Tensor,
        matrix: Tensor,
        hidden: Tensor,
        cells: Tensor,
        words: Tensor,
        sources: Tensor,
        rows: Tensor,
        weights: Tensor,
        cuts: list[int],
    ) -> tuple[Tensor, Tensor]:
        """table (D', 4H) is U x + b of the tokens in use; hidden, cells (L * B, H) of the positions before.

        words, sources, rows, weights (A,) of each arc: its row of the table, its beginning as position * B +
        track, its track, and 1 / number of arcs that lead to its state; the arcs of step t are
        cuts[t] : cuts[t + 1]. -> hidden (T * B, H), cells (T * B, H) without gradient
        """
        steps, H = len(cuts) - 1, hidden.shape[1]
        prefix_rows, B = len(hidden), int(rows.max()) + 1
        h_all, c_all = (torch.cat([states, states.new_empty(steps * B, H)]) for states in (hidden, cells))
        r_all = hidden.new_empty(prefix_rows + steps * B, 4 * H)
        torch.mm(hidden, matrix.t(), out=r_all[:prefix_rows])
        gates = hidden.new_empty(len(words), 4 * H)
        opened, squashed = hidden.new_empty(steps * B, H), hidden.new_empty(steps * B, H)
        for t in range(steps):
            now, after = slice(cuts[t], cuts[t + 1]), slice(prefix_rows + t * B, prefix_rows + (t + 1) * B)
            source, row, weight = sources[now], rows[now], weights[now, None]
            a = torch.add(r_all.index_select(0, source), table.index_select(0, words[now]), out=gates[now])
            a[:, : 2 * H].sigmoid_()
            a[:, 3 * H :].tanh_()
            f, i, o, g = a.chunk(4, 1)
            cell = (f * c_all.index_select(0, source)).addcmul_(i, g)
            c = c_all[after].zero_().index_add_(0, row, cell.mul_(weight))
            o = opened[t * B : (t + 1) * B].zero_().index_add_(0, row, o * weight).sigmoid_()
            s = torch.tanh(c, out=squashed[t * B : (t + 1) * B])
            torch.mul(o, s, out=h_all[after])
            torch.mm(h_all[after], matrix.t(), out=r_all[after])
        ctx.save_for_backward(matrix, h_all, c_all, gates, opened, squashed, words, sources, rows, weights)
        ctx.values = cuts, len(table)
        states, last = h_all[prefix_rows:], c_all[prefix_rows:]
        ctx.mark_non_differentiable(last)
        return states, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        matrix, h_all, c_all, gates, opened, squashed, words, sources, rows, weights = ctx.saved_tensors
        cuts, table_rows = ctx.values
        steps, H = len(cuts) - 1, grad.shape[1]
        B = len(grad) // steps
        prefix_rows = len(h_all) - len(grad)
        dr_all, dc_all = torch.zeros(len(h_all), 4 * H, dtype=grad.dtype), torch.zeros_like(c_all)
        d_gates = torch.empty_like(gates)
        for t in range(steps - 1, -1, -1):
            now, own = slice(cuts[t], cuts[t + 1]), slice(t * B, (t + 1) * B)
            after = slice(prefix_rows + t * B, prefix_rows + (t + 1) * B)
            source, row, weight = sources[now], rows[now], weights[now, None]
            dh = torch.addmm(grad[own], dr_all[after], matrix)
            o, s = opened[own], squashed[own]
            d_o = (dh * s).mul_(o * (1 - o)).index_select(0, row).mul_(weight)
            dc = dc_all[after].addcmul_(dh * o, 1 - s * s).index_select(0, row).mul_(weight)
            f, i, _o, g = gates[now].chunk(4, 1)
            df, di, do, dg = d_gates[now].chunk(4, 1)
            torch.mul(dc * c_all.index_select(0, source), f * (1 - f), out=df)
            torch.mul(dc * g, i * (1 - i), out=di)
            do.copy_(d_o)
            torch.mul(dc * i, 1 - g * g, out=dg)
            dc_all.index_add_(0, source, dc.mul_(f))
            dr_all.index_add_(0, source, d_gates[now])
        d_table = torch.zeros(table_rows, 4 * H, dtype=grad.dtype).index_add_(0, words, d_gates)
        return (d_table, dr_all.t() @ h_all, dr_all[:prefix_rows] @ matrix, dc_all[:prefix_rows], *[None] * 5)


class MultiscaleLM(LanguageModel):
    """The LSTM over a lattice of tokens. It computes on the CPU."""

    Config: ClassVar[type[LMConfig]] = MultiscaleConfig
    run_files: ClassVar[Mapping[str, type[RunFile]]] = {FILE: Dictionary}
    cpu_only = True

    def __init__(self, config: MultiscaleConfig, tokens: Tokens, fill: bool = True) -> None:
        super().__init__()
        config.check()
        self.tokens, self.hidden, self.dropout = tokens, config.hidden, config.dropout
        self.carry = config.carry
        self.embedding = nn.Embedding(tokens.size, config.embedding)
        # U; gates in the order f, i, o, g
        self.inputs = nn.Parameter(torch.empty(4 * config.hidden, config.embedding))
        self.recurrent = nn.Parameter(torch.empty(4 * config.hidden, config.hidden))  # W
        self.bias = nn.Parameter(torch.zeros(4 * config.hidden))
        self.output = make_output(config, config.hidden, tokens.size)
        if fill:
            initialize(self, config.init, config.init_scale)

    def after_initialize(self) -> None:
        """Set the bias of the forget gate to 1."""
        self.bias[: self.hidden] = 1

    @classmethod
    def build(
        cls,
        config: MultiscaleConfig,
        symbols: Sequence[str],
        files: Mapping[str, RunFile] = NO_FILES,
        fill: bool = True,
    ) -> "MultiscaleLM":
        dictionary = files[FILE]
        assert isinstance(dictionary, Dictionary)
        return cls(config, Tokens(symbols, dictionary), fill)

    @property
    def carries(self) -> bool:
        return self.carry

    def start_window(self, rows: int) -> Window:
        """Create the state after an end symbol at the beginning of a text, for `rows` tracks."""
        L, H = self.tokens.longest, self.hidden
        zeros = self.embedding.weight.new_zeros(L, rows, H)
        table = F.linear(self.embedding.weight[EOS : EOS + 1], self.inputs, self.bias)
        _, i, o, g = table.expand(rows, -1).chunk(4, 1)
        c = torch.sigmoid(i) * torch.tanh(g)
        hidden, cells = (torch.cat([zeros[1:], last[None]]) for last in (torch.sigmoid(o) * torch.tanh(c), c))
        symbols = torch.full((rows, L), -1)
        alpha = self.embedding.weight.new_full((L, rows), NEVER)
        alpha[-1] = 0.0
        return Window(symbols=symbols, hidden=hidden, cells=cells, alpha=alpha)

    def read(self, symbols: Tensor, start: Window) -> tuple[Tensor, Window]:
        """Symbols (B, T) after `start` -> log α of positions 1 .. T relative to position 0, (T, B), and the
        state after them"""
        B, T = symbols.shape
        L, tokens = self.tokens.longest, self.tokens
        text = torch.cat([start.symbols, symbols], 1)
        arcs = tokens.arcs(text.numpy(), T)
        used, words = np.unique(arcs.tokens, return_inverse=True)
        table = F.linear(self.drop(self.embedding(torch.from_numpy(used))), self.inputs, self.bias)
        starts = arcs.ends - arcs.lengths + L - 1  # rows of the states, those before the chunk included
        per_state = np.bincount((arcs.ends - 1) * B + arcs.rows, minlength=T * B)
        weights = torch.from_numpy(1 / per_state[(arcs.ends - 1) * B + arcs.rows]).to(table.dtype)
        cuts = np.searchsorted(arcs.ends, np.arange(1, T + 2)).tolist()
        sources, rows = torch.from_numpy(starts * B + arcs.rows), torch.from_numpy(arcs.rows)
        hidden, cells = _UnrollFunction.apply(  # type: ignore[no-untyped-call]
            table,
            self.recurrent,
            start.hidden.flatten(0, 1),
            start.cells.flatten(0, 1),
            torch.from_numpy(words),
            sources,
            rows,
            weights,
            cuts,
        )
        states = torch.cat([start.hidden.flatten(0, 1), hidden])
        order = torch.argsort(sources, stable=True)
        scores = self.output.selected_log_probs(
            self.drop(states), sources[order], torch.from_numpy(arcs.tokens)[order]
        )
        grid = scores.new_full((T, B, L), -torch.inf).index_put(
            (torch.from_numpy(arcs.ends - 1)[order], rows[order], torch.from_numpy(arcs.lengths - 1)[order]),
            scores,
        )
        alpha = marginal(grid, start.alpha)
        with torch.no_grad():
            all_alpha = torch.cat([start.alpha, alpha])[-L:]
            after = Window(
                symbols=text[:, -L:],
                hidden=states.view(-1, B, self.hidden)[-L:].detach().clone(),
                cells=torch.cat([start.cells.flatten(0, 1), cells]).view(-1, B, self.hidden)[-L:].clone(),
                alpha=(all_alpha - all_alpha[-1]).clamp(min=NEVER),
            )
        return alpha, after

    def drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.dropout, self.training)

    def cost(self, batch: Batch | TrackChunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
        """-log p, natural, of lines, or of a chunk of running text given what came before, (), and the state
        to continue from, None after lines. Ids are symbols; `smoothing` is not used."""
        if isinstance(batch, Batch):
            return self.loss(batch), None
        alpha, after = self.read_running(batch, None if batch.fresh else carried)
        return -alpha[-1].sum(), after

    def read_running(self, chunk: TrackChunk, carried: Carried) -> tuple[Tensor, Carried]:
        """log α of the positions of a chunk of running text, (T, B), and the state after it"""
        start = Window(*carried) if isinstance(carried, tuple) else self.start_window(chunk.tracks)
        alpha, after = self.read(chunk.ids.view(-1, chunk.tracks).t().contiguous(), start)
        return alpha, (after.symbols, after.hidden, after.cells, after.alpha)

    def score_running(self, chunk: TrackChunk, carried: Carried) -> tuple[Tensor, Carried]:
        """log α_t - log α_{t-1} of each symbol of running text, (T * B,), which sum to log p; also returns
        the state after the text."""
        with torch.no_grad():
            alpha, after = self.read_running(chunk, carried)
        return differences(alpha).reshape(-1), after

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """-log p of independent lines, natural: (). `smoothing` is not used."""
        return -self.lines(batch.target.split(batch.target.ids))[0].sum()

    def token_log_probs(self, batch: Batch) -> Tensor:
        """Score each token of independent lines as `score_running` does, in packed order: (N,)"""
        with torch.no_grad():
            _, alpha = self.lines(batch.target.split(batch.target.ids))
        return differences(alpha)[batch.target.steps, batch.target.order[batch.target.rows]]

    def lines(self, texts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """log p of lines, (B,), and log α at all their positions, (T, B). Lines end with the end symbol."""
        lengths = torch.tensor([len(text) for text in texts])
        # End symbols after the end are read but not counted.
        symbols = torch.full((len(texts), int(lengths.max())), EOS)
        for row, text in enumerate(texts):
            symbols[row, : len(text)] = text
        alpha, _ = self.read(symbols, self.start_window(len(texts)))
        return alpha[lengths - 1, torch.arange(len(texts))], alpha

    @torch.no_grad()
    def sample(
        self, lines: int, max_length: int, seed: int, temperature: float, top_k: int, top_p: float
    ) -> Iterator[list[str]]:
        """Draw `lines` lines, each one token after the other, and yield the texts of their tokens (van
        Merriënboer 2018, table 8.2). A line ends at its end symbol, or with the token that brings it to
        `max_length` symbols; draws are from p^(1 / temperature) of the likeliest tokens (see `truncate`)."""
        generator = torch.Generator().manual_seed(seed)
        for _ in range(lines):
            state, tokens, length = self.start_window(1), [], 0
            while length < max_length:
                scores = truncate(self.output.log_probs(state.hidden[-1]) / temperature, top_k, top_p)
                token = int(torch.multinomial(torch.softmax(scores, 1)[0], 1, generator=generator))
                if token == EOS:
                    break
                spelling = self.tokens.spelling[token]
                _, state = self.read(torch.tensor([spelling]), state)
                tokens.append(self.tokens.texts[token])
                length += len(spelling)
            yield tokens


def differences(alpha: Tensor) -> Tensor:
    """log α_t - log α_{t-1}, with log α_0 = 0: (T, B) -> (T, B)"""
    return torch.diff(torch.cat([torch.zeros_like(alpha[:1]), alpha]), dim=0)
