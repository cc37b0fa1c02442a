"""Word alignment with fast_align's model: IBM model 2 with a prior for positions near the diagonal, trained
by EM with a Dirichlet prior on the lexical probabilities (Dyer et al. 2013).

Gives the links of fast_align with options `-d -o -v`: each target word is aligned to at most one source word.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nmt.io.progress import Progress
from smt_bridge.decoder.compiled import njit, njit_ieee

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Corpus = tuple[Ids, Offsets, Ids, Offsets]  # word ids and sentence offsets of the source, then of the target
# Lexical translation tables. For each source word: the first of its slots. For each slot: its target word, or
# -1 if free; its probability; its count. For each target word: probability and count of a link to NULL.
Tables = tuple[Offsets, Ids, Floats, Floats, Floats, Floats]

ITERATIONS = 4  # of EM; fast_align counts the final alignment of all pairs as a fifth
NULL = 0.08  # probability that a target word is aligned to NULL
PRIOR = 0.01  # concentration of the Dirichlet prior on lexical probabilities
TENSION, LOWEST_TENSION, HIGHEST_TENSION = 4.0, 0.1, 14.0  # how closely links follow the diagonal
TENSION_STEPS, TENSION_RATE = 8, 20.0  # gradient ascent after each iteration but the first
EMPTY = -1


def number_words(texts: Sequence[Sequence[str]]) -> tuple[Ids, Offsets, int]:
    """Map the words of a text to ids. Returns the ids of all sentences, concatenated; the offset at which
    each sentence starts, followed by the number of words; and the size of the vocabulary."""
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(word, len(numbers)) for words in texts for word in words]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(words) for words in texts], out=offsets[1:])
    return np.array(ids, np.int32), offsets, len(numbers)


def best_links(sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> list[list[int]]:
    """Train the model on sentence pairs, none of which may have an empty side, and align them. Returns, for
    each pair, the index of the source word of each target word, or -1 for NULL."""
    source_ids, source_offsets, rows = number_words(sources)
    target_ids, target_offsets, columns = number_words(targets)
    corpus: Corpus = source_ids, source_offsets, target_ids, target_offsets
    starts, words = pair_table(*corpus, rows, columns)
    lexicon, null = ((np.ones(size), np.zeros(size)) for size in (len(words), columns))
    tables: Tables = starts, words, *lexicon, *null
    best = np.full(len(target_ids), EMPTY, np.int32)
    lengths = np.stack([np.diff(target_offsets), np.diff(source_offsets)], axis=1)
    shapes, occurrences = np.unique(lengths, axis=0, return_counts=True)
    tension = TENSION
    with Progress(ITERATIONS, "iterations", title="aligning") as progress:
        for iteration in progress.over(range(ITERATIONS)):
            feature = expect(corpus, tables, tension, best, False) / len(target_ids)
            if iteration:
                tension = update_tension(shapes, occurrences, feature, tension, len(target_ids))
            maximize(tables)
    expect(corpus, tables, tension, best, True)
    flat, offsets = best.tolist(), target_offsets.tolist()
    return [flat[start:end] for start, end in pairwise(offsets)]


# ---- pairs of words ----------------------------------------------------------------------------------------
# Each source word has a hash table of its own, with linear probing, for the probabilities and counts of the
# target words that occur with it. Source word e has slots starts[e] to starts[e + 1]; their number is a power
# of two.


def pair_table(
    sources: Ids, source_offsets: Offsets, targets: Ids, target_offsets: Offsets, rows: int, columns: int
) -> tuple[Offsets, Ids]:
    """Lay out the hash tables: returns the first slot of each source word, and the target word of each slot,
    or -1 if it is free."""
    order = np.argsort(sources, kind="stable")
    sentences = np.repeat(np.arange(len(source_offsets) - 1), np.diff(source_offsets))[order]
    tokens = np.searchsorted(sources[order], np.arange(rows + 1))
    different = different_words(tokens, sentences, targets, target_offsets, columns)
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(2 ** np.ceil(np.log2(1.5 * different)).astype(np.int64), out=starts[1:])
    words = np.full(starts[-1], EMPTY, np.int32)
    insert_words(tokens, sentences, targets, target_offsets, starts, words)
    return starts, words


@njit
def different_words(
    tokens: Offsets, sentences: Offsets, targets: Ids, target_offsets: Offsets, columns: int
) -> Offsets:
    """Count the distinct target words that occur in a sentence with each source word."""
    counts = np.zeros(len(tokens) - 1, np.int64)
    seen = np.full(columns, -1, np.int64)
    for row in range(len(counts)):
        for token in range(tokens[row], tokens[row + 1]):
            sentence = sentences[token]
            for position in range(target_offsets[sentence], target_offsets[sentence + 1]):
                if seen[targets[position]] != row:
                    seen[targets[position]] = row
                    counts[row] += 1
    return counts


@njit
def insert_words(
    tokens: Offsets, sentences: Offsets, targets: Ids, target_offsets: Offsets, starts: Offsets, words: Ids
) -> None:
    """Fill the hash tables with the target words that occur with each source word."""
    for row in range(len(tokens) - 1):
        for token in range(tokens[row], tokens[row + 1]):
            sentence = sentences[token]
            for position in range(target_offsets[sentence], target_offsets[sentence + 1]):
                slot = find_slot(starts[row], starts[row + 1], words, targets[position])
                words[slot] = targets[position]


@njit
def find_slot(start: int, end: int, words: Ids, word: int) -> int:
    """Find the slot of a target word in a hash table, or the free slot where it belongs."""
    mask = end - start - 1
    slot = (word * 2654435769 >> 7) & mask
    while words[start + slot] != word and words[start + slot] != EMPTY:
        slot = (slot + 1) & mask
    return start + slot


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
    the posterior links.

    shapes: distinct (target length, source length), (shapes, 2); occurrences: number of pairs of each shape;
    words: number of target words.
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
def expect(corpus: Corpus, tables: Tables, tension: float, best: Ids, final: bool) -> float:
    """E-step: add the posterior counts of all links, and return the sum of their features. With `final`,
    write the best source word of each target word into `best` instead."""
    sources, source_offsets, targets, target_offsets = corpus
    starts, words, probabilities, counts, null_probabilities, null_counts = tables
    longest = np.max(np.diff(source_offsets))
    slots, weights = np.empty(longest, np.int64), np.empty(longest)
    features = 0.0
    for pair in range(len(source_offsets) - 1):
        source_first, n = source_offsets[pair], source_offsets[pair + 1] - source_offsets[pair]
        target_first, m = target_offsets[pair], target_offsets[pair + 1] - target_offsets[pair]
        for j in range(m):
            word = targets[target_first + j]
            null = null_probabilities[word] * NULL
            total = null
            z = normalizer(j + 1, m, n, tension) / (1.0 - NULL)
            for i in range(n):
                row = sources[source_first + i]
                slot = find_slot(starts[row], starts[row + 1], words, word)
                weight = probabilities[slot] * (math.exp(diagonal(j + 1, i + 1, m, n) * tension) / z)
                slots[i], weights[i] = slot, weight
                total += weight
            if final:
                highest = null
                for i in range(n):
                    if weights[i] > highest:
                        highest, best[target_first + j] = weights[i], i
                continue
            null_counts[word] += null / total
            for i in range(n):
                weight = weights[i] / total
                counts[slots[i]] += weight
                features += diagonal(j, i + 1, m, n) * weight  # j from 0, as in fast_align
    return features


@njit_ieee
def maximize(tables: Tables) -> None:
    """M-step: turn counts into probabilities (variational Bayes), and reset the counts."""
    starts, words, probabilities, counts, null_probabilities, null_counts = tables
    for row in range(len(starts) - 1):
        total = 0.0
        for slot in range(starts[row], starts[row + 1]):
            if words[slot] != EMPTY:
                total += counts[slot] + PRIOR
        total = digamma(round_logarithm(total))
        for slot in range(starts[row], starts[row + 1]):
            if words[slot] != EMPTY:
                probabilities[slot] = math.exp(digamma(round_logarithm(counts[slot] + PRIOR)) - total)
                counts[slot] = 0.0
    total = 0.0
    for word in range(len(null_counts)):
        total += null_counts[word] + PRIOR
    total = digamma(round_logarithm(total))
    for word in range(len(null_counts)):
        null_probabilities[word] = math.exp(digamma(round_logarithm(null_counts[word] + PRIOR)) - total)
        null_counts[word] = 0.0


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
