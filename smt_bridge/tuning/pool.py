"""The hypotheses of a development set with their features and BLEU statistics, from n-best lists or from the
files of Moses' tuner."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError
from nmt.formats import nbest
from nmt.io import files, numbers
from smt_bridge.moses.ini import Weights, tuned_names
from smt_bridge.moses.sparse_weights import is_sparse
from smt_bridge.tuning.bleu import COLUMNS, BleuReferences, bleu
from smt_bridge.tuning.sparse_vectors import SparseColumns, SparseVectors

# ---- files of Moses' tuners --------------------------------------------------------------------------------
# The two text files of a pool as Moses' `extractor` writes them, and `mert` and `kbmira` read them: features
# and BLEU statistics.
#
# FEATURES_TXT_BEGIN_0 id count dense names ...      SCORES_TXT_BEGIN_0 id count 9 BLEU
# one row of numbers per hypothesis                  match total (of 1- to 4-grams) reference-length
# FEATURES_TXT_END_0                                 SCORES_TXT_END_0
#
# Rows, and the header of features, end in a blank.


Floats = NDArray[np.float64]
BLOCK_BEGIN = re.compile(r"(FEATURES|SCORES)_TXT_BEGIN_[0-9]+$")


def read_blocks(path: str, kind: str) -> Iterator[tuple[int, list[str], Floats]]:
    """Yield the sentence id, the names in the header, and the rows (N, columns) of each block of a file.
    `kind`: FEATURES or SCORES. DataError, with the line, for an empty file and for one of another form."""
    lines = enumerate(files.read_lines(path), 1)
    empty = True
    for number, line in lines:
        words = files.split_words(line)
        if not words:
            continue
        sentence, count, width = parse_header(words, kind, f"{path}:{number}")
        empty = False
        try:
            block = np.array([parse_row(next(lines)[1]) for _ in range(count)], np.float64).reshape(
                count, width
            )
            end = next(lines)[1]
        except (StopIteration, ValueError) as error:
            cause = f" ({error})" if "number" in str(error) else ""
            raise DataError(
                f"{path}:{number}: the block of sentence {sentence} is not {count} rows of {width} "
                f"numbers{cause} (sparse features are not tuned here)"
            ) from error
        if not end.startswith(f"{kind}_TXT_END") or not np.isfinite(block).all():
            raise DataError(
                f"{path}:{number}: the block of sentence {sentence} does not end after {count} rows, or "
                "holds nan or inf"
            )
        yield sentence, words[4:], block
    if empty:
        raise DataError(f"{path}: empty file, expected what Moses' extractor writes")


def parse_header(words: Sequence[str], kind: str, location: str) -> tuple[int, int, int]:
    """Parse the words of the first line of a block: sentence id, number of rows, number of columns. DataError
    for any other line."""
    match = BLOCK_BEGIN.match(words[0])
    try:
        if not match or match[1] != kind:
            raise ValueError
        sentence, count, width = map(numbers.count, words[1:4])
    except ValueError as error:
        header = numbers.shown(" ".join(words))
        raise DataError(
            f"{location}: {header}, expected '{kind}_TXT_BEGIN_0 id count columns names', as Moses' "
            "extractor writes (text, not binary)"
        ) from error
    return sentence, count, width


def parse_row(line: str) -> list[float]:
    """Parse a line of numbers. ValueError for any other word."""
    return list(map(float, line.split())) if numbers.plain(line) else numbers.reals(files.split_words(line))


def features_block(sentence: int, names: Sequence[str], values: Floats) -> Iterator[str]:
    """Yield the lines of a sentence in the file of features. `values`: (N, D)"""
    yield f"FEATURES_TXT_BEGIN_0 {sentence} {len(values)} {len(names)} {' '.join(names)} "
    yield from (f"{' '.join(f'{value:.6g}' for value in row)} " for row in values.tolist())
    yield "FEATURES_TXT_END_0"


def scores_block(sentence: int, stats: Floats) -> Iterator[str]:
    """Yield the lines of a sentence in the file of statistics. `stats`: (N, 9)"""
    yield f"SCORES_TXT_BEGIN_0 {sentence} {len(stats)} {stats.shape[1]} BLEU"
    yield from (f"{' '.join(map(str, row))} " for row in stats.astype(np.int64).tolist())
    yield "SCORES_TXT_END_0"


def write_moses(
    features: str, scores: str, names: Sequence[str], blocks: Iterable[tuple[int, Floats, Floats]]
) -> None:
    """Write both files atomically; UserError if that fails. `features`, `scores`: their paths; `names`: of
    the D features; `blocks`: number, features (N, D) and statistics (N, 9) of each sentence."""
    with files.Writing(features) as feature_out, files.Writing(scores) as score_out:
        for sentence, values, stats in blocks:
            feature_out.write_lines(features_block(sentence, names, values))
            score_out.write_lines(scores_block(sentence, stats))


# ---- pool --------------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)

Ints = NDArray[np.int64]
SMALL = 200  # sentences; with fewer, weights depend heavily on the random starting points


@dataclass
class Pool:
    """N distinct hypotheses of S sentences; those of sentence s are rows starts[s] : starts[s + 1]."""

    names: list[str]  # of the D columns: LM0_0, or LM0 where a feature has one value
    features: Floats  # (N, D), natural logarithms as the decoder writes them
    stats: Floats  # (N, 9), see bleu.py
    starts: Ints  # (S + 1,)
    sparse: SparseColumns | None = None  # F further columns, whose weights follow those of the others

    @property
    def sentences(self) -> int:
        return len(self.starts) - 1

    @property
    def all_names(self) -> list[str]:
        """The names of all columns: (D + F,)"""
        return [*self.names, *(self.sparse.names if self.sparse else ())]

    def scores(self, weights: Floats) -> Floats:
        """The score of each hypothesis under weights: (D + F,) -> (N,)"""
        if self.sparse is None:
            return self.features @ weights
        dense = len(self.names)
        return self.features @ weights[:dense] + self.sparse.dot(weights[dense:])

    def best(self, weights: Floats) -> Ints:
        """Index of each sentence's best hypothesis; on ties the first: (S,)"""
        return first_of_highest(self.scores(weights), self.starts)

    def bleu(self, weights: Floats) -> float:
        """Corpus BLEU, 0 to 1, of each sentence's best hypothesis under these weights (D + F,)."""
        return float(bleu(self.stats[self.best(weights)].sum(0)))

    def part(self, sentences: Sequence[int]) -> "Pool":
        """The pool of some sentences, by their indices, in this order."""
        sizes = [int(self.starts[at + 1] - self.starts[at]) for at in sentences]
        rows = np.concatenate([np.arange(self.starts[at], self.starts[at + 1]) for at in sentences])
        sparse = self.sparse.rows(rows) if self.sparse else None
        return Pool(self.names, self.features[rows], self.stats[rows], np.cumsum([0, *sizes]), sparse)

    def constant(self) -> NDArray[np.bool_]:
        """Whether each feature is constant within every sentence, so that its weight has no effect: (D + F,);
        sparse columns count as not constant."""
        low = np.minimum.reduceat(self.features, self.starts[:-1])
        high = np.maximum.reduceat(self.features, self.starts[:-1])
        constant = np.asarray((low == high).all(0))
        return np.concatenate([constant, np.zeros(len(self.all_names) - len(constant), bool)])

    def normalize(self, weights: Floats) -> Floats:
        """Scale weights (D + F,) as `normalize` does."""
        return normalize(weights, len(self.names))


def first_of_highest(values: Floats, starts: Ints) -> Ints:
    """Index of each sentence's row with the highest value, the first of equals: (N,), (S + 1,) -> (S,)"""
    top = np.maximum.reduceat(values, starts[:-1])
    rows = np.flatnonzero(values == np.repeat(top, np.diff(starts)))
    return rows[np.searchsorted(rows, starts[:-1])]


def check_pool(pool: Pool) -> None:
    """DataError if BLEU is 0 with any weights. Warns of constant features."""
    top = np.maximum.reduceat(pool.stats, pool.starts[:-1]).sum(0)
    if not (top[0:8:2] > 0).all():
        raise DataError(
            "no hypothesis matches a reference in any 4-gram, so BLEU is 0 whatever the weights; are these "
            "the references of this text, tokenized and escaped like the hypotheses?"
        )
    constant = [
        name for name, is_constant in zip(pool.all_names, pool.constant(), strict=True) if is_constant
    ]
    if constant:
        log.warning("constant within every sentence, so their weights stay 0: %s", ", ".join(constant))


def warn_of_few(sentences: int, weights: int) -> None:
    """Log a warning if there are few sentences to tune on."""
    if sentences < SMALL:
        log.warning(
            "%s %s few for %s: another seed may give very different ones; use %d or more",
            numbers.counted(sentences, "sentence"),
            "is" if sentences == 1 else "are",
            numbers.counted(weights, "weight"),
            SMALL,
        )


@dataclass
class SentenceRows:
    """The hypotheses of a sentence, list by list, including duplicates."""

    features: list[Floats] = field(default_factory=list)  # (N, D) of each list
    stats: list[Floats] = field(default_factory=list)  # (N, 9)
    vectors: list[Ints] = field(default_factory=list)  # (N,) their sparse vectors; 0 without sparse features

    def distinct(self) -> tuple[Floats, Floats, Ints]:
        """The distinct hypotheses of all lists, sorted: features (N, D), statistics (N, 9), vectors (N,)"""
        features, stats = np.concatenate(self.features), np.concatenate(self.stats)
        vectors = np.concatenate(self.vectors)
        _, rows = np.unique(np.column_stack([features, vectors, stats]), axis=0, return_index=True)
        return features[rows], stats[rows], vectors[rows]


@dataclass
class HypothesisRows:
    """The hypotheses of n-best lists, by sentence, including duplicates."""

    names: list[str]  # of the D columns
    sentences: int | None = None  # None: as many as have rows
    vectors: SparseVectors | None = None  # None without sparse features
    rows: dict[int, SentenceRows] = field(default_factory=dict)

    def add(self, number: int, features: Floats, stats: Floats, vectors: Ints | None = None) -> None:
        """Add the hypotheses of a list for sentence `number`: features (N, D), statistics (N, 9), and with
        sparse features the numbers of their vectors (N,)."""
        sentence = self.rows.setdefault(number, SentenceRows())
        sentence.features.append(features)
        sentence.stats.append(stats)
        sentence.vectors.append(np.zeros(len(features), np.int64) if vectors is None else vectors)

    def pool(self) -> Pool:
        """The pool of the distinct hypotheses. DataError for a sentence without hypotheses, or if BLEU is
        always 0. Logs a warning if features are constant."""
        count = max(self.rows, default=-1) + 1 if self.sentences is None else self.sentences
        filled = {number for number, sentence in self.rows.items() if any(map(len, sentence.features))}
        if len(filled) < count:
            gap = next(number for number in range(count) if number not in filled)
            others = count - len(filled) - 1
            raise DataError(
                f"no hypotheses for sentence {gap}{f' and {others} others' * (others > 0)}; a list for the "
                "whole development set is needed"
            )
        parts = zip(*(self.rows[number].distinct() for number in range(count)), strict=True)
        features, stats, vectors = parts
        pool = Pool(
            names=self.names,
            features=np.vstack(features),
            stats=np.vstack(stats),
            starts=np.cumsum([0, *map(len, features)]),
            sparse=None if self.vectors is None else self.vectors.columns(np.concatenate(vectors)),
        )
        check_pool(pool)
        return pool

    def blocks(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield the number, features (N, D) and statistics (N, COLUMNS) of each sentence that has
        hypotheses: distinct rows, in the order of Moses' extractor. ConfigError if there are sparse
        features."""
        if self.vectors is not None:
            raise ConfigError(
                f"sparse features such as {next(iter(self.vectors.names))}: they are not written in the form "
                "of Moses' extractor; tune here, with --method kbmira"
            )
        for number, sentence in sorted(self.rows.items()):
            features, stats = map(np.vstack, (sentence.features, sentence.stats))
            rows = [row.tobytes() for row in np.hstack([features, stats])]
            distinct = distinct_rows(rows, list(map(len, sentence.features)))
            yield number, features[distinct], stats[distinct]


def distinct_rows(rows: Sequence[bytes], sizes: Sequence[int]) -> list[int]:
    """The indices of distinct rows, in the order of Moses' extractor: a repeated row is replaced by the last
    row of the lists so far. `sizes`: number of rows of each list, in order."""
    indices: list[int] = []
    seen: set[bytes] = set()
    first_row = 0
    for size in sizes:
        at = len(indices)
        indices += range(first_row, first_row + size)
        first_row += size
        while at < len(indices):
            if rows[indices[at]] in seen:
                indices[at] = indices[-1]
                indices.pop()
            else:
                seen.add(rows[indices[at]])
                at += 1
    return indices


def read_nbest(paths: Sequence[str], references: Sequence[str]) -> HypothesisRows:
    """Read n-best lists, such as those of several tuning iterations, and compute BLEU statistics against the
    references. `paths`, `references`: of the lists, and of the reference translations.

    DataError for malformed lists, lists with different features, an id without a reference, and references
    with different numbers of lines.
    """
    texts = [list(files.read_lines(path)) for path in references]
    if len({len(text) for text in texts}) > 1:
        raise files.unequal(references, [len(text) for text in texts])
    scorers: dict[int, BleuReferences] = {}
    vectors = SparseVectors()
    lists = HypothesisRows([], len(texts[0]), vectors)
    for path in paths:
        for number, group in nbest.by_sentence(path):
            if number >= len(texts[0]):
                raise DataError(
                    f"{files.name_of(path)}: sentence {number}, but {references[0]} has "
                    f"{numbers.counted(len(texts[0]), 'line')} (ids count from 0)"
                )
            location = f"{files.name_of(path)}: sentence {number}"
            dense, sparse = zip(*(split_features(entry.features, location) for entry in group), strict=True)
            columns = column_names({name: len(values) for name, values in dense[0].items()})
            lists.names = lists.names or columns
            if columns != lists.names:
                raise DataError(
                    f"{files.name_of(path)}: features {' '.join(columns)}, but {paths[0]} has "
                    f"{' '.join(lists.names)}; pool lists of one system only"
                )
            if number not in scorers:
                scorers[number] = BleuReferences([files.split_words(text[number]) for text in texts])
            lists.add(
                number,
                np.array([[*chain.from_iterable(values.values())] for values in dense]),
                np.array([scorers[number].statistics(entry.text) for entry in group], np.float64),
                np.array([vectors.add(values) for values in sparse]),
            )
    if not vectors.names:
        lists.vectors = None
    return lists


def split_features(
    features: dict[str, list[float]], location: str
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Split the features of an entry into dense and sparse ones, which have `_` in their names. DataError,
    which begins with `location`, for a sparse feature without a value, or with several."""
    sparse: dict[str, float] = {}
    for name, values in features.items():
        if is_sparse(name):
            if len(values) != 1:
                raise DataError(
                    f"{location}: {len(values)} values of {name}, which is sparse by the _ in its name, so "
                    "that one is expected; write one, or rename the feature"
                )
            sparse[name] = values[0]
    return {name: values for name, values in features.items() if name not in sparse}, sparse


def column_names(sizes: dict[str, int]) -> list[str]:
    """Names of single values as in Moses' extractor, such as LM0_0 and TranslationModel0_3. `sizes`: number
    of values of each feature."""
    return [f"{name}_{number}" for name, size in sizes.items() for number in range(size)]


SAME_RUN = "give the files of one run of the extractor"


def read_moses(features: Sequence[str], scores: Sequence[str]) -> HypothesisRows:
    """Read the pools of Moses' `extractor`: files of features and the files of scores that belong to them,
    plain or gzip, given by their paths. DataError for a file of another form, with the line, and for files
    that do not fit together."""
    if len(features) != len(scores):
        raise DataError(f"{len(features)} feature files, but {len(scores)} score files; give them pairwise")
    lists = HypothesisRows([])
    for feature_path, score_path in zip(features, scores, strict=True):
        blocks = read_blocks(score_path, "SCORES")
        for number, header, block in read_blocks(feature_path, "FEATURES"):
            score_block = next(blocks, None)
            if score_block is None or score_block[0] != number or len(score_block[2]) != len(block):
                raise DataError(
                    f"{score_path}: the block of sentence {number} is missing or has another number of rows "
                    f"than in {feature_path}; {SAME_RUN}"
                )
            if score_block[1][:1] != ["BLEU"] or score_block[2].shape[1] != COLUMNS:
                raise DataError(f"{score_path}: sentence {number}: expected {COLUMNS} BLEU statistics a row")
            lists.names = lists.names or header
            if header != lists.names or block.shape[1] != len(header):
                raise DataError(
                    f"{feature_path}: sentence {number} has features {' '.join(header)}, but the first block "
                    f"{' '.join(lists.names)}; pool lists of one system only"
                )
            lists.add(number, block, score_block[2])
        if surplus := next(blocks, None):
            raise DataError(
                f"{score_path}: the block of sentence {surplus[0]} is not in {feature_path}; {SAME_RUN}"
            )
    return lists


def drop_features(pool: Pool, features: Sequence[str]) -> None:
    """Set the columns of these features to 0 in the pool itself, so that their weights stay 0. DataError for
    a feature that is not in the pool."""
    names = feature_names(pool.names)
    for feature in features:
        if feature not in names:
            raise DataError(
                f"no feature {feature} to drop, expected one of {', '.join(dict.fromkeys(names))}"
            )
    pool.features[:, [name in features for name in names]] = 0.0


def feature_names(names: Sequence[str]) -> list[str]:
    """The feature of each single weight: LM0_0, TM0_0, TM0_1 -> LM0, TM0, TM0"""
    return [re.sub(r"(?<=.)_[0-9]+$", "", name) for name in names]


def to_weights(names: Sequence[str], values: Floats) -> Weights:
    """Group the single weights `values`, (D,), by feature: LM0_0 0.1, TM0_0 0.2, TM0_1 0.3 -> {LM0: [0.1],
    TM0: [0.2, 0.3]}"""
    weights: Weights = {}
    for name, value in zip(feature_names(names), values.tolist(), strict=True):
        weights.setdefault(name, []).append(value)
    return weights


def from_weights(names: Sequence[str], weights: Weights) -> Floats:
    """Convert weights by feature to single weights in the order of `names`: (D,), the inverse of
    `to_weights`. A feature without weights gets 0, and an UnknownWordPenalty that is not in `names` is
    ignored. DataError for any other feature that is not in `names`, and for a wrong number of weights."""
    sizes = {name: len(values) for name, values in to_weights(names, np.zeros(len(names))).items()}
    for name, values in weights.items():
        if name in sizes and sizes[name] != len(values):
            raise DataError(f"{len(values)} weights for {name}, which has {sizes[name]} values in the pool")
        if name not in sizes and name in tuned_names(weights):
            raise DataError(f"a weight for {name}, which the pool does not have (it has {', '.join(sizes)})")
    return np.array([value for name, size in sizes.items() for value in weights.get(name, [0.0] * size)])


def normalize(weights: Floats, dense: int | None = None) -> Floats:
    """Scale to Σ |w| = 1, as Moses does; BLEU stays the same. `dense`: sum over the first weights only, so
    that sparse weights, which follow, do not change the scale; None: over all."""
    size = np.abs(weights[:dense]).sum() or np.abs(weights).sum()
    return weights / size + 0.0 if size > 0 else weights  # + 0.0: no -0
