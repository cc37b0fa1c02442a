"""Distinct phrase pairs of the instances of a bucket, with frequencies, alignments and orientations; their
scores: phi, lexical weights and reordering probabilities; and both as lines of Moses' tables."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.io import files
from nmt.work.arrays import group_starts, sorted_order
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.corpus import CorpusSurvey
from smt_bridge.extraction.instances import UINT, make_packing, unpack
from smt_bridge.extraction.packed_corpus import Int32s, Int64s
from smt_bridge.moses.reordering import ReorderingType

# ---- distinct pairs ----------------------------------------------------------------------------------------
# From instances to distinct phrase pairs: frequencies, the two best alignments, and orientations.
#
# A pair has two best alignments, since Moses scores the directions separately: of equally frequent ones,
# p(target | source) takes the largest by target words, and p(source | target) the largest by source words.


Floats = NDArray[np.float64]


@dataclass
class PhrasePairs:
    """P distinct pairs, in order of their keys."""

    keys: UINT  # (P, K): the packed source phrase, then the packed target phrase
    count: Int64s  # (P,) how often each pair was extracted
    direct: UINT  # (P,) alignment square, for p(target | source)
    inverse: UINT  # (P,) alignment square, for p(source | target)
    # (P, 2 K) counts of K orientations to the preceding text, and of those to the following
    orientations: Int64s


def condense(keys: UINT, square: UINT, codes: NDArray[np.uint8], reordering: ReorderingType) -> UINT:
    """Merge equal instances. `keys` (N, K), `square` (N,) and `codes` (N,), of orientations, are those of
    `Extractor.instances` for a type of reordering model. Returns rows (R, K + `count_columns`), sorted by key
    and square: key, alignment square, count, and counts of orientations as in `PhrasePairs`."""
    size, score_of = reordering.size, np.array(reordering.score_of)
    flags = np.zeros((len(keys), 1 + 2 * size), np.uint64)
    flags[:, 0] = 1
    flags[np.arange(len(keys)), 1 + score_of[codes // 4]] = 1
    flags[np.arange(len(keys)), 1 + size + score_of[codes % 4]] = 1
    return merge_rows(np.hstack([keys, square[:, None], flags]), reordering)


def count_columns(reordering: ReorderingType) -> int:
    """The number of columns of condensed rows after their keys, see `condense`."""
    return 2 + 2 * reordering.size


def row_groups(rows: UINT, columns: int) -> tuple[Int64s, Int64s]:
    """Start and size of each group of sorted rows that agree in the first `columns` columns."""
    starts = group_starts(rows, columns)
    return starts, np.diff(np.append(starts, len(rows)))


def merge_rows(rows: UINT, reordering: ReorderingType) -> UINT:
    """Add up the counts of rows of `condense` with the same key and alignment; the result is sorted."""
    head = rows.shape[1] - count_columns(reordering) + 1
    rows = rows[sorted_order(rows, head)]
    starts = group_starts(rows, head)
    return np.hstack([rows[starts, :head], np.add.reduceat(rows[:, head:], starts, 0)]) if len(rows) else rows


@njit
def larger_alignment(first: np.uint64, second: np.uint64, by_target: bool) -> bool:
    """Whether alignment square `first` is larger than `second`, as Moses compares vectors of sets: word by
    word of one side, by the words linked to each, in order. `by_target`: by target words, else by source
    words."""
    for outer in range(8):
        for inner in range(8):
            shift = np.uint64(8 * inner + outer) if by_target else np.uint64(8 * outer + inner)
            in_first, in_second = (first >> shift) & np.uint64(1), (second >> shift) & np.uint64(1)
            if in_first == in_second:
                continue
            # The first word that is in one set only: this set is larger if the other one ends here, else
            # smaller.
            lacking = second if in_first else first
            ends = True
            for rest in range(inner + 1, 8):
                bit = np.uint64(8 * rest + outer) if by_target else np.uint64(8 * outer + rest)
                if (lacking >> bit) & np.uint64(1):
                    ends = False
            return bool(in_first) == ends
    return False


@njit
def most_frequent(starts: Int64s, square: UINT, count: Int64s, by_target: bool) -> UINT:
    """The most frequent alignment square of each of G groups of rows: (G,). Ties are broken by
    `larger_alignment`. `starts` (G,): the first row of each group; `square`, `count` (R,): of each row."""
    best = np.empty(len(starts), np.uint64)
    for group in range(len(starts)):
        end = starts[group + 1] if group + 1 < len(starts) else len(square)
        chosen = starts[group]
        for row in range(starts[group] + 1, end):
            if count[row] > count[chosen] or (
                count[row] == count[chosen] and larger_alignment(square[row], square[chosen], by_target)
            ):
                chosen = row
        best[group] = square[chosen]
    return best


def distinct_pairs(rows: UINT, reordering: ReorderingType) -> PhrasePairs:
    """Merge condensed rows, see `condense`, into distinct pairs."""
    rows = merge_rows(rows, reordering)
    width = rows.shape[1] - count_columns(reordering)
    starts = group_starts(rows, width)
    sums = np.add.reduceat(rows[:, width + 1 :], starts, 0).astype(np.int64)
    square, count = np.ascontiguousarray(rows[:, width]), rows[:, width + 1].astype(np.int64)
    return PhrasePairs(
        keys=rows[starts, :width],
        count=sums[:, 0],
        direct=most_frequent(starts, square, count, True),
        inverse=most_frequent(starts, square, count, False),
        orientations=sums[:, 1:],
    )


class WordTable:
    """Lexical translation: counts of linked word pairs, with NULL (0) for words without a link. Probabilities
    have 7 decimals, as Moses writes them, but are at least 1e-7: Moses rounds rarer ones to 0, whose log
    it floors at -100, so that phrase pairs with such a link are hardly ever used.

    The arrays (L,) are sorted by key, which is source word id * `targets` + target word id; `targets` is the
    size of the target vocabulary.
    """

    DECIMALS = 7

    def __init__(self, targets: int) -> None:
        self.targets = targets
        self.keys = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)
        self.pending: list[tuple[Int64s, Int64s]] = []
        self.pending_size = 0

    def add(self, source: Int64s, target: Int64s) -> None:
        """Count word pairs, given by their ids: (L,), (L,)"""
        self.join(*np.unique(source * self.targets + target, return_counts=True))

    def join(self, keys: Int64s, counts: Int64s) -> None:
        """Add the keys and counts, (L,) each, of another table with the same vocabularies."""
        self.pending.append((keys, counts))
        self.pending_size += len(keys)
        if self.pending_size > max(1 << 20, len(self.keys)):
            self.merge_pending()

    def merge_pending(self) -> None:
        """Merge the pairs added since the last merge into the counts."""
        if self.pending:
            keys, counts = (
                np.concatenate(column) for column in zip((self.keys, self.counts), *self.pending, strict=True)
            )
            self.keys, positions = np.unique(keys, return_inverse=True)
            self.counts = np.bincount(positions, counts).astype(np.int64)
            self.pending, self.pending_size = [], 0

    def finish(self) -> None:
        """Merge all pairs, and set the probabilities `direct` and `inverse` (L,) of each."""
        self.merge_pending()
        source, target = self.keys // self.targets, self.keys % self.targets
        of_source, of_target = np.bincount(source, self.counts), np.bincount(target, self.counts)
        # p(target word | source word), and the reverse
        self.direct, self.inverse = (
            np.maximum(np.round(self.counts / totals, self.DECIMALS), 10.0**-self.DECIMALS)
            for totals in (of_source[source], of_target[target])
        )


@njit
def lexical_weights(
    keys: Int64s, probability: Floats, targets: int, source: Int32s, target: Int32s, square: UINT,
    by_target: bool,
) -> Floats:  # fmt: skip
    """Lexical weights of P phrase pairs, (P,), from the word ids of both sides, (P, longest + 1) padded with
    0, and the alignment squares (P,).

    A weight is the product, over the words of one side, of the mean probability given the words that each is
    linked to, or NULL. As in Moses, a pair of words that is not in the table counts as 1.

    `by_target`: the product is over target words, given source words; otherwise the reverse. `keys`,
    `probability`, `targets`: of the WordTable, in the same direction. `square`: bit 8 i + j says whether
    source word i is linked to target word j.
    """
    weight = np.ones(len(square))
    for row in range(len(square)):
        own, partners = (target, source) if by_target else (source, target)
        for outer in range(min(8, own.shape[1])):
            word = own[row, outer]
            if word == 0:
                break  # the end of the phrase
            total, count = 0.0, 0
            for inner in range(min(8, partners.shape[1])):
                shift = np.uint64(8 * inner + outer) if by_target else np.uint64(8 * outer + inner)
                if (square[row] >> shift) & np.uint64(1):
                    total += look_up(keys, probability, targets, partners[row, inner], word, by_target)
                    count += 1
            if count == 0:
                total, count = look_up(keys, probability, targets, 0, word, by_target), 1
            weight[row] *= total / count
    return weight


@njit
def look_up(
    keys: Int64s, probability: Floats, targets: int, partner: int, word: int, by_target: bool
) -> float:
    """Probability of `word` given `partner`, a source word if `by_target` and else a target word; 1 for a
    pair that is not in the table."""
    key = np.int64(partner) * targets + word if by_target else np.int64(word) * targets + partner
    index = np.searchsorted(keys, key)
    if index < len(keys) and keys[index] == key:
        return float(probability[index])
    return 1.0


# ---- their scores ------------------------------------------------------------------------------------------


MAX_COUNT = 10  # larger counts are not discounted by Good-Turing


@dataclass
class CorpusTotals:
    """Totals over all pairs, which smoothing needs."""

    pairs: int = 0
    # How many pairs occur c times: (MAX_COUNT + 2,)
    counts_of_counts: Int64s = field(default_factory=lambda: np.zeros(MAX_COUNT + 2, np.int64))

    def add(self, count: Int64s) -> None:
        """Add pairs. `count` (P,): how often each was extracted."""
        counts = np.bincount(np.minimum(count, MAX_COUNT + 2), minlength=MAX_COUNT + 3)[: MAX_COUNT + 2]
        self.counts_of_counts = self.counts_of_counts + counts
        self.pairs += len(count)

    def good_turing(self) -> Floats:
        """Discount factors (MAX_COUNT + 1,) of the counts c from 0 to MAX_COUNT: (c + 1) n[c + 1] / (c n[c]),
        at most 1, where n[c] pairs occur c times; 1 for c = 0, and if n[c] or n[c + 1] is 0."""
        n = self.counts_of_counts.astype(np.float64)
        factor = np.ones(MAX_COUNT + 1)
        for c in range(1, MAX_COUNT + 1):
            if n[c] and n[c + 1]:
                factor[c] = min(1.0, (c + 1) * n[c + 1] / (c * n[c]))
        return factor

    def kneser_ney(self) -> Floats:
        """The discounts of the counts 0, 1, 2, and 3 or more (Chen and Goodman 1998): (4,). All are 0 if one
        of the counts 1 to 4 does not occur."""
        n = self.counts_of_counts.astype(np.float64)
        if not n[1:5].all():
            return np.zeros(4)
        y = n[1] / (n[1] + 2 * n[2])
        discounts = [0.0, *(c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3))]
        return np.asarray(np.clip(discounts, 0.0, [0, 1, 2, 3]))


@dataclass
class PairCounts:
    """How often each pair, its target and its source were extracted; and with how many sources its target
    was, and with how many targets its source: (P,) each."""

    joint: Int64s
    target: Int64s
    source: Int64s
    target_partners: Int64s
    source_partners: Int64s


def phi(counts: PairCounts, totals: CorpusTotals, smoothing: str) -> tuple[Floats, Floats]:
    """p(source | target) and p(target | source) of each pair, as Moses' consolidate computes them: (P,),
    (P,). `smoothing`: see `ExtractConfig`."""
    joint = counts.joint.astype(np.float64)
    if smoothing == "good-turing":
        factor = np.append(totals.good_turing(), 1.0)
        adjusted = joint * factor[np.minimum(counts.joint, MAX_COUNT + 1)]
        return adjusted / counts.target, adjusted / counts.source
    if smoothing == "kneser-ney":
        # As in Moses, at least 0.01 of each count is left.
        discount = np.minimum(totals.kneser_ney()[np.minimum(counts.joint, 3)], joint - 0.01)
        # The discounted mass is redistributed in proportion to the numbers of partners of both sides.
        adjusted = (
            joint - discount + discount * counts.target_partners * counts.source_partners / totals.pairs
        )
        return adjusted / counts.target, adjusted / counts.source
    return joint / counts.target, joint / counts.source


COUNT_BINS = (1, 2, 3, 5, 10)  # the last count of each bin but the last one


def count_scores(count: int, feature: str) -> list[str]:
    """The scores of a pair that was extracted `count` times, as Moses' consolidate writes them. `feature`:
    see `ExtractConfig.count_feature`."""
    if feature == "low":
        return [f"{math.exp(-1 / count):.6g}"]
    if feature == "bins":
        own = bisect_left(COUNT_BINS, count)
        return ["2.718" if number == own else "1" for number in range(len(COUNT_BINS) + 1)]
    return []


ORIENTATION_PRIOR = 0.5  # added to each orientation's count


def orientation_scores(orientations: Int64s, reordering: ReorderingType) -> Floats:
    """The probabilities of a row of the reordering table, (P, `reordering.probabilities`), from counts c of
    the K orientations on each side (P, 2 K): (c + 0.5) / (sum of c + K / 2)"""
    size = reordering.size
    parts = orientations.reshape(-1, 2, size)
    parts = parts[:, int(not reordering.backward) : 1 + int(reordering.forward)]
    scores = (parts + ORIENTATION_PRIOR) / (parts.sum(2, keepdims=True) + size * ORIENTATION_PRIOR)
    return np.asarray(scores.reshape(-1, reordering.probabilities))


# ---- lines of the tables -----------------------------------------------------------------------------------


class TableLines:
    """Formats pairs as table lines, with the vocabularies and totals of the whole corpus."""

    def __init__(
        self, words: CorpusSurvey, config: ExtractConfig, lexicon: WordTable, totals: CorpusTotals
    ) -> None:
        """`lexicon` must be complete: call its `finish` first."""
        self.words, self.config, self.lexicon, self.totals = words, config, lexicon, totals
        self.source = make_packing(words.source, config.max_length)
        self.target = make_packing(words.target, config.max_length)

    def format(self, pairs: PhrasePairs, totals: UINT) -> tuple[list[str], list[str]]:
        """Format phrase pairs as lines of the phrase table and of the reordering table.

        `pairs`: with all pairs of each of their sources; `totals` (P, 3), in any order: the index of a pair,
        how often its target was extracted, and with how many sources.
        """
        numbers = totals[np.argsort(totals[:, 0])].astype(np.int64)
        assert len(numbers) == len(pairs.count)
        of_target, target_partners = numbers[:, 1], numbers[:, 2]
        width = self.source.columns
        starts, sizes = row_groups(pairs.keys, width)
        of_source = np.repeat(np.add.reduceat(pairs.count, starts), sizes)
        counts = PairCounts(pairs.count, of_target, of_source, target_partners, np.repeat(sizes, sizes))
        inverse, direct = phi(counts, self.totals, self.config.smoothing)
        longest, S, T = self.config.max_length, self.words.source, self.words.target
        source = unpack(pairs.keys[:, :width], self.source, longest)
        target = unpack(pairs.keys[:, width:], self.target, longest)
        word_source, word_target = np.where(source == S.end, 0, source), np.where(target == T.end, 0, target)
        lexicon = self.lexicon
        lex_direct = lexical_weights(
            lexicon.keys, lexicon.direct, lexicon.targets, word_source, word_target, pairs.direct, True
        )
        lex_inverse = lexical_weights(
            lexicon.keys, lexicon.inverse, lexicon.targets, word_source, word_target, pairs.inverse, False
        )
        sources = [
            text
            for text, size in zip(phrase_texts(word_source[starts], S.words), sizes.tolist(), strict=True)
            for _ in range(size)
        ]
        heads = [
            f"{a} ||| {b} ||| " for a, b in zip(sources, phrase_texts(word_target, T.words), strict=True)
        ]
        columns = [
            array.tolist()
            for array in (inverse, lex_inverse, direct, lex_direct, of_target, of_source, pairs.count)
        ]
        alignments = [alignment_text(square) for square in pairs.direct.tolist()]
        of_count = {
            count: "".join(f" {score}" for score in count_scores(count, self.config.count_feature))
            for count in set(columns[-1])
        }
        table = [
            f"{head}{a:.6g} {b:.6g} {c:.6g} {d:.6g}{of_count[j]} ||| {points} ||| {t} {s} {j} ||| |||"
            for head, points, a, b, c, d, t, s, j in zip(heads, alignments, *columns, strict=True)
        ]
        text_by_counts: dict[tuple[int, ...], str] = {}
        probabilities = orientation_scores(pairs.orientations, self.config.reordering)
        reordering = []
        for row, key in enumerate(map(tuple, pairs.orientations.tolist())):
            if key not in text_by_counts:
                text_by_counts[key] = " ".join(f"{value:.6g}" for value in probabilities[row])
            reordering.append(heads[row] + text_by_counts[key])
        return table, reordering


def write_tables(table: str, reordering: str | None, blocks: Iterable[tuple[list[str], list[str]]]) -> None:
    """Write blocks of lines of the phrase table and, if it has a path, of the reordering table; each file is
    written completely or not at all. UserError if that fails."""
    with ExitStack() as stack:
        first = stack.enter_context(files.Writing(table))
        second = stack.enter_context(files.Writing(reordering)) if reordering else None
        for lines, reordering_lines in blocks:
            first.write("\n".join([*lines, ""]))
            if second:
                second.write("\n".join([*reordering_lines, ""]))


def write_lexical(stem: str, words: CorpusSurvey, lexicon: WordTable) -> None:
    """Write word translation probabilities as Moses does: lines `target source p(target | source)` to
    STEM.f2e, and `source target p(source | target)` to STEM.e2f. `lexicon` must be finished. UserError if a
    file cannot be written."""
    source, target = lexicon.keys // lexicon.targets, lexicon.keys % lexicon.targets
    S, T = (["NULL", *side.words[1:]] for side in (words.source, words.target))
    texts = [(S[s], T[t]) for s, t in zip(source.tolist(), target.tolist(), strict=True)]
    files.write_text(
        f"{stem}.f2e", (f"{t} {s} {p:.7f}" for (s, t), p in zip(texts, lexicon.direct.tolist(), strict=True))
    )
    files.write_text(
        f"{stem}.e2f", (f"{s} {t} {p:.7f}" for (s, t), p in zip(texts, lexicon.inverse.tolist(), strict=True))
    )


def phrase_texts(ids: NDArray[np.int32], words: list[str]) -> list[str]:
    """Convert phrases to text, given rows of word ids padded with 0."""
    lengths = (ids > 0).sum(1).tolist()
    return [
        " ".join([words[word] for word in row[:length]])
        for row, length in zip(ids.tolist(), lengths, strict=True)
    ]


@lru_cache(1 << 20)
def alignment_text(square: int) -> str:
    """The points 0-0 1-2 of an alignment square, sorted by target word, as Moses writes them."""
    return " ".join(f"{i}-{j}" for j in range(8) for i in range(8) if square >> (8 * i + j) & 1)
