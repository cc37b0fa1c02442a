"""The arrays of the compiled search: the options of a sentence, its settings, and the working memory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

# Indices of SearchState.counters: rows used of each kind of array; FULL is 1 once an array is too small, WORK
# counts tried options, SCORED the language model scores that are kept.
HYPOTHESES, EDGES, COVERAGES, MOVES, CANDIDATES, FULL, WORK, CONTEXTS, BLOCKS, SCORED, REGIONS = range(11)
SLICE = 2_000_000  # options tried per call, about 0.2 seconds, so that Ctrl-C is handled soon
NOTHING = -1e300  # lower than any score
NO_ZONE = -1  # in ReorderingConstraints.local


class ReorderingConstraints(NamedTuple):
    """The limits that the markup of a sentence of n words sets on reordering: walls, which are not crossed
    before all words on their left are translated, and Z zones, which are finished once entered. All arrays
    are empty if it has neither."""

    wall: NDArray[np.bool_]  # (n,) whether a wall of the whole sentence follows the word
    local: NDArray[np.int32]  # (n,) the only zone in which a wall after the word applies; NO_ZONE if none
    zones: NDArray[np.int32]  # (Z, 2) first and last word

    @property
    def active(self) -> bool:
        return len(self.wall) > 0


def constraints(words: int, walls: Sequence[int], zones: Sequence[tuple[int, int]]) -> ReorderingConstraints:
    """Build the constraint arrays of a sentence of `words` words. `walls`: the word before each wall;
    `zones`: first and last word of each zone. A wall inside a zone applies only to the innermost zone around
    it, unless it follows that zone's last word."""
    if not walls and not zones:
        words = 0
    wall, local = np.zeros(words, np.bool_), np.full(words, NO_ZONE, np.int32)
    wall[list(walls)] = True
    for number, (first, last) in enumerate(zones):
        for word in range(first, last):
            owner = local[word]
            if wall[word] or (owner != NO_ZONE and (zones[owner][0] < first or zones[owner][1] > last)):
                local[word] = number
                wall[word] = False
    return ReorderingConstraints(wall, local, np.array(zones, np.int32).reshape(-1, 2))


class OptionArrays(NamedTuple):
    """The O translation options of a sentence of n words, sorted by span. A span has at most M words."""

    score: Floats  # (O,) weighted: table scores, penalties, and other context-free features
    bound: Floats  # (O,) weighted: upper bound of the language model scores in any context, stand-in included
    backward: Floats  # (O, K) weighted reordering scores relative to what precedes, by orientation
    forward: Floats  # (O, K) weighted reordering scores relative to what follows
    forward_id: Int32s  # (O,) equal for options with equal forward scores
    start: Int32s  # (O,) words of the option: words[start : start + length]
    length: Int32s  # (O,)
    words: Int32s  # (L, W) word ids in each of L language models
    first: Int32s  # (n * M,) first option of the span of k words from word i, at i * M + k - 1
    number: Int32s  # (n * M,) number of options of the span
    future: Floats  # (n, n) best score of each span, ignoring distortion
    constraints: ReorderingConstraints


class OptionGains(NamedTuple):
    """Scores that the options of a sentence add to a hypothesis before language models score them. The first
    index is the orientation."""

    gain: Floats  # (K, O) score and backward reordering score
    most: Floats  # (K, O) greatest gain plus bound of this option and those after it in its span


class SearchParameters(NamedTuple):
    """Search settings for one sentence, and the weights that are not already part of the options' scores."""

    words: int  # n, of the sentence
    longest: int  # M, most words of a span
    stack: int  # most hypotheses of a stack; 0: unlimited
    beam: float  # natural logarithm of the beam threshold
    distortion: int  # distortion limit in words; -1: unlimited
    distortion_weight: float
    early: bool  # whether to use the early distortion cost (Moore and Quirk 2007)
    reordering: bool  # whether the system has a lexical reordering model
    edges: bool  # whether to keep the edges, which n-best lists need
    deferred: bool  # whether candidates wait for stateful features to score them, see compiled_search.py
    stand_in: float  # additional weight of the first language model while candidates wait, see SearchModel
    pops: int  # hypotheses that cube pruning creates for a stack; 0: stack search
    diversity: int  # minimum number of hypotheses that cube pruning creates for each coverage
    score_of: tuple[int, int, int, int] = (0, 1, 2, 2)  # see ReorderingType
    regions: bool = False  # whether phrases are oriented relative to regions, see orientations.py
    hierarchical: bool = False  # whether the next phrase is oriented as in hierarchical models


class SearchState(NamedTuple):
    """Working memory of a search: H hypotheses, E edges, C coverages, M moves, Q candidates, of each stack A
    that stateful features score; K contexts, B blocks of P language model scores, G regions; L language
    models, F stateful features."""

    counters: Int64s  # (11,) see HYPOTHESES and so on
    # hypotheses, (H,)
    coverage: Int32s
    first: Int32s  # source words of the last phrase
    last: Int32s
    option: Int32s
    parent: Int32s
    score: Floats  # weighted, of the phrases so far
    total: Floats  # score plus future cost
    context: Int32s  # number of its context, see below
    regions: Int32s  # number of its uppermost region, see below; 0 if none are kept
    key: Int64s  # hash of the stateful features' recombination keys
    memory: Int64s  # (H, F) states of the stateful features
    following: Int32s  # next hypothesis in the stack
    listed: Int32s  # 1 if the hypothesis is in its stack
    edge: Int32s  # first of the edges that lead to it
    table: Int32s  # hash table of hypotheses
    # edges, (E,): ways to reach a hypothesis
    edge_parent: Int32s
    edge_option: Int32s
    edge_score: Floats
    edge_next: Int32s
    # coverages, (C,)
    gap: Int32s  # first untranslated word
    mask: NDArray[np.uint64]
    covered: Int32s  # number of translated words
    future: Floats
    first_move: Int32s
    moves: Int32s
    coverage_table: Int32s
    # moves, (M,): spans that may be translated next after a coverage
    move_first: Int32s
    move_last: Int32s
    move_coverage: Int32s
    # stacks, (n + 1,)
    head: Int32s
    size: Int32s
    worst: Floats  # hypotheses with a lower total are pruned
    best: Floats
    # candidates, (Q,)
    c_stack: Int32s
    c_coverage: Int32s
    c_parent: Int32s
    c_option: Int32s
    c_first: Int32s
    c_last: Int32s
    c_score: Floats
    c_total: Floats
    c_context: Int32s
    c_regions: Int32s
    # candidates of stacks, (n + 1,)
    c_best: Floats  # (n + 1, A) the best totals of a stack so far, as a heap: the worst one is first
    c_noted: Int32s  # how many of these there are
    c_worst: Floats  # candidates with a lower total are dropped
    # contexts, (K,): the language model states after some words
    states: Int32s  # (K, L)
    context_table: Int32s
    # language model scores, (P,): a block for the options of a span after a context
    block_key: Int64s  # (B,) context and span
    block_start: Int32s  # (B,)
    block_table: Int32s
    lm_score: Floats  # weighted sum of the language models
    lm_alone: Floats  # of the first language model, not weighted; empty unless candidates wait
    lm_context: Int32s  # number of the context after the option; -1: not computed yet
    # regions, (G,): source spans, each on top of another one; see orientations.py
    region_first: Int32s
    region_last: Int32s
    region_below: Int32s  # number of the region below it
    region_table: Int32s


class StateSizes(NamedTuple):
    """Capacities of the arrays of a SearchState: H, E, C, M, Q, n, K, P, L, F, G and A, in this order."""

    hypotheses: int
    edges: int
    coverages: int
    moves: int
    candidates: int
    words: int
    contexts: int
    scores: int  # P
    models: int  # language models
    features: int  # stateful features
    regions: int = 1
    scored: int = 0  # A


def allocate(sizes: StateSizes) -> SearchState:
    def ints(size: int) -> Int32s:
        return np.zeros(size, np.int32)

    def hash_table(size: int) -> Int32s:
        return ints(1 << int(2 * size - 1).bit_length())

    H, E, C, M, Q, n, K, P = sizes[:8]
    B, G = 1 + P // 4, sizes.regions
    return SearchState(
        counters=np.zeros(11, np.int64),
        coverage=ints(H), first=ints(H), last=ints(H), option=ints(H), parent=ints(H),
        score=np.zeros(H), total=np.zeros(H), context=ints(H), regions=ints(H),
        key=np.zeros(H, np.int64), memory=np.zeros((H, sizes.features), np.int64),
        following=ints(H), listed=ints(H), edge=ints(H), table=hash_table(H),
        edge_parent=ints(E), edge_option=ints(E), edge_score=np.zeros(E), edge_next=ints(E),
        gap=ints(C), mask=np.zeros(C, np.uint64), covered=ints(C), future=np.zeros(C),
        first_move=ints(C), moves=ints(C), coverage_table=hash_table(C),
        move_first=ints(M), move_last=ints(M), move_coverage=ints(M),
        head=ints(n + 1), size=ints(n + 1), worst=np.zeros(n + 1), best=np.zeros(n + 1),
        c_stack=ints(Q), c_coverage=ints(Q), c_parent=ints(Q), c_option=ints(Q), c_first=ints(Q),
        c_last=ints(Q), c_score=np.zeros(Q), c_total=np.zeros(Q),
        c_context=ints(Q), c_regions=ints(Q),
        c_best=np.zeros((n + 1, sizes.scored)), c_noted=ints(n + 1), c_worst=np.zeros(n + 1),
        states=np.zeros((K, sizes.models), np.int32), context_table=hash_table(K),
        block_key=np.zeros(B, np.int64), block_start=ints(B), block_table=hash_table(B),
        lm_score=np.zeros(P), lm_alone=np.zeros(P if Q else 0), lm_context=ints(P),
        region_first=ints(G), region_last=ints(G), region_below=ints(G), region_table=hash_table(G),
    )  # fmt: skip
