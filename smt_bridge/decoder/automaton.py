"""A back-off n-gram model as an automaton: a state is the longest context that can still matter, a step reads
one word. Its arrays are those of the trie of nmt/ngram/trie.py; state 0 is the empty context.

Where a context has no n-gram with the next word, the step backs off to the next shorter context and adds its
back-off weight. As in KenLM, a state keeps only the context that can affect later words, so that more
hypotheses recombine.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit, njit_forced_inline
from nmt.ngram import trie_build, trie_queries
from nmt.ngram.compiled_queries import MIX
from nmt.ngram.count_models import NgramModel, NgramOrder
from nmt.ngram.text_scorer import BOS, EOS, LN10, UNK
from nmt.ngram.trie import COUNT, FIRST, LINK, WORD, TrieModel, Words64
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s

BLOCK = 1 << 20  # rows per compiled call; signals are handled between calls
MEMO = 1 << 14  # steps that are remembered
T = TypeVar("T", bound=np.generic)


class Automaton(NamedTuple):
    """An n-gram model for the search. Log probabilities are natural."""

    words: int  # V, the size of the vocabulary
    unknown: int  # word id of <unk>
    start_state: int  # state after <s>
    end: int  # word id of </s>
    records: Words64  # arrays of the trie, see nmt/ngram/trie.py
    books: Floats  # code books
    layout: Int64s
    memo: Int64s  # (MEMO, 3) latest results of `step`, which changes it


def build_automaton(model: TrieModel) -> Automaton:
    """Build the automaton of a model. It shares the model's arrays."""
    after_begin = model.trie.state_after(0, np.array([model.begin]))
    return Automaton(
        words=len(model.hashes), unknown=model.unknown, start_state=int(after_begin[0]), end=model.end,
        records=read_only(model.records), books=read_only(model.books), layout=read_only(model.layout),
        memo=np.zeros((MEMO, 3), np.int64),
    )  # fmt: skip


def read_only(array: NDArray[T]) -> NDArray[T]:
    """A read-only view, as mapped arrays are, so that code is compiled for one kind of array."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


class PlainNodes(NamedTuple):
    """An automaton of N n-grams as lists, for plain Python. Node 0 is the empty context, every other node an
    n-gram. Log probabilities are natural."""

    children: dict[int, int]  # state * V + word: the node that they lead to
    log_prob: list[float]  # (N + 1,)
    backoff: list[float]  # (N + 1,) weights
    link: list[int]  # (N + 1,) the node without its first word
    state: list[int]  # (N + 1,) state after the n-gram


def plain_nodes(model: TrieModel) -> PlainNodes:
    """Convert a model to lists for plain Python."""
    trie, V, lengths = model.trie, len(model.hashes), range(model.trie.order)
    children: dict[int, int] = {}
    for n in lengths[:-1]:
        rows = np.arange(int(trie.layout[n, COUNT]))
        low, high = trie.children(n, rows)
        keys = np.repeat(trie.layout[n, FIRST] + rows, high - low) * V + trie.field(n + 1, WORD)
        children.update(zip(keys.tolist(), range(int(trie.layout[n + 1, FIRST]), 1 << 62), strict=False))
    log_prob, backoff = (
        np.concatenate([np.zeros(1), *(LN10 * values(n) for n in lengths)]).tolist()
        for values in (trie.log10, trie.backoff)
    )
    link = np.concatenate([np.zeros(1, np.int64), *(trie.field(n, LINK) for n in lengths)]).tolist()
    state = np.concatenate([np.zeros(1, np.int64), *(trie.state_after(n) for n in lengths)]).tolist()
    return PlainNodes(children, log_prob, backoff, link, state)


def null_model() -> TrieModel:
    """A language model that gives every word log p = 0, for systems without a language model."""
    words = NgramOrder(keys=np.arange(3), log10=np.zeros(3), backoff=np.zeros(3))
    return trie_build.compile_model(NgramModel([UNK, BOS, EOS], [words]))


@njit_forced_inline
def step(lm: Automaton, state: int | np.int64, word: int) -> tuple[float, np.int64]:
    """Natural log p of a word in a state; also returns the state after it. The search needs the same results
    many times, so the latest are kept in lm.memo."""
    # Threads share the memo without a lock: the key is stored combined with the result, so that what two
    # threads have written half each is not taken for a result (Hyatt and Mann 2002).
    key = (np.int64(state) + 1) * lm.words + word
    slot = ((key * MIX) >> np.int64(20)) & np.int64(MEMO - 1)
    bits, after = lm.memo[slot, 1], lm.memo[slot, 2]
    if lm.memo[slot, 0] ^ bits ^ after == key:
        return np.int64(bits).view(np.float64), after
    _, gain, _, after = trie_queries.follow(lm, state, word, None)  # type: ignore[arg-type]  # has its fields
    bits, after = np.float64(gain).view(np.int64), np.int64(after)
    lm.memo[slot, 0], lm.memo[slot, 1], lm.memo[slot, 2] = key ^ bits ^ after, bits, after
    return gain, after


def phrase_scores(lm: Automaton, most: Floats, ids: Int32s, starts: Int64s) -> tuple[Floats, Floats]:
    """Natural log p of N phrases without context; also returns upper bounds for any context: (N,), (N,)

    The words of phrase i are ids[starts[i] : starts[i + 1]]. `most`: upper bound of the natural log p of each
    word of the vocabulary (V,), see TrieModel.most."""
    parts = [
        score_block(lm, most, ids, starts[at : at + BLOCK + 1])
        for at in range(0, max(1, len(starts) - 1), BLOCK)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


@njit
def score_block(lm: Automaton, most: Floats, ids: Int32s, starts: Int64s) -> tuple[Floats, Floats]:
    """Natural log p and upper bounds of one block of phrases; see `phrase_scores`."""
    count = len(starts) - 1
    score, bound = np.zeros(count), np.zeros(count)
    for i in range(count):
        state = np.int64(0)
        for position in range(starts[i], starts[i + 1]):
            gain, state = step(lm, state, ids[position])
            score[i] += gain
            bound[i] += most[ids[position]]
    return score, bound


@njit
def sentence_score(lm: Automaton, ids: Int32s, complete: bool) -> float:
    """Natural log p of the word ids of a sentence after <s>. `complete`: include </s>."""
    state, total = np.int64(lm.start_state), 0.0
    for i in range(len(ids)):
        gain, state = step(lm, state, ids[i])
        total += gain
    if complete:
        gain, state = step(lm, state, lm.end)
        total += gain
    return total
