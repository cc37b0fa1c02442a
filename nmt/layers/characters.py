"""Word vectors from spelling (Kim et al. 2016; Jernite 2018, section 2.2): character CNN, maximum over the
word, highway.

    C = [q(^) q(c_1) ... q(c_l) q($)];  f_i = tanh(<C[:, i : i + w], H> + b);  y = max_i f_i, for filters of
    widths 1, 2, ...
    t = σ(W_T y + b_T);  z = t ⊙ relu(W_H y + b_H) + (1 - t) ⊙ y;  e = P z

Windows that extend past the end of a word take no part in the maximum: with zero padding alone tanh(b) could
win there, and a vector would depend on the longest word of the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.text.vocab import SPECIALS

# ---- highway -----------------------------------------------------------------------------------------------
# Highway layers (Srivastava et al. 2015), in the form of Jernite 2018, section 2.2.


TRANSFORM_BIAS = -2.0  # b_T at the start: the layer carries y through


def highway(y: Tensor, matrix: Tensor, bias: Tensor, transform: Tensor, transform_bias: Tensor) -> Tensor:
    """t = σ(W_T y + b_T);  z = t ⊙ relu(W_H y + b_H) + (1 - t) ⊙ y: (N, K) -> (N, K)"""
    t = torch.sigmoid(F.linear(y, transform, transform_bias))
    return t * F.relu(F.linear(y, matrix, bias)) + (1 - t) * y


class Highway(nn.Module):
    """A highway layer of K units with its parameters."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(size, size))  # W_H
        self.bias = nn.Parameter(torch.zeros(size))
        self.transform = nn.Parameter(torch.empty(size, size))  # W_T
        self.transform_bias = nn.Parameter(torch.full((size,), TRANSFORM_BIAS))

    def after_initialize(self) -> None:
        """Restore the bias of the transform gate, which `initialize` set to 0."""
        self.transform_bias.fill_(TRANSFORM_BIAS)

    def forward(self, y: Tensor) -> Tensor:
        """(N, K) -> (N, K)"""
        return highway(y, self.matrix, self.bias, self.transform, self.transform_bias)


# ---- characters --------------------------------------------------------------------------------------------


LONGEST = 24  # longer words are cut in their middle
BLOCK = 2048  # words computed at a time
OTHERS = 50_000  # words outside the vocabulary whose vectors are cached: 200 MB at 1,000 units
PAD, BEGIN, END, OTHER = 0, 1, 2, 3


@dataclass(frozen=True)
class SpellingSizes:
    """The sizes of a character CNN; by default of the small model of Jernite 2018, 525 filters in all."""

    character: int = 15  # width of a character's vector
    widths: Sequence[int] = (1, 2, 3, 4, 5, 6)
    filters: int = 25  # a width of w characters has w times as many filters
    most: int = 0  # the most filters of one width; 0: no limit

    def filter_count(self, width: int) -> int:
        """The number of filters that see `width` characters."""
        return min(self.filters * width, self.most or self.filters * width)

    @property
    def total(self) -> int:
        """The number of filters of all widths."""
        return sum(map(self.filter_count, self.widths))


SMALL_MODEL = SpellingSizes()


def alphabet(vocab: Sequence[str]) -> dict[str, int]:
    """Map each character of the words of a vocabulary, and each special word as one symbol, to its id:
    special words first, then characters in order of code points."""
    characters = {character for word in vocab if word not in SPECIALS for character in word}
    return {symbol: number for number, symbol in enumerate([*SPECIALS, *sorted(characters)], OTHER + 1)}


def spell(vocab: Sequence[str], symbols: dict[str, int]) -> Tensor:
    """The character ids of each of W words, with begin, end and padding: (W, LONGEST + 2). `symbols`:
    character -> id; others become OTHER. Special words are one symbol; words above LONGEST are cut inside."""
    table = torch.full((len(vocab), LONGEST + 2), PAD)
    for row, word in enumerate(vocab):
        letters = [word] if word in SPECIALS else list(word)
        if len(letters) > LONGEST:
            letters = letters[: LONGEST // 2] + letters[-(LONGEST - LONGEST // 2) :]
        ids = [BEGIN, *(symbols.get(letter, OTHER) for letter in letters), END]
        table[row, : len(ids)] = torch.tensor(ids)
    return table


class SpelledWords(nn.Module):
    """Used in place of a table of word vectors: ids (N,) -> (N, E). In training, and wherever gradients are
    enabled, only the distinct words of a batch are computed; otherwise all of them once, into a table, until
    `train` is called. Subclasses define the layers above the convolutions."""

    spelling: Tensor

    def __init__(self, vocab: Sequence[str], sizes: SpellingSizes = SMALL_MODEL) -> None:
        """`vocab`: the words by id."""
        super().__init__()
        self.symbols, self.widths = alphabet(vocab), tuple(sizes.widths)
        self.register_buffer("spelling", spell(vocab, self.symbols), persistent=False)
        self.characters = nn.Parameter(torch.empty(len(self.symbols) + OTHER + 1, sizes.character))  # Q
        counts = [(sizes.filter_count(width), width) for width in sizes.widths]
        self.filters = nn.ParameterList(
            torch.empty(count, sizes.character * width) for count, width in counts
        )  # H
        self.filter_biases = nn.ParameterList(torch.zeros(count) for count, _ in counts)
        self.table: Tensor | None = None  # every word's vector, while not training

    def train(self, mode: bool = True) -> Self:
        self.table = None  # weights are about to change, or have changed
        return super().train(mode)

    @property
    def row_names(self) -> list[str]:
        """Labels of the rows of `characters`: four markers, then special tokens and characters."""
        return ["\0pad", "\0begin", "\0end", "\0other", *self.symbols]

    def forward(self, ids: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled():
            distinct, index = ids.unique(return_inverse=True)
            return F.embedding(index, self.vectors(self.spelling[distinct]))
        return F.embedding(ids, self.all_vectors())

    def all_vectors(self) -> Tensor:
        """Every word's vector, computed once: (V, E)"""
        table = self.table
        if table is None or table.device != self.characters.device or table.dtype != self.characters.dtype:
            table = self.characters.new_empty(0, 0)
        if len(table) < len(self.spelling):
            blocks = [self.vectors(block) for block in self.spelling[len(table) :].split(BLOCK)]
            table = self.table = torch.cat([*([table] if len(table) else []), *blocks])
        return table

    def vectors(self, spelling: Tensor) -> Tensor:
        """Compute the vectors of W words from their characters: (W, L) -> (W, E)"""
        return self.above(self.maxima(spelling))

    def above(self, maxima: Tensor) -> Tensor:
        """Vectors of words from the maxima of all filters: (W, filters) -> (W, E)"""
        raise NotImplementedError

    def maxima(self, spelling: Tensor) -> Tensor:
        """y, the maximum of each filter over the word: characters (W, L) -> (W, filters)"""
        letters = F.embedding(spelling, self.characters)  # (W, L, Q)
        lengths = (spelling != PAD).sum(1)
        maxima = []
        for width, matrix, bias in zip(self.widths, self.filters, self.filter_biases, strict=True):
            windows = letters.unfold(1, width, 1).flatten(2)  # (W, L - w + 1, Q w)
            values = F.linear(windows, matrix)
            starts = torch.arange(values.shape[1], device=spelling.device)
            # A word shorter than the filter has one window.
            outside = starts[None] > (lengths - width).clamp(min=0)[:, None]
            maxima.append(torch.tanh(values.masked_fill(outside[:, :, None], -torch.inf).amax(1) + bias))
        return torch.cat(maxima, 1)


class CharacterWords(SpelledWords):
    """Words of an encoder: one highway layer and a projection to E."""

    def __init__(self, vocab: Sequence[str], size: int, sizes: SpellingSizes = SMALL_MODEL) -> None:
        """`vocab`: the words by id; `size`: E."""
        super().__init__(vocab, sizes)
        total = sizes.total
        self.highway = nn.Parameter(torch.empty(total, total))  # W_H
        self.highway_bias = nn.Parameter(torch.zeros(total))
        self.transform = nn.Parameter(torch.empty(total, total))  # W_T
        self.transform_bias = nn.Parameter(torch.full((total,), TRANSFORM_BIAS))
        self.projection = nn.Parameter(torch.empty(size, total))  # P

    def after_initialize(self) -> None:
        """Restore the bias of the transform gate, which `initialize` set to 0."""
        self.transform_bias.fill_(TRANSFORM_BIAS)

    def above(self, maxima: Tensor) -> Tensor:
        """Word vectors e = P z of the highway output z for these maxima."""
        z = highway(maxima, self.highway, self.highway_bias, self.transform, self.transform_bias)
        return F.linear(z, self.projection)


class OpenWords(SpelledWords):
    """Words of a language model: any number of highway layers, no projection unless `size` is given. Words
    outside the vocabulary have vectors too: `numbers` gives them ids above those of the vocabulary."""

    def __init__(self, vocab: Sequence[str], sizes: SpellingSizes, layers: int, size: int = 0) -> None:
        """`layers`: highway layers; `size`: E, 0: as many as there are filters."""
        super().__init__(vocab, sizes)
        self.highways = nn.ModuleList(Highway(sizes.total) for _ in range(layers))
        self.projection = nn.Parameter(torch.empty(size, sizes.total)) if size else None  # P
        self.vocab_size = len(vocab)
        self.others: dict[str, int] = {}  # words outside the vocabulary, and their ids

    def above(self, maxima: Tensor) -> Tensor:
        for layer in self.highways:
            maxima = layer(maxima)
        return maxima if self.projection is None else F.linear(maxima, self.projection)

    def numbers(self, words: Sequence[str]) -> list[int]:
        """Ids of words outside the vocabulary. They stay valid until more than OTHERS such words have been
        seen; the next call then assigns new ones."""
        if len(self.others) > OTHERS:
            self.others = {}
            self.spelling = self.spelling[: self.vocab_size]
            self.table = None
        new = [word for word in dict.fromkeys(words) if word not in self.others]
        if new:
            self.others.update((word, len(self.spelling) + row) for row, word in enumerate(new))
            rows = spell(new, self.symbols).to(self.spelling.device)
            self.spelling = torch.cat([self.spelling, rows])
        return [self.others[word] for word in words]
