"""log p of many texts at a time: in batches of similar length, through tries whose prefixes are computed
once, or, for networks that read a window of words, with each distinct window computed once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.compute.device import block_rows
from nmt.data import prefix_tree
from nmt.data.batches import Batch, Ids, make_batch
from nmt.data.prefix_tree import TrieLevel
from nmt.layers.output import OutputLayer
from nmt.text.vocab import BOS, EOS

# ---- batch scores ------------------------------------------------------------------------------------------


BATCH = 128  # pairs in a batch
SOFTMAX_ROWS = 64  # rows of V scores at a time: 64 x 15k floats stay in a cache
State = TypeVar("State")


class PairModel(Protocol):
    """Anything that scores the targets of a batch: translators, and language models."""

    @property
    def device(self) -> torch.device: ...

    def token_log_probs(self, batch: Batch) -> Tensor:
        """Natural log p of each target unit, in packed order: (N,)"""
        ...


def word_scores(
    model: PairModel, pairs: Sequence[tuple[Ids, Ids]], batch_size: int = BATCH
) -> list[list[float]]:
    """Natural log p of each unit of each target and of its end symbol, in the order of the pairs. Their sum
    is log p(target | source)."""
    results: list[list[float]] = [[] for _ in pairs]
    for rows in batches_by_length(pairs, batch_size):
        batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows]).to(model.device)
        for row, scores in zip(rows, batch.target.split(model.token_log_probs(batch).double()), strict=True):
            results[row] = scores.tolist()
    return results


def batches_by_length(pairs: Sequence[tuple[Ids, Ids]], size: int) -> Iterator[list[int]]:
    """Indices of pairs of similar length, `size` at a time, the longest first, so that too little memory
    shows at once."""
    order = sorted(range(len(pairs)), key=lambda row: (-len(pairs[row][1]), -len(pairs[row][0])))
    for start in range(0, len(order), size):
        yield order[start : start + size]


@dataclass
class Walk(Generic[State]):
    """A walk of a model through tries of targets: its state has a row for each node of a level, and it steps
    to the next level. `reorder` and `join` are those of the model."""

    device: torch.device
    output: OutputLayer
    start: Callable[[], State]  # a row for each trie
    # (state, for each row the index of its next word in the words of the walk, whether it is the first word)
    # -> (features, new state)
    step: Callable[[State, Tensor, bool], tuple[Tensor, State]]
    reorder: Callable[[State, Tensor], State]
    join: Callable[[Sequence[State]], State]  # of states of the same tries

    def advance(self, state: State, rows: Tensor, words: Tensor, first: bool) -> tuple[Tensor, State]:
        """Read the words of n nodes of a level. Returns their features (n, K) and the new state.

        `state`: of the previous level; `rows` (n,): its row for the parent of each node; `words` (n,): the
        index of each node's word among those of the walk; `first`: whether it is the first level."""
        return self.step(self.reorder(state, rows), words, first)


def level_words(levels: Sequence[TrieLevel]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct words of all levels, BOS first, and for each node the index of its word among them, level
    by level."""
    words, index = np.unique(
        np.concatenate([[BOS], *(level.token_ids for level in levels[1:])]), return_inverse=True
    )
    return words, index


def walk_tries(
    walk: Walk[State], levels: Sequence[TrieLevel], index: NDArray[np.int64], count: int, ends: bool = True
) -> NDArray[np.float64]:
    """Compute natural log p of `count` targets that lie in tries, level by level: (count,). `levels`,
    `index`: the nodes of each level, and the index of each node's word among the words of the walk, see
    `level_words`; `ends`: include end symbols."""
    state, block_size = walk.start(), block_rows(walk.device, prefix_tree.BLOCK, walk.output.vocab_size)
    total = np.zeros(count)
    above = np.zeros(len(levels[0].token_ids))  # log p of the prefixes that end in the nodes of a level
    rows = np.zeros(len(above), np.int64)  # index of the word of each node; BOS has the smallest id
    end = 1
    for depth, level in enumerate(levels):
        below = levels[depth + 1] if depth + 1 < len(levels) else TrieLevel.empty()
        next_rows = index[end : end + len(below.token_ids)]
        end += len(below.token_ids)
        parents = np.arange(len(level.token_ids)) if depth == 0 else level.parents
        scores, end_scores = np.empty(len(below.token_ids)), np.empty(len(level.nodes))
        hidden = []
        for block in prefix_tree.blocks(len(rows), block_size):
            features, after = walk.advance(
                state, on_device(parents[block], walk.device), on_device(rows[block], walk.device), depth == 0
            )
            hidden.append(after)
            children = slice(*np.searchsorted(below.parents, [block.start, block.stop]))
            finished = slice(*np.searchsorted(level.nodes, [block.start, block.stop]))
            nodes = np.concatenate([below.parents[children], level.nodes[finished]]) - block.start
            words = np.concatenate([below.token_ids[children], np.full(finished.stop - finished.start, EOS)])
            edges = edge_scores(walk.output, features, nodes, words)
            scores[children], end_scores[finished] = np.split(edges, [children.stop - children.start])
        state = walk.join(hidden)
        total[level.ended] = above[level.nodes] + end_scores if ends else above[level.nodes]
        above = above[below.parents] + scores
        rows = next_rows
    return total


def edge_scores(
    output: OutputLayer, features: Tensor, nodes: NDArray[np.int64], words: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Natural log p of words after nodes: features (n, K), nodes (m,) of 0..n-1, words (m,) -> (m,)"""
    node_ids, word_ids = on_device(nodes, features.device), on_device(words, features.device)
    if output.word_by_word:
        return np.asarray(output.log_probs_of_words(features, node_ids, word_ids).double().cpu().numpy())
    size = block_rows(features.device, SOFTMAX_ROWS, output.vocab_size)
    return scores_in_blocks(
        output, lambda start, stop: features[start:stop], len(features), node_ids, word_ids, size
    )


def on_device(values: NDArray[np.int64], device: torch.device) -> Tensor:
    """Copy an array to a device."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


# ---- distinct windows --------------------------------------------------------------------------------------
# G queries, U distinct windows, K features.


WINDOW_ROWS = 512  # windows at a time: a softmax of 128 rows is 0.85 times as fast
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def distinct_windows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct rows of (N, k), sorted, and the index of each row in them: (U, k), (N,). Values must not be
    negative. As many columns at a time as fit into one number, which is twenty times as fast as
    unique(dim=0)."""
    if not len(rows):
        return rows, rows.new_zeros(0)
    index, most = rows.new_zeros(len(rows)), 1  # numbers below `most`, in the order of the rows
    for column, largest in zip(rows.t(), rows.amax(0).tolist(), strict=True):
        if most * (largest + 1) > torch.iinfo(torch.int64).max:
            index, most = index.unique(return_inverse=True)[1], len(rows)
        index, most = index * (largest + 1) + column, most * (largest + 1)
    index = index.unique(return_inverse=True)[1]
    first = index.new_empty(int(index.max()) + 1)
    first[index] = torch.arange(len(index), device=index.device)
    return rows[first], index


Features = Callable[[int, int], Tensor]  # start, stop -> features of these rows, (stop - start, K)


def window_scores(
    output: OutputLayer,
    features: Features,
    count: int,
    index: Tensor,
    words: Ints,
    normalized: bool,
) -> Floats:
    """Compute natural log p of words after `count` windows: (G,). `features`: of the windows, on the device
    of `index` (G,), which is the window of each word; `normalized`: log Z is taken as 0."""
    size = block_rows(index.device, WINDOW_ROWS, output.vocab_size)
    return scores_in_blocks(output, features, count, index, on_device(words, index.device), size, normalized)


@torch.no_grad()
def scores_in_blocks(
    output: OutputLayer,
    features: Features,
    count: int,
    index: Tensor,
    words: Tensor,
    block_rows: int,
    normalized: bool = False,
) -> Floats:
    """Compute natural log p of words after `count` rows of features, `block_rows` of them at a time: (G,).
    `index` (G,), in any order: the row of each word; `normalized`: log Z is taken as 0."""
    order = index.argsort(stable=True)
    index, words = index[order], words[order]
    starts = range(0, count, block_rows)
    edges = torch.searchsorted(index, torch.tensor([*starts, count], device=index.device)).tolist()
    parts = []  # read at the end: reading waits for a GPU
    room = None if normalized else output.room(min(block_rows, count))
    for start, (low, high) in zip(starts, pairwise(edges), strict=True):
        block = features(start, min(start + block_rows, count))
        rows, answers = index[low:high] - start, words[low:high]
        if output.word_by_word:
            scores = output.log_probs_of_words(block, rows, answers)
        elif room is None:
            scores = output.target_scores(block.index_select(0, rows), answers)
        else:
            scores = output.log_probs(block, out=room[: len(block)])[rows, answers]
        parts.append(scores.double())
    if not parts:
        return np.zeros(0)
    result = parts[0].new_empty(len(words))
    result[order] = torch.cat(parts)
    return result.cpu().numpy()
