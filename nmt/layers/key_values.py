"""Keys and values of the words that hypotheses have read: what incremental decoding keeps.

There are two caches. `KeyValueCache` suits any hypotheses, also those of a trie, whose states are all kept.
`SentenceCache` is faster where the hypotheses of a sentence share most of their words and go on together, as
in a beam; its `join` and `step` need to know how the hypotheses are spread over sentences.

R hypotheses of S sentences, at most W of each; L source words; D size of a key or value, h heads of size
d = D / h. A column holds the keys and values of one word: a `KeyValueCache` has T columns, with a row for
each hypothesis that took the step; a `SentenceCache` has C columns for each sentence, which its hypotheses
share.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.layers.attention import AttentionMemory, HypothesisGrid, stack_padded

# ---- one word a hypothesis ---------------------------------------------------------------------------------


class HeadGrid:
    """Lays out vectors of hypotheses as a grid with a row for each sentence and head."""

    def __init__(self, grid: HypothesisGrid, heads: int, parts: int, like: Tensor) -> None:
        """`parts`: number of vectors side by side in a row, such as 3 for query, key and value."""
        (S, W), device = grid.shape, like.device
        index = torch.arange(S * W, device=device) if grid.index is None else grid.index
        self.heads, self.shape = heads, (parts, S * heads, W)
        # Vectors of size d are numbered row by row: R rows of parts * h vectors, S * h rows of W in the grid.
        row = index.new_zeros(S * W).index_copy_(0, index, torch.arange(len(index), device=device))
        head = torch.arange(heads, device=device)
        part = heads * torch.arange(parts, device=device)[:, None, None, None]
        # `vectors`: the vector for each position of the grid; `positions`: the position in the grid of each
        # vector. A position of padding gets the vectors of the first hypothesis, which nobody reads.
        self.vectors = (row.view(S, 1, W) * parts * heads + part + head[:, None]).flatten()
        self.positions = ((index // W * heads)[:, None] + head).mul_(W).add_((index % W)[:, None]).flatten()

    def pad(self, values: Tensor) -> Tensor:
        """(R, parts * D) -> (parts, S * h, W, d)"""
        rows = values.view(-1, values.shape[1] // (self.shape[0] * self.heads))
        return rows.index_select(0, self.vectors).view(*self.shape, -1)

    def unpad(self, grid: Tensor) -> Tensor:
        """(S * h, W, d) -> (R, D)"""
        rows = grid.flatten(0, 1).index_select(0, self.positions)
        return rows.view(-1, self.heads * rows.shape[1])


class CacheStep:
    """A step of the decoder: the words read so far, and the next one, which the layers add in turn."""

    lengths: Tensor  # (R,) words that each hypothesis has read

    def attend(self, layer: int, parts: Tensor) -> Tensor:
        """Add the new words in a layer and attend to all: queries, keys, values, (R, 3D) -> (R, D)"""
        raise NotImplementedError


def attend_once(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √d + mask) V and the weights: (S * h, W, d), (S * h, C, d) twice, (S * h, W or 1, C) ->
    (S * h, W, d), (S * h, W, C). For few queries of many sentences, faster than torch's attention."""
    energies = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=query.shape[2] ** -0.5)
    weights = torch.softmax(energies, 2)
    return torch.bmm(weights, values), weights


# ---- source ------------------------------------------------------------------------------------------------


@dataclass
class SourceWords:
    """Keys and values of the words of S sources in all layers, for search."""

    pairs: Tensor  # (layers, 2, S, h, L, d)
    mask: Tensor  # (S, L) 0 at words, -inf past the end of a sentence

    @staticmethod
    def of(memory: Sequence[AttentionMemory], heads: int) -> "SourceWords":
        """Collect keys and values from the attention memory of each layer."""
        pairs = torch.stack([torch.stack([layer.keys, layer.values]) for layer in memory])
        pairs = pairs.unflatten(4, (heads, -1)).transpose(3, 4).contiguous()
        return SourceWords(pairs=pairs, mask=memory[0].mask)

    def __len__(self) -> int:
        return len(self.mask)

    def rows(self, rows: Tensor) -> "SourceWords":
        """Sentence i of the result is sentence rows[i]."""
        return SourceWords(self.pairs.index_select(2, rows), self.mask.index_select(0, rows))

    @staticmethod
    def join(parts: "Sequence[SourceWords]") -> "SourceWords":
        """Concatenate all sentences, padded to the longest of them."""
        lengths = [int((part.mask == 0).sum(1).max()) if len(part) else 0 for part in parts]
        mask = stack_padded([part.mask for part in parts], lengths, -torch.inf)
        layers, two, _, heads, _, width = parts[0].pairs.shape
        pairs = parts[0].pairs.new_zeros(layers, two, len(mask), heads, max(lengths), width)
        first = 0
        for part, length in zip(parts, lengths, strict=True):
            pairs[:, :, first : first + len(part), :, :length] = part.pairs[..., :length, :]
            first += len(part)
        return SourceWords(pairs=pairs, mask=mask)


class SourceStep:
    """Attention of one word per hypothesis to its source. Keeps the weights of one layer, averaged over its
    first heads."""

    def __init__(self, words: SourceWords, grid: HypothesisGrid, layer: int = -1, heads: int = 0) -> None:
        """`layer`: the layer whose weights are kept; `heads`: number of heads to average, 0: all."""
        self.words = words if grid.used is None else words.rows(grid.used)
        self.all_heads = self.words.pairs.shape[3]
        self.grid, self.in_heads = grid, HeadGrid(grid, self.all_heads, 1, words.pairs)
        self.mask = self.words.mask.repeat_interleave(self.all_heads, 0)[:, None]
        self.layer, self.heads = layer, heads or self.all_heads
        self.weights: Tensor | None = None  # (R, L)

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """Attend to the source in a layer: queries (R, D) -> (R, D)"""
        keys, values = self.words.pairs[layer].flatten(1, 2)
        seen, weights = attend_once(self.in_heads.pad(query)[0], keys, values, self.mask)
        if layer == self.layer:
            shown = weights.unflatten(0, (-1, self.all_heads))[:, : self.heads]
            self.weights = self.grid.unpad(shown.mean(1))
        return self.in_heads.unpad(seen)


# ---- columns -----------------------------------------------------------------------------------------------
# Hypotheses that begin alike share their words. Each step of the decoder adds one column, with a row for each
# hypothesis that took the step, and a hypothesis knows its row in each column. So reordering moves a few
# numbers, no vectors; a step gathers the words. Hypotheses of different lengths lie side by side: their last
# words are in the last column, and the shorter ones have no row in the first columns.
#
#   column 0   column 1   column 2        row_index  hypothesis 0    1    2
#   b          e          x               column 0             -1    0   -1     1 has read three words, b e y,
#              a          y               column 1              1    0    2     the others two, a x and k z
#              k          z               column 2              0    1    2
#
# The width of a column is that of the keys and values of all layers.


@dataclass
class KeyValueCache:
    """Keys and values of the words that R hypotheses have read so far."""

    columns: list[Tensor]  # of each step: (rows, layers * 2 * D)
    row_index: Tensor  # (T, R) the row of a hypothesis in each column; -1: it is shorter

    @staticmethod
    def start(rows: int, device: torch.device) -> "KeyValueCache":
        """The empty cache of `rows` hypotheses that have read no word."""
        return KeyValueCache(columns=[], row_index=torch.zeros(0, rows, dtype=torch.long, device=device))

    @property
    def lengths(self) -> Tensor:
        """Words read by each hypothesis: (R,)"""
        return (self.row_index >= 0).sum(0)

    def rows(self, rows: Tensor) -> "KeyValueCache":
        """Select hypotheses: hypothesis i of the result is hypothesis rows[i]. Columns that none of them uses
        are dropped."""
        row_index = self.row_index.index_select(1, rows)
        if not len(row_index) or bool((row_index[0] >= 0).any()):
            return KeyValueCache(columns=self.columns, row_index=row_index)
        first = int((row_index >= 0).any(1).logical_not().sum())
        return KeyValueCache(columns=self.columns[first:], row_index=row_index[first:])

    @staticmethod
    def join(parts: "Sequence[KeyValueCache]") -> "KeyValueCache":
        """Concatenate the hypotheses of all parts."""
        T, columns, row_indices = max(len(part.columns) for part in parts), [], []
        for back in range(T, 0, -1):
            column, row_index = join_column(
                [
                    (part.columns[-back], part.row_index[-back])
                    if back <= len(part.columns)
                    else (None, part.row_index.new_full(part.row_index.shape[1:], -1))
                    for part in parts
                ]
            )
            columns.append(column)
            row_indices.append(row_index)
        if not row_indices:
            return KeyValueCache(columns=[], row_index=torch.cat([part.row_index for part in parts], 1))
        return KeyValueCache(columns=columns, row_index=torch.stack(row_indices))

    def step(self, layers: int, heads: int, like: Tensor, grid: HypothesisGrid | None = None) -> "ColumnStep":
        """Begin a step of a decoder with this many layers and heads: copy the words read so far, with room
        for one more per hypothesis. `like`: a matrix with the type and the width D of the vectors. `grid` is
        ignored."""
        T, R = self.row_index.shape
        values = like.new_empty(T + 1, R, layers * 2 * like.shape[1])
        row_index = self.row_index.clamp(min=0)
        for step, column in enumerate(self.columns):
            torch.index_select(column, 0, row_index[step], out=values[step])
        missing = self.row_index < 0
        mask = None
        if T and bool(missing[0].any()):
            mask = values.new_zeros(T + 1, R)
            mask[:T].masked_fill_(missing, -torch.inf)
        return ColumnStep(self, values.view(T + 1, R, layers, 2, heads, -1), mask)


def join_column(parts: Sequence[tuple[Tensor | None, Tensor]]) -> tuple[Tensor, Tensor]:
    """Join one column of several caches: returns its rows, and the row of each hypothesis in it. If there are
    more rows than hypotheses, those that no hypothesis uses are left out. `parts`: a column and the row of
    each hypothesis, -1 for none; None for a cache without this column."""
    pools: list[Tensor] = []
    starts: dict[int, int] = {}
    shifted, count = [], 0
    for column, row_index in parts:
        if column is None:
            shifted.append(row_index)
            continue
        if id(column) not in starts:
            starts[id(column)] = count
            pools.append(column)
            count += len(column)
        shifted.append(torch.where(row_index >= 0, row_index + starts[id(column)], row_index))
    row_indices = torch.cat(shifted)
    pool = pools[0] if len(pools) == 1 else torch.cat(pools)
    if len(pool) <= len(row_indices):
        return pool, row_indices
    used, index = row_indices.unique(return_inverse=True)  # -1 is the smallest
    used_rows = used[used >= 0]
    return pool.index_select(0, used_rows), index - (len(used) - len(used_rows))


@dataclass
class ColumnStep(CacheStep):
    """A step of the decoder in a `KeyValueCache`."""

    cache: KeyValueCache
    values: Tensor  # (T + 1, R, layers, 2, heads, D / heads); the last word is filled in layer by layer
    mask: Tensor | None  # (T + 1, R) 0 at words, -inf where a hypothesis is shorter

    def add(self, layer: int, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the new words in a layer, (R, 2D) -> those of all words, (R, heads, T + 1,
        D / heads) twice"""
        now = self.values[:, :, layer]  # (T + 1, R, 2, heads, D / heads)
        now[-1] = pairs.view(now.shape[1:])
        keys, values = now.permute(2, 1, 3, 0, 4)
        return keys, values

    @property
    def lengths(self) -> Tensor:  # type: ignore[override]
        return self.cache.lengths

    def attend(self, layer: int, parts: Tensor) -> Tensor:
        R, D = len(parts), parts.shape[1] // 3
        query, pairs = parts.split([D, 2 * D], 1)
        keys, values = self.add(layer, pairs)
        mask = None if self.mask is None else self.mask.t()[:, None, None]
        seen = F.scaled_dot_product_attention(query.view(R, keys.shape[1], 1, -1), keys, values, mask)
        return seen.reshape(R, D)

    def after(self) -> KeyValueCache:
        """The cache that includes the new word, once all layers have added it."""
        R = self.cache.row_index.shape[1]
        row = torch.arange(R, device=self.cache.row_index.device)
        return KeyValueCache(
            columns=[*self.cache.columns, self.values[-1].reshape(R, -1).clone()],
            row_index=torch.cat([self.cache.row_index, row[None]]),
        )


# ---- sentences ---------------------------------------------------------------------------------------------
# The words of all hypotheses of a sentence lie side by side, and each hypothesis has a mask that shows it its
# own. All queries of a sentence are answered in one product with all its words: no vector is moved when
# hypotheses are reordered, and a word that they share is read once. When the store is full, words of dropped
# hypotheses are left out, and the others move to a new one.
#
#   sentence 0:  a  b  c  d  e        a b d, a b e: two hypotheses; c was read by one that was dropped
#   masks        0  0     0
#                0  0        0

ROOM = 4  # steps for which a new store has free columns


@dataclass
class PairStore:
    """Keys and values of S sentences. Several caches may share a store; a cache that uses all filled columns
    may append its words, others have to copy."""

    pairs: Tensor  # (layers, 2, S, h, capacity, d)
    filled: int = 0  # columns

    @property
    def capacity(self) -> int:
        return self.pairs.shape[4]

    def select(self, sentences: Tensor, columns: Tensor, room: int) -> "PairStore":
        """Copy columns (S, C) of the sentences (S,) to a new store, with `room` free columns."""
        layers, two, _, heads, capacity, width = self.pairs.shape
        S, C = columns.shape
        pairs = self.pairs.new_empty(layers, two, S, heads, C + room, width)
        # Free columns get any vectors: they are masked, but have to be finite.
        head = sentences[:, None] * heads + torch.arange(heads, device=columns.device)
        index = (head[:, :, None] * capacity + F.pad(columns, (0, room))[:, None]).flatten()
        for old, new in zip(self.pairs.flatten(0, 1), pairs.flatten(0, 1), strict=True):
            torch.index_select(old.view(-1, width), 0, index, out=new.view(-1, width))
        return PairStore(pairs, C)


@dataclass
class SentenceCache:
    """Keys and values of the words that R hypotheses of S sentences have read so far."""

    store: PairStore
    mask: Tensor  # (R, C) 0 at the words of a hypothesis, -inf at others of its sentence
    lengths: Tensor  # (R,) words read by each hypothesis

    @staticmethod
    def start(sentences: int, device: torch.device) -> "SentenceCache":
        """The empty cache of one hypothesis for each sentence."""
        return SentenceCache(
            store=PairStore(torch.zeros(0, 2, sentences, 0, 0, 0, device=device)),
            mask=torch.zeros(sentences, 0, device=device),
            lengths=torch.zeros(sentences, dtype=torch.long, device=device),
        )

    def rows(self, rows: Tensor) -> "SentenceCache":
        """Select hypotheses: hypothesis i of the result is hypothesis rows[i]."""
        mask, lengths = self.mask.index_select(0, rows), self.lengths.index_select(0, rows)
        return SentenceCache(store=self.store, mask=mask, lengths=lengths)

    def sentences(self, used: Tensor, sentence: Tensor, room: int) -> "SentenceCache":
        """Move to a new store that has only the sentences `used` (S,) and the words that a hypothesis
        contains, with `room` free columns, none before the first word. `sentence` (R,): the index in `used`
        of each hypothesis."""
        if not self.mask.shape[1]:
            layers, two, _, heads, _, width = self.store.pairs.shape
            store = PairStore(self.store.pairs.new_zeros(layers, two, len(used), heads, 0, width))
            return SentenceCache(store=store, mask=self.mask, lengths=self.lengths)
        readers = self.mask.new_zeros(len(used), self.mask.shape[1])
        readers.index_add_(0, sentence, (self.mask == 0).to(self.mask.dtype))
        count = int((readers > 0).sum(1).max()) if len(used) else 0
        order = (readers == 0).byte().argsort(dim=1, stable=True)[:, :count]
        mask = self.mask.gather(1, order.index_select(0, sentence))
        return SentenceCache(store=self.store.select(used, order, room), mask=mask, lengths=self.lengths)

    @staticmethod
    def join(parts: "Sequence[SentenceCache]", most: int) -> "SentenceCache":
        """Concatenate the sentences of all parts. `most`: maximum number of hypotheses per sentence, for
        which the new store has room for ROOM steps."""
        R, C = sum(len(part.mask) for part in parts), max(part.mask.shape[1] for part in parts)
        like = max((part.store.pairs for part in parts), key=len)  # with layers, if any part has read a word
        (layers, two, _, heads, _, width), S = like.shape, sum(part.store.pairs.shape[2] for part in parts)
        pairs = like.new_zeros(layers, two, S, heads, C + ROOM * most if C else 0, width)
        mask = like.new_full((R, C), -torch.inf)
        first, row = 0, 0
        for part in parts:
            sentences, columns = part.store.pairs.shape[2], part.mask.shape[1]
            if columns:
                pairs[:, :, first : first + sentences, :, :columns] = part.store.pairs[..., :columns, :]
                mask[row : row + len(part.mask), :columns] = part.mask
            first, row = first + sentences, row + len(part.mask)
        lengths = torch.cat([part.lengths for part in parts])
        return SentenceCache(store=PairStore(pairs, C), mask=mask, lengths=lengths)

    def step(self, layers: int, heads: int, like: Tensor, grid: HypothesisGrid) -> "SentenceStep":
        """Begin a step of a decoder with this many layers and heads. `like`: a matrix with the type and the
        width D of the vectors. `grid`: the layout of the hypotheses over all S sentences, see
        `sentence_grid`. Claims the next columns of the store, so a second step of this cache copies it."""
        assert grid.index is not None
        (S, W), C = grid.shape, self.mask.shape[1]
        cache = self
        if not C:
            store = PairStore(like.new_zeros(layers, 2, S, heads, (1 + ROOM) * W, like.shape[1] // heads))
            cache = SentenceCache(store=store, mask=self.mask.to(like), lengths=self.lengths)
        elif self.store.filled != C or self.store.capacity < C + W:
            cache = self.sentences(torch.arange(S, device=like.device), grid.index // W, ROOM * W)
        cache.store.filled += W
        return SentenceStep(cache, grid, heads)

    def columns(self, sentence: Tensor) -> KeyValueCache:
        """Convert to a cache of columns. `sentence` (R,): index of the sentence of each hypothesis."""
        (R, C), T = self.mask.shape, int(self.lengths.max()) if len(self.lengths) else 0
        own = self.mask == 0
        order = own.byte().argsort(dim=1, stable=True)[:, C - T :]  # its own words are the last
        words = self.store.select(sentence, order, 0).pairs.permute(4, 2, 0, 1, 3, 5).reshape(T, R, -1)
        row = torch.arange(R, device=sentence.device).expand(T, R)
        return KeyValueCache(list(words), row.where(own.gather(1, order).t(), -1))


class SentenceStep(CacheStep):
    """A step of the decoder in a `SentenceCache`; each layer fills its part of the store in turn."""

    def __init__(self, cache: SentenceCache, grid: HypothesisGrid, heads: int) -> None:
        """`cache`: must have W free columns in its store; `grid`, `heads`: see `SentenceCache.step`."""
        assert grid.index is not None
        W, C = grid.shape[1], cache.mask.shape[1]
        self.cache, self.grid = cache, HeadGrid(grid, heads, 3, cache.mask)
        self.begin, self.end, self.lengths = C, C + W, cache.lengths
        new = cache.mask.new_full((len(cache.mask), W), -torch.inf)
        self.mask = torch.cat([cache.mask, new.scatter_(1, (grid.index % W)[:, None], 0)], 1)  # (R, C + W)
        visible = grid.pad(self.mask)  # (S, W, C + W); a position of padding sees all
        self.visible = visible.repeat_interleave(heads, 0)

    def attend(self, layer: int, parts: Tensor) -> Tensor:
        store = self.cache.store.pairs[layer].flatten(1, 2)  # (2, S * h, capacity, d)
        parts = self.grid.pad(parts)
        store[:, :, self.begin : self.end] = parts[1:]
        keys, values = store[:, :, : self.end]
        return self.grid.unpad(attend_once(parts[0], keys, values, self.visible)[0])

    def after(self) -> SentenceCache:
        """The cache that includes the new word, once all layers have added it."""
        return SentenceCache(store=self.cache.store, mask=self.mask, lengths=self.lengths + 1)
