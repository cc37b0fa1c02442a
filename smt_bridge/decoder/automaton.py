"""A back-off n-gram model as an automaton: a state is the longest context that can still matter, a step reads
one word.

Nodes are n-grams, numbered order by order; the empty context (`root`) comes last. Where a context has no
n-gram with the next word, the step backs off to the next shorter context and adds its back-off weight. As in
KenLM, a state keeps only the context that can affect later words, so that more hypotheses recombine.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.ngram.count_models import BOS, EOS, LN10, NgramModel
from nmt.ngram.queries import MIX, insert
from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.table import within

BLOCK = 1 << 20  # rows per compiled call; signals are handled between calls
Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
insert_keys = njit(insert)


class Automaton(NamedTuple):
    """An automaton of S nodes and the root. Log probabilities are natural."""

    words: int  # V, the size of the vocabulary
    unknown: int  # word id of <unk>
    start_state: int  # state after <s>
    end: int  # word id of </s>
    root: int
    keys: Int64s  # hash table: context * V + word
    values: Int32s  # the node that each key leads to
    log_prob: Floats  # (S,)
    backoff: Floats  # (S + 1,)
    shorter: Int32s  # (S + 1,) the node of the context without its first word
    state: Int32s  # (S + 1,) the node that is kept as the state after reaching this one
    most: Floats  # (V,) upper bound of the word's log probability in any context


class CachedNgramModel(NamedTuple):
    """An n-gram model as it is cached: its vocabulary, then the fields of Automaton."""

    vocabulary: list[str]
    words: int
    unknown: int
    start_state: int
    end: int
    root: int
    keys: Int64s
    values: Int32s
    log_prob: Floats
    backoff: Floats
    shorter: Int32s
    state: Int32s
    most: Floats

    def is_sound(self) -> bool:
        """Whether all sizes agree and all indices are within bounds, which compiled code does not check."""
        nodes = self.root + 1
        sizes = (
            len(self.log_prob) == self.root
            and len(self.backoff) == len(self.shorter) == len(self.state) == nodes
        )
        words = (
            len(self.vocabulary) == len(self.most) == self.words
            and 0 <= self.unknown < self.words
            and 0 <= self.end < self.words
        )
        table = (
            len(self.keys) == len(self.values)
            and len(self.keys).bit_count() == 1
            and bool((self.keys == -1).any())
        )
        return (
            sizes
            and words
            and table
            and 0 <= self.start_state < nodes
            and all(within(part, nodes) for part in (self.values, self.shorter, self.state))
        )

    @property
    def automaton(self) -> Automaton:
        for value in self:
            if isinstance(value, np.ndarray):  # as mapped ones, so that the search is compiled for one kind
                value.flags.writeable = False
        return Automaton(*self[1:])


def silent() -> CachedNgramModel:
    """A language model that gives every word log p = 0, for systems without a language model."""
    zero, root = np.zeros(3), np.full(4, 3, np.int32)
    return CachedNgramModel(
        vocabulary=["<unk>", "<s>", "</s>"],
        words=3,
        unknown=0,
        start_state=3,
        end=2,
        root=3,
        keys=np.full(2, -1, np.int64),
        values=np.zeros(2, np.int32),
        log_prob=zero,
        backoff=np.zeros(4),
        shorter=root,
        state=root,
        most=zero,
    )


def build(model: NgramModel) -> Automaton:
    """Convert an n-gram model to an automaton."""
    V = len(model.words)
    sizes = [len(level.keys) for level in model.levels]
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    root = int(offset[-1])
    shorter = np.full(root + 1, root, np.int64)
    log_prob, backoff = (
        np.concatenate([getattr(level, name) for level in model.levels]) * LN10
        for name in ("log10", "backoff")
    )
    backoff = np.append(backoff, 0.0)
    extended = np.zeros(root + 1, bool)
    keys = []
    for n in range(2, model.order + 1):
        level = model.levels[n - 1]
        parent, word = offset[n - 2] + level.keys // V, level.keys % V
        nodes = np.arange(offset[n - 1], offset[n])
        extended[parent] = True
        shorter[nodes] = child(model, offset, shorter, shorter[parent], word)
        keys.append(parent * V + word)
    extended |= backoff != 0
    extended[root] = True
    state = np.arange(root + 1)
    for n in range(1, model.order + 1):
        nodes = np.arange(offset[n - 1], offset[n])
        state[nodes] = np.where(extended[nodes] & (n < model.order), nodes, state[shorter[nodes]])
    size = 1 << int(np.ceil(np.log2(max(2, 2 * sum(map(len, keys))))))
    table, content = np.full(size, -1, np.int64), np.zeros(size, np.int32)
    for level_keys, first in zip(keys, offset[1:].tolist(), strict=False):
        for at in range(0, len(level_keys), BLOCK):
            insert_keys(table, content, level_keys[at : at + BLOCK], first + at)
    most = np.full(V, -np.inf)
    last = np.concatenate([np.arange(V), *(level.keys % V for level in model.levels[1:])])
    np.maximum.at(most, last, log_prob)
    if backoff.max() > 0:
        most[:] = 0.0  # with a back-off weight above 1, the stored probabilities are no bound
    start = model.ids[BOS]
    return Automaton(
        words=V, unknown=model.unknown, start_state=int(state[start]), end=model.ids[EOS], root=root,
        keys=table, values=content, log_prob=log_prob, backoff=backoff,
        shorter=shorter.astype(np.int32), state=state.astype(np.int32), most=most,
    )  # fmt: skip


def child(model: NgramModel, offset: Int64s, shorter: Int64s, context: Int64s, word: Int64s) -> Int64s:
    """The node of each context + word, or of the longest suffix that has a node: (M,), (M,) -> (M,)"""
    V, root = len(model.words), int(offset[-1])
    children = np.full(len(word), -1, np.int64)
    context = context.copy()
    while (open_ := np.flatnonzero(children < 0)).size:
        here = context[open_]
        at_root = here == root
        children[open_[at_root]] = word[open_[at_root]]
        level = np.searchsorted(offset, here, "right")  # of the context: 1 for a word
        for n in np.unique(level[~at_root]):
            rows = open_[(level == n) & ~at_root]
            nodes = (
                model.find(n + 1, (context[rows] - offset[n - 1]) * V + word[rows])
                if n < model.order
                else np.full(len(rows), -1, np.int64)
            )
            children[rows] = np.where(nodes >= 0, nodes + offset[n], -1)
        context[open_] = shorter[here]
    return children


@njit
def step(lm: Automaton, state: int, word: int) -> tuple[float, int]:
    """Natural log p of a word in a state; also returns the state after it."""
    total = 0.0
    mask = len(lm.keys) - 1
    while state != lm.root:
        key = np.int64(state) * lm.words + word
        slot = ((key * MIX) >> np.int64(20)) & mask
        entry = lm.keys[slot]
        while entry != key and entry != -1:
            slot = (slot + 1) & mask
            entry = lm.keys[slot]
        if entry == key:
            node = lm.values[slot]
            return total + lm.log_prob[node], lm.state[node]
        total += lm.backoff[state]
        state = lm.shorter[state]
    return total + lm.log_prob[word], lm.state[word]


def phrase_scores(lm: Automaton, ids: Int32s, starts: Int64s) -> tuple[Floats, Floats]:
    """Natural log p of N phrases without context; also returns upper bounds for any context: (N,), (N,)

    The words of phrase i are ids[starts[i] : starts[i + 1]]."""
    parts = [
        scores_of(lm, ids, starts[at : at + BLOCK + 1]) for at in range(0, max(1, len(starts) - 1), BLOCK)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


@njit
def scores_of(lm: Automaton, ids: Int32s, starts: Int64s) -> tuple[Floats, Floats]:
    """Natural log p and upper bounds of one block of phrases; see `phrase_scores`."""
    count = len(starts) - 1
    score, bound = np.zeros(count), np.zeros(count)
    for i in range(count):
        state = lm.root
        for position in range(starts[i], starts[i + 1]):
            gain, state = step(lm, state, ids[position])
            score[i] += gain
            bound[i] += lm.most[ids[position]]
    return score, bound


@njit
def sentence_score(lm: Automaton, ids: Int32s, complete: bool) -> float:
    """Natural log p of a sentence that starts with <s>. `complete`: include </s>."""
    state, total = lm.start_state, 0.0
    for i in range(len(ids)):
        gain, state = step(lm, state, ids[i])
        total += gain
    if complete:
        gain, state = step(lm, state, lm.end)
        total += gain
    return total
