"""Word alignment with fast_align's model: IBM model 2 with a prior for positions near the diagonal, trained
by EM with a Dirichlet prior on the lexical probabilities (Dyer et al. 2013).
smt_bridge/extraction/kept_model.py aligns new text with a model that was trained here.

Gives the links of fast_align with options `-d -o -v`: each target word is aligned to at most one source word.

EM goes through the text by target word: through all tokens of the first word, then of the second. So the
counts of all pairs of words, 4 bytes each, are read and written in order, and the probabilities of one target
word stay in the processor's cache. Blocks of target words are computed by several threads.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.compute import resources
from nmt.compute.compiled import njit, njit_ieee
from nmt.io.progress import Progress
from smt_bridge.extraction.packed_corpus import PackedLinks, PackedText

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Logs = npt.NDArray[np.float32]
Positions = npt.NDArray[np.uint16]

ITERATIONS = 4  # of EM; fast_align counts the final alignment of all pairs as a fifth
NULL = 0.08  # probability that a target word is aligned to NULL
PRIOR = 0.01  # concentration of the Dirichlet prior on lexical probabilities
TENSION, LOWEST_TENSION, HIGHEST_TENSION = 4.0, 0.1, 14.0  # how closely links follow the diagonal
TENSION_STEPS, TENSION_RATE = 8, 20.0  # gradient ascent after each iteration but the first
EMPTY = -1
BLOCKS = 32  # of target words; as many on all machines, so that sums are the same


class PackedCorpus(NamedTuple):
    """A parallel text, and the tokens of each target word."""

    sources: Ids
    source_offsets: Offsets
    targets: Ids
    target_offsets: Offsets
    tokens: Ids  # positions in `targets`, by word: those of word t are tokens[first[t] : first[t + 1]]
    first: Offsets
    pairs: Ids  # the sentence pair of each position in `targets`


class LexicalTable(NamedTuple):
    """Probabilities of pairs of words after an iteration of EM."""

    starts: Offsets  # of each target word's entries, one for each source word that occurs with it
    logs: Logs  # of count + PRIOR, in single precision as in sil-thot, so that the links are the same
    totals: Floats  # digamma of the sum over a source word's entries
    null: Floats  # probability of each target word without a source word
    estimated: bool  # False: all probabilities are 1


OnTrained = Callable[[PackedCorpus, LexicalTable, float], None]


def best_links(sources: PackedText, targets: PackedText, on_trained: OnTrained | None = None) -> PackedLinks:
    """Train on sentence pairs without empty sides and align them: the best source word of each target word,
    if it is more likely than none. Computes with as many threads as there are processors. `on_trained`:
    called at the end with the text, the trained table and the tension."""
    words = len(targets.words)
    corpus = make_corpus(sources, targets)
    blocks = np.searchsorted(corpus.first, np.linspace(0, len(targets.ids), BLOCKS + 1)).tolist()
    ranges = [(low, high) for low, high in pairwise(blocks) if low < high]
    best = np.full(len(targets.ids), EMPTY, np.int32)
    lengths = np.stack([targets.lengths, sources.lengths], axis=1)
    shapes, occurrences = np.unique(lengths, axis=0, return_counts=True)
    tension = TENSION
    with (
        ThreadPoolExecutor(resources.processors()) as pool,
        Progress((ITERATIONS + 1) * len(ranges), "parts", title="aligning") as progress,
    ):
        counts = [pool.submit(count_partners, corpus, len(sources.words), *block) for block in ranges]
        starts = np.append(0, np.cumsum(np.concatenate([count.result() for count in counts])))
        logs = np.zeros(starts[-1], np.float32)
        lexicon = LexicalTable(starts, logs, np.zeros(len(sources.words)), np.ones(words), False)
        for iteration in range(ITERATIONS + 1):
            final = iteration == ITERATIONS
            work = [pool.submit(expect, corpus, lexicon, tension, *block, best, final) for block in ranges]
            totals, null, feature = np.zeros(len(sources.words)), [], 0.0
            for task in work:
                block_totals, block_null, block_feature = task.result()
                totals, feature = totals + block_totals, feature + block_feature
                null.append(block_null)
                progress.add(1)
            if not final:
                if iteration:
                    mean = feature / len(targets.ids)
                    tension = update_tension(shapes, occurrences, mean, tension, len(targets.ids))
                lexicon = LexicalTable(starts, logs, *maximize(totals, np.concatenate(null)), True)
    if on_trained:
        on_trained(corpus, lexicon, tension)
    return make_links(best, targets.offsets)


def make_corpus(sources: PackedText, targets: PackedText) -> PackedCorpus:
    """Pack a parallel text, and sort the positions of the target side by word."""
    first = np.append(0, np.cumsum(np.bincount(targets.ids, minlength=len(targets.words))))
    pairs = np.repeat(np.arange(len(targets), dtype=np.int32), targets.lengths)
    tokens = np.empty(len(targets.ids), np.int32)
    fill_tokens(targets.ids, first[:-1].copy(), tokens)
    return PackedCorpus(sources.ids, sources.offsets, targets.ids, targets.offsets, tokens, first, pairs)


def make_links(best: Ids, target_offsets: Offsets) -> PackedLinks:
    """Links from `best` (N,): the index of each target token's source word in its sentence, or EMPTY."""
    room = np.count_nonzero(best != EMPTY)
    source, target = np.empty(room, np.uint16), np.empty(room, np.uint16)
    offsets = np.zeros(len(target_offsets), np.int64)
    fill_links(best, target_offsets, source, target, offsets)
    return PackedLinks(source, target, offsets)


@njit
def fill_links(
    best: Ids, target_offsets: Offsets, source: Positions, target: Positions, offsets: Offsets
) -> None:
    """Fill `source` and `target` (L,) with the links of all pairs, and `offsets` (pairs + 1,) with their
    bounds. `best`: see `make_links`."""
    size = 0
    for pair in range(len(target_offsets) - 1):
        for position in range(target_offsets[pair], target_offsets[pair + 1]):
            if best[position] != EMPTY:
                source[size], target[size] = best[position], position - target_offsets[pair]
                size += 1
        offsets[pair + 1] = size


@njit
def fill_tokens(targets: Ids, following: Offsets, tokens: Ids) -> None:
    """Sort positions by their word. `following`: where the next token of each word belongs; is changed."""
    for position in range(len(targets)):
        word = targets[position]
        tokens[following[word]] = position
        following[word] += 1


@njit
def count_partners(corpus: PackedCorpus, rows: int, low: int, high: int) -> Offsets:
    """Count the distinct source words that occur in a sentence pair with each target word from `low` to
    `high` - 1: (high - low,). `rows`: number of source words."""
    counts = np.zeros(high - low, np.int64)
    seen = np.full(rows, -1, np.int32)
    for word in range(low, high):
        for index in range(corpus.first[word], corpus.first[word + 1]):
            pair = corpus.pairs[corpus.tokens[index]]
            for position in range(corpus.source_offsets[pair], corpus.source_offsets[pair + 1]):
                if seen[corpus.sources[position]] != word:
                    seen[corpus.sources[position]] = word
                    counts[word - low] += 1
    return counts


# ---- positions ---------------------------------------------------------------------------------------------
# A link between target position j (of m) and source position i (of n), both counted from 1, has the feature
# -|i / n - j / m|. Its prior probability is exp(tension * feature) / Z(j).


@njit_ieee
def diagonal(j: int, i: int, m: int, n: int) -> float:
    """The feature of a link: its distance from the diagonal, negated."""
    return -abs(i / n - j / m)


@njit_ieee
def normalizer(j: int, m: int, n: int, tension: float) -> float:
    """Z(j) in closed form: the sums of two geometric series, above and below the diagonal."""
    below = int(j * float(n) / m)
    above = n - below
    ratio = math.exp(-tension / n)
    total = 0.0
    if below:
        first = math.exp(diagonal(j, below, m, n) * tension)
        total += first * (1.0 - math.pow(ratio, below)) / (1.0 - ratio)
    if above:
        # `expected_diagonal` also asks for positions past the end, where `above` is negative. fast_align's
        # variable is unsigned there and becomes huge, so that the series is summed in full.
        power = math.pow(ratio, above) if above > 0 else 0.0
        total += math.exp(diagonal(j, below + 1, m, n) * tension) * (1.0 - power) / (1.0 - ratio)
    return total


@njit_ieee
def series(feature: float, tension: float, ratio: float, step: float, terms: int) -> float:
    """The sum of (feature + k * step) * exp(tension * feature) * ratio^k over k < terms."""
    first = math.exp(feature * tension)
    last = first * math.pow(ratio, terms)
    end = step * (terms - 1) + feature
    return (end * last - feature * first) / (ratio - 1) - step * (last - first * ratio) / (
        (ratio - 1) * (ratio - 1)
    )


@njit_ieee
def expected_diagonal(j: int, m: int, n: int, tension: float) -> float:
    """The expected feature of target position j under the position prior. As in fast_align, Z gets the
    lengths in reverse order."""
    below = int(j * float(n) / m)
    ratio = math.exp(-tension / n)
    total = 0.0
    if n - below:
        total += series(diagonal(j, below + 1, m, n), tension, ratio, -1.0 / n, n - below)
    if below:
        total += series(diagonal(j, below, m, n), tension, ratio, -1.0 / n, below)
    return total / normalizer(j, n, m, tension)


@njit_ieee
def update_tension(
    shapes: Offsets, occurrences: Offsets, feature: float, tension: float, words: int
) -> float:
    """Adjust the tension by gradient ascent, so that the expected feature approaches `feature`, its mean over
    the posterior links; returns the new tension.

    `shapes` (K, 2): the distinct pairs (target length, source length); `occurrences` (K,): number of sentence
    pairs of each shape; `words`: number of target words.
    """
    for _ in range(TENSION_STEPS):
        expected = 0.0
        for shape in range(len(shapes)):
            m, n = shapes[shape]
            for j in range(1, m + 1):
                expected += occurrences[shape] * expected_diagonal(j, m, n, tension)
        tension += (feature - expected / words) * TENSION_RATE
        tension = min(max(tension, LOWEST_TENSION), HIGHEST_TENSION)
    return tension


# ---- EM ----------------------------------------------------------------------------------------------------


@njit_ieee
def expect(
    corpus: PackedCorpus, lexicon: LexicalTable, tension: float, low: int, high: int, best: Ids, final: bool
) -> tuple[Floats, Floats, float]:
    """E-step: replace the logs of the target words from `low` to `high` - 1 by those of their posterior
    counts. With `final`, write the best source word of each of their tokens into `best` instead, as its index
    in the sentence.

    Returns the sum of counts and priors of each source word, the counts of target words without a source
    word, and the sum of the features of all links, weighted by their posteriors; all 0 with `final`.
    """
    totals, null_counts = np.zeros(len(lexicon.totals)), np.zeros(high - low)
    longest = np.max(np.diff(corpus.source_offsets))
    slots, weights = np.empty(longest, np.int64), np.empty(longest)
    most = np.max(np.diff(lexicon.starts[low : high + 1]))
    # The slot of each source word; each slot's source word, and its probability and count for a target word.
    slot_of = np.full(len(totals), EMPTY, np.int32)
    members, probabilities, counts = np.empty(most, np.int32), np.empty(most), np.empty(most)
    features = 0.0
    for word in range(low, high):
        start, used = lexicon.starts[word], 0
        null = lexicon.null[word] * NULL
        for index in range(corpus.first[word], corpus.first[word + 1]):
            position = corpus.tokens[index]
            pair = corpus.pairs[position]
            source_start, first = corpus.source_offsets[pair], corpus.target_offsets[pair]
            n, m = corpus.source_offsets[pair + 1] - source_start, corpus.target_offsets[pair + 1] - first
            j = position - first
            total = null
            z = normalizer(j + 1, m, n, tension) / (1.0 - NULL)
            for i in range(n):
                source = corpus.sources[source_start + i]
                slot = slot_of[source]
                if slot == EMPTY:
                    slot = used
                    used += 1
                    slot_of[source], members[slot], counts[slot] = slot, source, 0.0
                    probabilities[slot] = 1.0
                    if lexicon.estimated:
                        log_count = lexicon.logs[start + slot]
                        probabilities[slot] = probability(log_count, lexicon.totals[source])
                weight = probabilities[slot] * (math.exp(diagonal(j + 1, i + 1, m, n) * tension) / z)
                slots[i], weights[i] = slot, weight
                total += weight
            if final:
                highest = null
                for i in range(n):
                    if weights[i] > highest:
                        highest, best[position] = weights[i], i
                continue
            null_counts[word - low] += null / total
            for i in range(n):
                weight = weights[i] / total
                counts[slots[i]] += weight
                features += diagonal(j, i + 1, m, n) * weight  # j from 0, as in fast_align
        for slot in range(used):
            slot_of[members[slot]] = EMPTY
            if not final:
                totals[members[slot]] += counts[slot] + PRIOR
                lexicon.logs[start + slot] = math.log(counts[slot] + PRIOR)
    return totals, null_counts, features


@njit_ieee
def maximize(totals: Floats, null_counts: Floats) -> tuple[Floats, Floats]:
    """M-step (variational Bayes): digammas of source words' totals, and p of target words without one."""
    digammas, null = np.empty(len(totals)), np.empty(len(null_counts))
    for row in range(len(totals)):
        digammas[row] = digamma(round_logarithm(totals[row]))
    total = 0.0
    for word in range(len(null_counts)):
        total += null_counts[word] + PRIOR
    total = digamma(round_logarithm(total))
    for word in range(len(null_counts)):
        null[word] = math.exp(digamma(round_logarithm(null_counts[word] + PRIOR)) - total)
    return digammas, null


@njit_ieee
def probability(log_count: float, total: float) -> float:
    """p(target word | source word) by variational Bayes. `log_count`: natural logarithm of the expected count
    and prior of the pair; `total`: digamma of the sum of these over the pairs of the source word."""
    return math.exp(digamma(math.exp(log_count)) - total)


@njit_ieee
def round_logarithm(x: float) -> float:
    """Round x so that its logarithm has single precision. sil-thot stores logarithms in that way, and the
    links are to be the same."""
    return math.exp(float(np.float32(math.log(x))))


@njit_ieee
def digamma(x: float) -> float:
    """The derivative of log gamma, by its asymptotic series around x - 1/2."""
    result = 0.0
    while x < 7:
        result -= 1.0 / x
        x += 1.0
    x -= 0.5
    square = (1.0 / x) * (1.0 / x)
    fourth = square * square
    result += math.log(x) + (1.0 / 24.0) * square - (7.0 / 960.0) * fourth
    return result + (31.0 / 8064.0) * fourth * square - (127.0 / 30720.0) * fourth * fourth
