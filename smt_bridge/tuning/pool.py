"""Hypotheses of a development set with their features and BLEU statistics: from n-best lists, or from the
files of Moses' tuner."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt import files, nbest
from nmt.errors import DataError
from smt_bridge.tuning import moses_pool
from smt_bridge.tuning.bleu import COLUMNS, References, bleu
from smt_bridge.weights import Weights, tuned

log = logging.getLogger("nmt.tune")

Floats = NDArray[np.float64]
SMALL = 200  # sentences: below, weights move by their own size from one start to the next


@dataclass
class Pool:
    """N hypotheses of S sentences; those of sentence s are rows starts[s] : starts[s + 1]."""

    names: list[str]  # LM0_0, or LM0 where a feature has one value; one a column
    features: Floats  # (N, D)
    stats: Floats  # (N, 9)
    starts: NDArray[np.int64]  # (S + 1,)

    @property
    def sentences(self) -> int:
        return len(self.starts) - 1

    def sentence_of(self) -> NDArray[np.int64]:
        """(N,)"""
        return np.repeat(np.arange(self.sentences), np.diff(self.starts))

    def best(self, weights: Floats) -> NDArray[np.int64]:
        """The row of the best hypothesis of each sentence, the first of equals: (S,)"""
        scores = self.features @ weights
        top = np.maximum.reduceat(scores, self.starts[:-1])
        rows = np.flatnonzero(scores == np.repeat(top, np.diff(self.starts)))
        return rows[np.searchsorted(rows, self.starts[:-1])]

    def bleu(self, weights: Floats) -> float:
        """Corpus BLEU, 0 to 1, of the best hypotheses."""
        return float(bleu(self.stats[self.best(weights)].sum(0)))

    def constant(self) -> NDArray[np.bool_]:
        """Features that never differ within a sentence, so that no weight of theirs changes anything: (D,)"""
        low, high = (
            np.minimum.reduceat(self.features, self.starts[:-1]),
            np.maximum.reduceat(self.features, self.starts[:-1]),
        )
        return np.asarray((low == high).all(0))


Rows = dict[int, tuple[list[Floats], list[Floats]]]  # of each sentence: features, statistics


def make(names: list[str], rows: Rows, sentences: int | None = None) -> Pool:
    """Put a pool together, each distinct row once. DataError for a sentence without hypotheses or a pool
    without any BLEU."""
    count = max(rows, default=-1) + 1 if sentences is None else sentences
    held = {number for number, (blocks, _) in rows.items() if any(map(len, blocks))}
    if len(held) < count:
        gap = next(number for number in range(count) if number not in held)
        others = count - len(held) - 1
        raise DataError(
            f"no hypotheses for sentence {gap}{f' and {others} others' * (others > 0)}; a list for the "
            "whole "
            "development set is needed"
        )
    features, stats = [], []
    for number in range(count):
        both = np.unique(np.hstack([np.vstack(rows[number][0]), np.vstack(rows[number][1])]), axis=0)
        features.append(both[:, :-COLUMNS])
        stats.append(both[:, -COLUMNS:])
    pool = Pool(names, np.vstack(features), np.vstack(stats), np.cumsum([0, *map(len, features)]))
    check(pool)
    return pool


def check(pool: Pool) -> None:
    """DataError for what no tuner can work on; warnings for what it works badly on."""
    top = np.maximum.reduceat(pool.stats, pool.starts[:-1]).sum(0)
    if not (top[0:8:2] > 0).all():
        raise DataError(
            "no hypothesis matches a reference in any 4-gram, so BLEU is 0 whatever the weights; are the "
            "references of this text, "
            "tokenized and escaped like the hypotheses?"
        )
    if pool.sentences < SMALL:
        log.warning(
            (
                "%d sentences are few for %d weights: expect other weights from another seed; %d or more are "
                "safe"
            ),
            pool.sentences,
            len(pool.names),
            SMALL,
        )
    dead = [name for name, constant in zip(pool.names, pool.constant(), strict=True) if constant]
    if dead:
        log.warning("constant within every sentence, so left at weight 0: %s", ", ".join(dead))


class Lists(NamedTuple):
    """What was read, as it was read; `make(*lists)` is their pool."""

    names: list[str]
    rows: Rows
    sentences: int | None = None  # None: as many as there are rows for

    def blocks(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Sentence, features and statistics, each distinct row once, in the order of Moses' extractor."""
        for number in sorted(self.rows):
            features, stats = map(np.vstack, self.rows[number])
            rows = [row.tobytes() for row in np.hstack([features, stats])]
            kept = distinct(rows, list(map(len, self.rows[number][0])))
            yield number, features[kept], stats[kept]


def distinct(rows: Sequence[bytes], sizes: Sequence[int]) -> list[int]:
    """The places of rows without their repetitions. `sizes`: of the lists they come from, one after the
    other.

    As in extractor the last row of the lists so far takes the place of a repeated one.
    """
    places: list[int] = []
    seen: set[bytes] = set()
    begin = 0
    for size in sizes:
        at = len(places)
        places += range(begin, begin + size)
        begin += size
        while at < len(places):
            if rows[places[at]] in seen:
                places[at] = places[-1]
                places.pop()
            else:
                seen.add(rows[places[at]])
                at += 1
    return places


def from_nbest(paths: Sequence[str], references: Sequence[str]) -> Pool:
    return make(*read_nbest(paths, references))


def from_moses(features: Sequence[str], scores: Sequence[str]) -> Pool:
    return make(*read_moses(features, scores))


def read_nbest(paths: Sequence[str], references: Sequence[str]) -> Lists:
    """n-best lists (rounds of a tuning loop), and BLEU statistics against the references.

    DataError for lists of different features, for an id without a reference, or a reference without
    hypotheses.
    """
    texts = [list(files.read_lines(path)) for path in references]
    if len({len(text) for text in texts}) > 1:
        counts = [len(text) for text in texts]
        raise files.unequal(references, counts)
    judges: dict[int, References] = {}
    names: list[str] = []
    rows: Rows = {}
    for path in paths:
        for number, group in nbest.by_sentence(path):
            if number >= len(texts[0]):
                raise DataError(
                    f"{files.name_of(path)}: sentence {number}, but {references[0]} has {len(texts[0])} "
                    "lines (ids count from 0)"
                )
            found = columns({name: len(values) for name, values in group[0].features.items()})
            sparse = [name for hypothesis in group for name in hypothesis.features if "_" in name]
            if sparse:
                raise DataError(
                    f"{files.name_of(path)}: sentence {number} has the sparse feature {sparse[0]}; only "
                    "dense features are tuned here"
                )
            names = names or found
            if found != names:
                raise DataError(
                    f"{files.name_of(path)}: features {' '.join(found)}, but {paths[0]} has "
                    f"{' '.join(names)}; pool lists of one system only"
                )
            if number not in judges:
                judges[number] = References([files.split_words(text[number]) for text in texts])
            features, stats = rows.setdefault(number, ([], []))
            features.append(
                np.array(
                    [
                        [value for values in hypothesis.features.values() for value in values]
                        for hypothesis in group
                    ]
                )
            )
            stats.append(
                np.array([judges[number].statistics(hypothesis.text) for hypothesis in group], np.float64)
            )
    return Lists(names, rows, len(texts[0]))


def columns(sizes: dict[str, int]) -> list[str]:
    """Names of single values, as Moses' extractor makes them: LM0_0, TranslationModel0_3."""
    return [f"{name}_{number}" for name, size in sizes.items() for number in range(size)]


def read_moses(features: Sequence[str], scores: Sequence[str]) -> Lists:
    """Moses' own pools: files of `extractor`, plain or gzip, pairwise. DataError when they do not fit
    together."""
    if len(features) != len(scores):
        raise DataError(f"{len(features)} feature files, but {len(scores)} score files; give them pairwise")
    names: list[str] = []
    rows: Rows = {}
    for feature_path, score_path in zip(features, scores, strict=True):
        blocks = moses_pool.read(score_path, "SCORES")
        for number, head, block in moses_pool.read(feature_path, "FEATURES"):
            other = next(blocks, None)
            if other is None or other[0] != number or len(other[2]) != len(block):
                raise DataError(
                    f"{score_path}: the block of sentence {number} is missing or has another number of rows "
                    f"than in {feature_path}"
                )
            if other[1][:1] != ["BLEU"] or other[2].shape[1] != COLUMNS:
                raise DataError(f"{score_path}: sentence {number}: expected {COLUMNS} BLEU statistics a row")
            names = names or head
            if head != names or block.shape[1] != len(names):
                raise DataError(
                    f"{feature_path}: sentence {number} has features {' '.join(head)}, but the first block "
                    f"{' '.join(names)}"
                )
            held = rows.setdefault(number, ([], []))
            held[0].append(block)
            held[1].append(other[2])
    return Lists(names, rows)


def drop(pool: Pool, features: Sequence[str]) -> None:
    """Make features constant, so that their weights stay 0. DataError for one that the pool does not have."""
    heads = {name: next(iter(to_weights([name], np.zeros(1)))) for name in pool.names}
    for feature in features:
        if feature not in heads.values():
            raise DataError(
                f"no feature {feature} to drop, expected one of {', '.join(dict.fromkeys(heads.values()))}"
            )
    pool.features[:, [heads[name] in features for name in pool.names]] = 0.0


def to_weights(names: Sequence[str], values: Floats) -> Weights:
    """LM0_0 0.1, TM0_0 0.2, TM0_1 0.3 -> {LM0: [0.1], TM0: [0.2, 0.3]}"""
    weights: Weights = {}
    for name, value in zip(names, values.tolist(), strict=True):
        head, _, tail = name.rpartition("_")
        weights.setdefault(head if head and tail.isascii() and tail.isdigit() else name, []).append(value)
    return weights


def from_weights(names: Sequence[str], weights: Weights) -> Floats:
    """The other way; 0 for a feature that `weights` lacks, which is how a new one starts. DataError for one
    that the pool lacks."""
    sizes = {name: len(values) for name, values in to_weights(names, np.zeros(len(names))).items()}
    for name, values in weights.items():
        if name in sizes and sizes[name] != len(values):
            raise DataError(f"{len(values)} weights for {name}, which has {sizes[name]} values in the pool")
        if name not in sizes and name in tuned(weights):
            raise DataError(f"a weight for {name}, which the pool does not have (it has {', '.join(sizes)})")
    return np.array([value for name, size in sizes.items() for value in weights.get(name, [0.0] * size)])


def normalize(weights: Floats) -> Floats:
    """Σ |w| = 1, as Moses does; BLEU does not change."""
    size = np.abs(weights).sum()
    return weights / size if size > 0 else weights
