"""Word vectors from spelling (Kim et al. 2016; sub-word thesis, section 2.2): character CNN, maximum over the
word, highway.

    C = [q(^) q(c_1) ... q(c_l) q($)];  f_i = tanh(<C[:, i : i + w], H> + b);  y = max_i f_i, for filters of
    widths 1, 2, ...
    t = σ(W_T y + b_T);  z = t ⊙ relu(W_H y + b_H) + (1 - t) ⊙ y;  e = P z

Windows that extend past the end of a word take no part in the maximum: with zero padding alone tanh(b) could
win there, and a vector would depend on the longest word of the vocabulary.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.text.vocab import SPECIALS

CHARACTER = 15  # width of a character's vector
WIDTHS = (1, 2, 3, 4, 5, 6)
FILTERS = 25  # filters of width w: 25 w, 525 in all (the thesis' small model)
TRANSFORM_BIAS = -2.0  # b_T at the start: the highway carries y through
LONGEST = 24  # longer words are cut in their middle
BLOCK = 2048  # words computed at a time
PAD, BEGIN, END, OTHER = 0, 1, 2, 3


def alphabet(vocab: Sequence[str]) -> dict[str, int]:
    """The characters of the words of a vocabulary, by code point, with their rows. A special word is one
    symbol."""
    characters = {character for word in vocab if word not in SPECIALS for character in word}
    return {symbol: number for number, symbol in enumerate([*SPECIALS, *sorted(characters)], OTHER + 1)}


def spell(vocab: Sequence[str], symbols: dict[str, int]) -> Tensor:
    """Character ids of each word, with begin, end and padding: (V, LONGEST + 2)"""
    table = torch.full((len(vocab), LONGEST + 2), PAD)
    for row, word in enumerate(vocab):
        letters = [word] if word in SPECIALS else list(word)
        if len(letters) > LONGEST:
            letters = letters[: LONGEST // 2] + letters[-(LONGEST - LONGEST // 2) :]
        ids = [BEGIN, *(symbols.get(letter, OTHER) for letter in letters), END]
        table[row, : len(ids)] = torch.tensor(ids)
    return table


class CharacterWords(nn.Module):
    """Used in place of a table of word vectors: ids (N,) -> (N, E). In training only the distinct words of a
    batch are computed; for translation all of them once, until the weights change."""

    spelling: Tensor

    def __init__(self, vocab: Sequence[str], size: int) -> None:
        """`vocab`: the words by id; `size`: E."""
        super().__init__()
        self.symbols = alphabet(vocab)
        self.register_buffer("spelling", spell(vocab, self.symbols), persistent=False)
        self.characters = nn.Parameter(torch.empty(len(self.symbols) + OTHER + 1, CHARACTER))  # Q
        self.filters = nn.ParameterList(
            torch.empty(FILTERS * width, CHARACTER * width) for width in WIDTHS
        )  # H
        self.filter_biases = nn.ParameterList(torch.zeros(FILTERS * width) for width in WIDTHS)
        total = FILTERS * sum(WIDTHS)
        self.highway = nn.Parameter(torch.empty(total, total))  # W_H
        self.highway_bias = nn.Parameter(torch.zeros(total))
        self.transform = nn.Parameter(torch.empty(total, total))  # W_T
        self.transform_bias = nn.Parameter(torch.full((total,), TRANSFORM_BIAS))
        self.projection = nn.Parameter(torch.empty(size, total))  # P
        self.table: Tensor | None = None  # every word's vector, while not training

    def after_initialize(self) -> None:
        """Set what `initialize` made 0."""
        self.transform_bias.fill_(TRANSFORM_BIAS)

    def train(self, mode: bool = True) -> "CharacterWords":
        self.table = None  # weights are about to change, or have changed
        return super().train(mode)

    @property
    def row_names(self) -> list[str]:
        """What each row of `characters` stands for: four markers, then specials and characters."""
        return ["\0pad", "\0begin", "\0end", "\0other", *self.symbols]

    def forward(self, ids: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled():
            distinct, places = ids.unique(return_inverse=True)
            return F.embedding(places, self.vectors(self.spelling[distinct]))
        if self.table is None or self.table.device != ids.device or self.table.dtype != self.projection.dtype:
            self.table = torch.cat([self.vectors(block) for block in self.spelling.split(BLOCK)])
        return F.embedding(ids, self.table)

    def vectors(self, spelling: Tensor) -> Tensor:
        """Characters of W words, (W, L) -> (W, E)"""
        letters = F.embedding(spelling, self.characters)  # (W, L, Q)
        lengths = (spelling != PAD).sum(1)
        found = []
        for width, matrix, bias in zip(WIDTHS, self.filters, self.filter_biases, strict=True):
            windows = letters.unfold(1, width, 1).flatten(2)  # (W, L - w + 1, Q w)
            values = F.linear(windows, matrix)
            starts = torch.arange(values.shape[1], device=spelling.device)
            # A word shorter than the filter has one window.
            outside = starts[None] > (lengths - width).clamp(min=0)[:, None]
            found.append(torch.tanh(values.masked_fill(outside[:, :, None], -torch.inf).amax(1) + bias))
        y = torch.cat(found, 1)
        t = torch.sigmoid(F.linear(y, self.transform, self.transform_bias))
        z = t * F.relu(F.linear(y, self.highway, self.highway_bias)) + (1 - t) * y
        return F.linear(z, self.projection)
