"""Strings as lattices of tokens: which arcs there are, log p of arcs, and the likelihood summed over all
segmentations (eq. 8.8).

    log α_t = logsumexp over arcs that end at t of (log p(token | state at its beginning) + log α at its
    beginning)

B strings side by side, T steps, L length of the longest token, A arcs, D tokens. Position 0 stands before the
first step; the L - 1 positions before it belong to the text that was read before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.lm.multiscale.dictionary import Dictionary
from nmt.text.vocab import EOS

Ids = NDArray[np.int64]


@dataclass
class Arcs:
    """Arcs ordered by the step at which they end, then by row, then by length."""

    rows: Ids  # (A,)
    ends: Ids  # (A,) steps 1 .. T
    lengths: Ids  # (A,)
    tokens: Ids  # (A,)


class Tokens:
    """What the model predicts: the V symbols of a vocabulary, specials included, then the longer tokens of
    the dictionary.

    Texts are read through a trie: a string that ends at a symbol is one that ended before it, extended by
    the symbol.
    """

    def __init__(self, symbols: Sequence[str], dictionary: Dictionary) -> None:
        numbers = {symbol: number for number, symbol in enumerate(symbols)}
        longer = [
            token
            for token in dictionary.tokens
            if len(token) > 1 and all(symbol in numbers for symbol in token)
        ]
        self.spelling = [[number] for number in range(len(symbols))] + [
            [numbers[symbol] for symbol in token] for token in longer
        ]
        self.texts = ["\n" if number == EOS else symbol for number, symbol in enumerate(symbols)] + [
            "".join(token) for token in longer
        ]
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
        """Every token that ends at one of the last `steps` symbols: (B, N) -> Arcs. No token has the symbol
        -1."""
        before, parts = symbols.shape[1] - steps, []
        code = np.zeros_like(symbols)  # of the string of this length that ends here; -1: not a prefix
        for length in range(1, self.longest + 1):
            if length > 1:
                code = np.concatenate([np.full((len(symbols), 1), -1), code[:, :-1]], 1)
            code = np.where((code >= 0) & (symbols >= 0), self.find(code * self.size + symbols), -1)
            token = np.where(code >= 0, self.token_of[code], -1)[:, before:]
            rows, columns = np.nonzero(token >= 0)
            parts.append(np.stack([rows, columns + 1, np.full(len(rows), length), token[rows, columns]]))
        rows, ends, lengths, tokens = np.concatenate(parts, 1)
        order = np.lexsort([lengths, rows, ends])
        return Arcs(rows=rows[order], ends=ends[order], lengths=lengths[order], tokens=tokens[order])

    def find(self, keys: Ids) -> Ids:
        """The codes of keys, -1 for those that are not there."""
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.codes[place], -1)


class _Marginal(torch.autograd.Function):
    """The forward recursion; its gradient is the posterior of each arc, by the backward recursion."""

    @staticmethod
    def forward(ctx: Context, scores: Tensor, before: Tensor) -> Tensor:
        """scores (T, B, L) of the arc of length l + 1 that ends at step t + 1, -inf: none; before (L, B): log
        α of positions 1 - L .. 0"""
        T, B, L = scores.shape
        alpha = torch.cat([before, scores.new_empty(T, B)])  # position t is row t + L - 1
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


def marginal(scores: Tensor, before: Tensor) -> Tensor:
    """log α of positions 1 .. T: (T, B, L), (L, B) -> (T, B)"""
    return apply(_Marginal, scores, before)
