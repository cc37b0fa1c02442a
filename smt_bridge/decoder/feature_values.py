"""Feature values of derivations, recomputed from their phrases, and the contribution of each phrase to the
total. All log probabilities are natural.

N: derivations; P: phrases of all of them; K: scores of a feature; D: scores of all features.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.coverage import early_distortion
from smt_bridge.decoder.feature_lines import UNKNOWN
from smt_bridge.decoder.features.protocol import (
    Candidates,
    SearchFeature,
    SentenceScorer,
    SparseFeature,
    StatefulFeature,
    check_values,
)
from smt_bridge.decoder.model import SearchTask
from smt_bridge.decoder.options import OptionBuilder
from smt_bridge.decoder.orientations import path_orientations
from smt_bridge.decoder.sentence import UNKNOWN_WORD, Sentence
from smt_bridge.decoder.translation import PhraseTranslation, span
from smt_bridge.moses.ini import Weights
from smt_bridge.moses.reordering import HIER, ReorderingType

# ---- feature values ----------------------------------------------------------------------------------------


class PathPhrases(NamedTuple):
    """The P phrases of several derivations, one derivation after the other."""

    option: Int64s  # (P,)
    owner: Int64s  # (P,) index of the phrase's derivation
    opening: NDArray[np.bool_]  # (P,) whether the phrase is the first of its derivation
    first: Int32s  # (P,) first source word
    last: Int32s  # (P,) last source word
    before_first: Int32s  # (P,) first source word of the previous phrase; -2 if there is none
    before_last: Int32s  # (P,) last source word of the previous phrase; -1 if there is none


def path_phrases(sentence: Sentence, paths: Sequence[Int32s]) -> PathPhrases:
    """List the phrases of derivations. `paths`: the options of each, at least one, in target order."""
    option = np.concatenate(paths).astype(np.int64)
    sizes = np.array([len(path) for path in paths])
    opening = np.zeros(len(option), bool)
    opening[np.cumsum(sizes) - sizes] = True
    first, last = sentence.first[option], sentence.last[option]
    before_first, before_last = np.roll(first, 1), np.roll(last, 1)
    before_first[opening], before_last[opening] = -2, -1
    return PathPhrases(
        option=option,
        owner=np.repeat(np.arange(len(paths)), sizes),
        opening=opening,
        first=first,
        last=last,
        before_first=before_first,
        before_last=before_last,
    )


def sums(values: NDArray[np.generic], owner: Int64s, count: int) -> Floats:
    """Sum rows by owner: (P, K) -> (count, K). `owner`: index of the sum to which each row belongs (P,)."""
    total = np.zeros((count, values.shape[1]))
    np.add.at(total, owner, values)
    return total


def distortions(phrases: PathPhrases, early: bool) -> Floats:
    """The Distortion score of each phrase: minus the words of its jump or, if `early`, minus its early
    distortion cost; (P, 1)"""
    if not early:
        jumps: Floats = -np.abs(phrases.first - phrases.before_last - 1).astype(np.float64)
        return jumps[:, None]
    values = np.zeros((len(phrases.option), 1))
    covered: set[int] = set()
    gap = 0
    for index, (first, last) in enumerate(zip(phrases.first.tolist(), phrases.last.tolist(), strict=True)):
        if phrases.opening[index]:
            covered, gap = set(), 0
        values[index] = -early_distortion(first, last, int(phrases.before_last[index]), gap)
        covered |= set(range(first, last + 1))
        while gap in covered:
            gap += 1
    return values


def reorderings(phrases: PathPhrases, values: NDArray[np.floating], reordering: ReorderingType) -> Floats:
    """The LexicalReordering scores of each phrase: (P, probabilities) -> (P, K). `values`: all log
    probabilities of each phrase's option. The backward score is the phrase's own for its orientation; the
    forward score is that of the previous phrase for the orientation of this one, if there is a previous one.
    All others are 0."""
    hierarchical = reordering.model == HIER
    columns = [
        np.array(reordering.score_of)[orientations]
        for orientations in path_orientations(phrases.first, phrases.last, phrases.opening, hierarchical)
    ]
    scores = np.zeros(values.shape)
    if reordering.backward:
        rows, column = np.arange(len(scores)), columns[0]
        scores[rows, column] = values[rows, column]
    if reordering.forward:
        rows = np.flatnonzero(~phrases.opening)
        column = columns[1][rows] + values.shape[1] - reordering.size
        scores[rows, column] = values[rows - 1, column]
    if reordering.collapsed:
        scores = np.asarray(scores.reshape(len(scores), -1, reordering.size).sum(2))
    return scores


def table_scores(
    builder: OptionBuilder, sentence: Sentence, phrases: PathPhrases, count: int
) -> dict[str, Floats]:
    """Scores of the phrase table and of UnknownWordPenalty, summed by owner: name -> (count, K). `count`:
    number of sums, one for each derivation or phrase."""
    system = builder.system
    rows = sentence.rows[phrases.option]
    scores = np.where((rows >= 0)[:, None], system.table.log_scores(np.maximum(rows, 0)), 0.0)
    unknown = np.zeros((len(rows), 1))
    for index in np.flatnonzero(rows < 0).tolist():
        extra = sentence.extras[-1 - rows[index]]
        unknown[index] = UNKNOWN_WORD if extra.unknown else 0.0
        if extra.scores is not None:
            scores[index] = extra.scores
    return {
        system.table_name: sums(scores, phrases.owner, count),
        system.name(UNKNOWN): sums(unknown, phrases.owner, count),
    }


def reordering_scores(builder: OptionBuilder, sentence: Sentence, phrases: PathPhrases, count: int) -> Floats:
    """Scores of LexicalReordering, summed by owner: (count, K)"""
    pair, rows = sentence.pairs()[phrases.option], builder.rows
    values = np.where((pair >= 0)[:, None], rows.reordering(np.maximum(pair, 0)), rows.default_reordering)
    return sums(reorderings(phrases, values, builder.system.reordering), phrases.owner, count)


def lm_scores(builder: OptionBuilder, number: int, task: SearchTask, path: Int32s) -> list[float]:
    """The scores of language model `number` for a derivation: log p, and with oov-feature=1 the number of
    words that the model does not know. `path`: its options in target order.

    As in Moses, the end of the sentence is not scored after a phrase without words."""
    lm, ids, sentence = builder.model.word_lms[number], task.options.words[number], task.sentence
    words = [word for part in sentence.slices(path) for word in ids[part].tolist()]
    values = [lm.sentence(words, bool(sentence.length[path[-1]]))]
    if number in builder.rows.oov_weights:
        values.append(sum(not lm.knows(word) for word in sentence.derivation_words(path)))
    return values


def search_feature_scores(
    builder: OptionBuilder, task: SearchTask, paths: Sequence[Int32s], phrases: PathPhrases
) -> dict[str, Floats]:
    """Scores of the features in SEARCH_FEATURES: name -> (N, K)"""
    columns = {}
    for weighted in builder.features:
        feature = weighted.feature
        values = check_values(feature, feature.of_options(task.sentence), task.sentence.size)
        columns[feature.name] = sums(values[phrases.option], phrases.owner, len(paths))
        if isinstance(feature, StatefulFeature):
            values = sentence_scorer(feature, task).of_derivations(paths)
            columns[feature.name] += check_values(feature, values, len(paths))
    return columns


def sentence_scorer(feature: StatefulFeature, task: SearchTask) -> SentenceScorer:
    """The scorer of a feature in the search; a new one if it was not used there because its weight is 0."""
    for weighted, scorer in zip(task.model.stateful, task.scorers, strict=True):
        if weighted.feature is feature:
            return scorer
    return feature.start(task.sentence)


def table_columns(
    builder: OptionBuilder, sentence: Sentence, phrases: PathPhrases, count: int
) -> dict[str, Floats]:
    """The scores that need neither a language model nor a network, summed by owner: name -> (count, K)"""
    system, early = builder.system, builder.settings.early_distortion_cost
    columns = {
        **table_scores(builder, sentence, phrases, count),
        system.name("Distortion"): sums(distortions(phrases, early), phrases.owner, count),
        system.name("WordPenalty"): sums(-sentence.length[phrases.option][:, None], phrases.owner, count),
        system.name("PhrasePenalty"): sums(np.ones((len(phrases.option), 1)), phrases.owner, count),
    }
    if system.reordering_name:
        columns[system.reordering_name] = reordering_scores(builder, sentence, phrases, count)
    return columns


def derivation_scores(builder: OptionBuilder, task: SearchTask, paths: Sequence[Int32s]) -> dict[str, Floats]:
    """Compute the scores of all features for derivations, given by their options in target order: name ->
    (N, K). ConfigError if a feature gives scores of another shape, or that are not finite."""
    phrases = path_phrases(task.sentence, paths)
    columns = table_columns(builder, task.sentence, phrases, len(paths))
    for number, name in enumerate(builder.system.lm_names):
        columns[name] = np.array([lm_scores(builder, number, task, path) for path in paths], np.float64)
    return columns | search_feature_scores(builder, task, paths, phrases)


def printed_values(builder: OptionBuilder, columns: Mapping[str, Floats]) -> Floats:
    """Printed feature values of derivations in the order of n-best lists: (N, D). `columns`: scores of each
    feature, name -> (N, K)."""
    printed = [columns[name][:, scores] for name, scores in builder.system.printed.items()]
    count = len(next(iter(columns.values())))
    return np.hstack([np.zeros((count, 0)), *printed])


def sparse_values(
    features: Sequence[SparseFeature], sentence: Sentence, paths: Sequence[Int32s]
) -> list[dict[str, float]]:
    """The values of sparse features that are not 0, for derivations given by their options in target order:
    those of each feature sorted by name."""
    if not features:
        return [{} for _ in paths]
    counts = [
        [Counter(name for option in path for name in feature.names(sentence, int(option))) for path in paths]
        for feature in features
    ]
    return [
        {name: float(count[name]) for count in derivation for name in sorted(count)}
        for derivation in zip(*counts, strict=True)
    ]


def totals(builder: OptionBuilder, columns: Mapping[str, Floats]) -> Floats:
    """Total scores of derivations (N,), the weighted sums of their feature values. `columns`: scores of each
    feature, name -> (N, K)."""
    total: Floats = sum(columns[name] @ np.array(weights) for name, weights in builder.weights.items())
    return total


# ---- explain -----------------------------------------------------------------------------------------------
# The contribution of each phrase to its derivation's total, feature by feature: value x weight.
#
# There are P phrases in target order and D scores of all features, including those that n-best lists do not
# print. Row P, the last one, is the end of the sentence. The sum of all rows is the total.


def phrase_shares(builder: OptionBuilder, task: SearchTask, path: Int32s) -> Floats:
    """Weighted feature values of each phrase of a derivation, in the order of the builder's weights: (P + 1,
    D). `path`: its options in target order."""
    columns = phrase_values(builder, task, path)
    return np.hstack([columns[name] * np.array(weights) for name, weights in builder.weights.items()])


def phrase_values(builder: OptionBuilder, task: SearchTask, path: Int32s) -> dict[str, Floats]:
    """The scores of each phrase of a derivation, and of the end of the sentence: name -> (P + 1, K). `path`:
    its options in target order."""
    count = len(path)
    phrases = path_phrases(task.sentence, [path])._replace(owner=np.arange(count))
    # No phrase belongs to the last row, the end of the sentence.
    columns = table_columns(builder, task.sentence, phrases, count + 1)
    for number, name in enumerate(builder.system.lm_names):
        columns[name] = phrase_lm_scores(builder, number, task, path)
    return columns | phrase_search_scores(builder, task, path, phrases)


def phrase_lm_scores(builder: OptionBuilder, number: int, task: SearchTask, path: Int32s) -> Floats:
    """Log p of each phrase, and of the end of the sentence, given the previous ones by language model
    `number`; with oov-feature=1 also the number of unknown words: (P + 1, 1 or 2)"""
    lm, ids, sentence = builder.model.word_lms[number], task.options.words[number], task.sentence
    words, totals = list[int](), [0.0]
    for part in sentence.slices(path):
        words += ids[part].tolist()
        totals.append(lm.sentence(words, complete=False))
    scores = lm_scores(builder, number, task, path)
    log_probs = np.diff([*totals, scores[0]])[:, None]
    if len(scores) == 1:
        return log_probs
    unknown = [sum(not lm.knows(word) for word in sentence.target(int(option))) for option in path]
    return np.hstack([log_probs, np.array([*unknown, 0.0])[:, None]])


def phrase_search_scores(
    builder: OptionBuilder, task: SearchTask, path: Int32s, phrases: PathPhrases
) -> dict[str, Floats]:
    """Scores of the features in SEARCH_FEATURES: name -> (P + 1, K)"""
    columns = {}
    for weighted in builder.features:
        feature = weighted.feature
        of_options = check_values(feature, feature.of_options(task.sentence), task.sentence.size)[
            phrases.option
        ]
        rows = np.vstack([of_options, np.zeros((1, feature.scores))])
        if isinstance(feature, StatefulFeature):
            rows += step_scores(feature, sentence_scorer(feature, task), path)
        columns[feature.name] = rows
    return columns


def step_scores(feature: SearchFeature, scorer: SentenceScorer, path: Int32s) -> Floats:
    """Values of a stateful feature phrase by phrase: (P + 1, K). The last row, the end of the sentence, is
    the rest of the derivation's exact value, including any error of the search's approximation."""
    state, rows = np.array([scorer.start_state], np.int64), list[Floats]()
    for option in path.astype(np.int64):
        gains = scorer.gains(Candidates(np.array([option]), state, complete=False))
        rows.append(check_values(feature, gains.values, 1))
        state = gains.states
    whole = check_values(feature, scorer.of_derivations([path]), 1)
    return np.vstack([*rows, whole - sum(rows)])


# ---- explanations as a table -------------------------------------------------------------------------------

EXPLAIN_COLUMNS = ("line", "row", "source words", "source", "target", "total")


def explain_header(weights: Weights) -> Iterator[list[str]]:
    """Yield the column names and a row of weights. In the other rows a feature's value is its cell divided by
    its weight, unless that is 0."""
    names = [
        name if len(values) == 1 else f"{name}.{number}"
        for name, values in weights.items()
        for number in range(1, len(values) + 1)
    ]
    yield [*EXPLAIN_COLUMNS, *names]
    yield ["", "weight", "", "", "", "", *(f"{value:.6g}" for values in weights.values() for value in values)]


def explain_rows(number: int, translation: PhraseTranslation) -> Iterator[list[str]]:
    """Yield the rows of line `number`, counted from 1: its phrases in target order, the end of the sentence,
    and the sums, which add up to the total. A long line has an end for each of its parts; an empty line has
    no rows. The decoder must have been configured with `explain`."""
    offset, part_sums = 0, list[Floats]()
    for sentence, derivation in translation.searched:
        assert derivation.shares is not None, "DecoderConfig.explain is not set"
        ends = np.cumsum([0, *(int(sentence.length[option]) for option in derivation.options)])
        for option, words, shares in zip(derivation.options, pairwise(ends), derivation.shares, strict=False):
            first, last = offset + int(sentence.first[option]), offset + int(sentence.last[option])
            phrases = sentence.source(option), derivation.text[words[0] : words[1]]
            yield [str(number), "phrase", span(first, last), *map(" ".join, phrases), *explain_cells(shares)]
        yield [str(number), "end", "", "", "", *explain_cells(derivation.shares[-1])]
        offset += len(sentence.words)
        part_sums.append(derivation.shares.sum(0))
    if part_sums:
        texts = map(" ".join, (translation.source, translation.text))
        yield [str(number), "sum", "", *texts, *explain_cells(np.sum(part_sums, 0))]


def explain_cells(shares: Floats) -> list[str]:
    """Format the sum of a row and each of its values."""
    return [f"{value + 0.0:.6f}" for value in [shares.sum(), *shares]]  # adding 0 turns -0 into 0
