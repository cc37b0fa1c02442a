"""The arrays of the compiled search: the options of a sentence, its settings, and the working memory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Records = np.recarray[tuple[int], np.dtype[np.void]]  # the fields of a row are its attributes

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


def record(**fields: type[np.generic]) -> np.dtype[np.void]:
    """A type of records, whose fields lie as a C compiler would put them."""
    return np.dtype(list(fields.items()), align=True)


HYPOTHESIS = record(
    score=np.float64,  # weighted, of the phrases so far
    total=np.float64,  # score plus future cost
    key=np.int64,  # hash of the stateful features' recombination keys
    coverage=np.int32,
    first=np.int32,  # source words of the last phrase
    last=np.int32,
    context=np.int32,  # number of its context
    option=np.int32,
    parent=np.int32,
    regions=np.int32,  # number of its uppermost region; 0 if none are kept
    edge=np.int32,  # first of the edges that lead to it
    following=np.int32,  # next hypothesis in the stack
    listed=np.int32,  # 1 if the hypothesis is in its stack
)
EDGE = record(score=np.float64, parent=np.int32, option=np.int32, next=np.int32)
COVERAGE = record(
    mask=np.uint64,
    future=np.float64,
    gap=np.int32,  # first untranslated word
    covered=np.int32,  # number of translated words
    first_move=np.int32,
    moves=np.int32,
)
MOVE = record(first=np.int32, last=np.int32, coverage=np.int32)
STACK = record(
    worst=np.float64,  # hypotheses with a lower total are pruned
    best=np.float64,
    candidate_worst=np.float64,  # candidates with a lower total are dropped
    head=np.int32,
    members=np.int32,
    noted=np.int32,  # number of candidates in `candidate_best`
)
CANDIDATE = record(
    score=np.float64, total=np.float64, stack=np.int32, coverage=np.int32, parent=np.int32, option=np.int32,
    first=np.int32, last=np.int32, context=np.int32, regions=np.int32,
)  # fmt: skip
BLOCK = record(key=np.int64, start=np.int32)  # key: context and span
LM_SCORE = record(
    score=np.float64,  # weighted sum of the language models
    context=np.int32,  # number of the context after the option; -1: not computed yet
)
REGION = record(first=np.int32, last=np.int32, below=np.int32)  # below: number of the region below it


class SearchState(NamedTuple):
    """Working memory of a search: H hypotheses, E edges, C coverages, M moves, Q candidates, of each stack A
    that stateful features score; K contexts, B blocks of P language model scores, G regions; L language
    models, F stateful features. Arrays of records instead of one for each field: numba compiles a function
    in a time that grows with the number of arrays that it is given."""

    counters: Int64s  # (11,) see HYPOTHESES and so on
    hypotheses: Records  # (H,)
    memory: Int64s  # (H, F) states of the stateful features
    table: Int32s  # hash table of hypotheses
    edges: Records  # (E,) ways to reach a hypothesis
    coverages: Records  # (C,)
    coverage_table: Int32s
    moves: Records  # (M,) spans that may be translated next after a coverage
    stacks: Records  # (n + 1,)
    candidates: Records  # (Q,)
    candidate_best: Floats  # (n + 1, A) the best totals of a stack so far, as a heap: the worst one is first
    states: Int32s  # (K, L) contexts: the language model states after some words
    context_table: Int32s
    blocks: Records  # (B,) of language model scores, for the options of a span after a context
    block_table: Int32s
    lm_scores: Records  # (P,)
    lm_alone: Floats  # (P,) of the first language model, not weighted; empty unless candidates wait
    regions: Records  # (G,) source spans, each on top of another one; see orientations.py
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

    def records(size: int, kind: np.dtype[np.void]) -> Records:
        return np.zeros(size, kind).view(np.recarray)

    H, E, C, M, Q, n, K, P = sizes[:8]
    B, G = 1 + P // 4, sizes.regions
    return SearchState(
        counters=np.zeros(11, np.int64),
        hypotheses=records(H, HYPOTHESIS), memory=np.zeros((H, sizes.features), np.int64),
        table=hash_table(H),
        edges=records(E, EDGE),
        coverages=records(C, COVERAGE), coverage_table=hash_table(C),
        moves=records(M, MOVE),
        stacks=records(n + 1, STACK),
        candidates=records(Q, CANDIDATE), candidate_best=np.zeros((n + 1, sizes.scored)),
        states=np.zeros((K, sizes.models), np.int32), context_table=hash_table(K),
        blocks=records(B, BLOCK), block_table=hash_table(B),
        lm_scores=records(P, LM_SCORE), lm_alone=np.zeros(P if Q else 0),
        regions=records(G, REGION), region_table=hash_table(G),
    )  # fmt: skip
