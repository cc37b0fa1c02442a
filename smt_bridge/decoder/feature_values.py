"""Feature values of derivations, recomputed from their phrases; natural logarithms.

`Phrases` are those of N derivations, one derivation after the other: P in all.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.arrays import DISCONTINUOUS, MONOTONE, SWAP, Floats, Int32s, Int64s
from smt_bridge.decoder.coverage import early_distortion
from smt_bridge.decoder.feature_lines import UNKNOWN
from smt_bridge.decoder.features.protocol import checked, is_stateful, of_derivations
from smt_bridge.decoder.model import Task
from smt_bridge.decoder.options import OptionBuilder
from smt_bridge.decoder.sentence import UNKNOWN_WORD, Sentence


class Phrases(NamedTuple):
    option: Int64s  # (P,)
    owner: Int64s  # (P,) number of the derivation
    first: NDArray[np.bool_]  # (P,) is it the first of its derivation?
    begin: Int32s  # (P,) source words
    last: Int32s
    before_begin: Int32s  # (P,) of the previous phrase; -2 and -1 where there is none
    before_last: Int32s


def phrases(sentence: Sentence, paths: Sequence[Int32s]) -> Phrases:
    """The phrases of derivations, which have at least one."""
    option = np.concatenate(paths).astype(np.int64)
    sizes = np.array([len(path) for path in paths])
    first = np.zeros(len(option), bool)
    first[np.cumsum(sizes) - sizes] = True
    begin, last = sentence.begin[option], sentence.last[option]
    before_begin, before_last = np.roll(begin, 1), np.roll(last, 1)
    before_begin[first], before_last[first] = -2, -1
    return Phrases(
        option=option,
        owner=np.repeat(np.arange(len(paths)), sizes),
        first=first,
        begin=begin,
        last=last,
        before_begin=before_begin,
        before_last=before_last,
    )


def sums(values: NDArray[np.generic], owner: Int64s, count: int) -> Floats:
    """Rows added up by owner: (P, K) -> (count, K)"""
    total = np.zeros((count, values.shape[1]))
    np.add.at(total, owner, values)
    return total


def distortions(phrases: Phrases, early: bool) -> Floats:
    """The value of Distortion for each phrase: (P, 1)"""
    if not early:
        jumps: Floats = -np.abs(phrases.begin - phrases.before_last - 1).astype(np.float64)
        return jumps[:, None]
    values = np.zeros((len(phrases.option), 1))
    covered: set[int] = set()
    gap = 0
    for place, (begin, last) in enumerate(zip(phrases.begin.tolist(), phrases.last.tolist(), strict=True)):
        if phrases.first[place]:
            covered, gap = set(), 0
        values[place] = -early_distortion(begin, last, int(phrases.before_last[place]), gap)
        covered |= set(range(begin, last + 1))
        while gap in covered:
            gap += 1
    return values


def reorderings(phrases: Phrases, values: NDArray[np.floating]) -> Floats:
    """The six values of LexicalReordering for each phrase, from the six of each option: (P, 6) -> (P, 6)"""
    monotone, swap = phrases.begin == phrases.before_last + 1, phrases.last + 1 == phrases.before_begin
    way = np.where(monotone, MONOTONE, np.where(swap, SWAP, DISCONTINUOUS))
    six = np.zeros((len(way), 6))
    every = np.arange(len(way))
    six[every, way] = values[every, way]
    later = np.flatnonzero(~phrases.first)
    six[later, 3 + way[later]] = values[later - 1, 3 + way[later]]
    return six


def of_table(builder: OptionBuilder, sentence: Sentence, found: Phrases, count: int) -> dict[str, Floats]:
    """The scores of the phrase table and of UnknownWordPenalty: name -> (N, K)"""
    system = builder.system
    rows = sentence.rows[found.option]
    scores = np.where((rows >= 0)[:, None], system.table.scores[np.maximum(rows, 0)], 0.0)
    unknown = np.zeros((len(rows), 1))
    for place in np.flatnonzero(rows < 0).tolist():
        extra = sentence.extras[-1 - rows[place]]
        unknown[place] = UNKNOWN_WORD if extra.unknown else 0.0
        if extra.scores is not None:
            scores[place] = extra.scores
    return {
        system.table_name: sums(scores, found.owner, count),
        system.name(UNKNOWN): sums(unknown, found.owner, count),
    }


def of_reordering(builder: OptionBuilder, sentence: Sentence, found: Phrases, count: int) -> Floats:
    """The scores of LexicalReordering: (N, 6)"""
    pair = sentence.pairs()[found.option]
    rows = builder.rows
    values = np.where((pair >= 0)[:, None], rows.reordering[np.maximum(pair, 0)], rows.default_reordering)
    return sums(reorderings(found, values), found.owner, count)


def of_lm(builder: OptionBuilder, number: int, task: Task, path: Int32s) -> list[float]:
    """log p of a derivation, and with oov-feature=1 how many of its words the model does not know.

    As in Moses the end of the sentence costs nothing after a phrase without words.
    """
    lm, ids, sentence = builder.model.word_lms[number], task.options.words[number], task.sentence
    words = [word for place in sentence.places(path) for word in ids[place].tolist()]
    values = [lm.sentence(words, bool(sentence.length[path[-1]]))]
    if number in builder.rows.oov_weights:
        values.append(sum(not lm.knows(word) for word in sentence.target_of(path)))
    return values


def of_search_features(
    builder: OptionBuilder, task: Task, paths: Sequence[Int32s], found: Phrases
) -> dict[str, Floats]:
    """The scores of the features of the registry: name -> (N, K)"""
    columns = {}
    searching = [one.feature for one in task.model.stateful]
    scorers = {one.name: scorer for one, scorer in zip(searching, task.scorers, strict=True)}
    for weighted in builder.features:
        feature = weighted.feature
        values = checked(feature, feature.of_options(task.sentence), task.sentence.size)
        columns[feature.name] = sums(values[found.option], found.owner, len(paths))
        if is_stateful(feature):
            # One without a weight has no part in the search.
            scorer = scorers.get(feature.name) or feature.start(task.sentence)
            values = checked(feature, of_derivations(scorer, paths, feature.scores), len(paths))
            columns[feature.name] += values
    return columns


def columns(builder: OptionBuilder, task: Task, paths: Sequence[Int32s]) -> dict[str, Floats]:
    """The scores of all features for derivations: name -> (N, K)"""
    system, sentence, count = builder.system, task.sentence, len(paths)
    found = phrases(sentence, paths)
    early = builder.settings.early_distortion_cost
    columns: dict[str, NDArray[np.generic]] = {
        **of_table(builder, sentence, found, count),
        system.name("Distortion"): sums(distortions(found, early), found.owner, count),
        system.name("WordPenalty"): sums(-sentence.length[found.option][:, None], found.owner, count),
        system.name("PhrasePenalty"): np.bincount(found.owner, minlength=count)[:, None],
        **of_search_features(builder, task, paths, found),
    }
    if system.reordering_name:
        columns[system.reordering_name] = of_reordering(builder, sentence, found, count)
    for number, name in enumerate(system.lm_names):
        columns[name] = np.array([of_lm(builder, number, task, path) for path in paths])
    return {name: values.astype(np.float64) for name, values in columns.items()}


def features(builder: OptionBuilder, columns: Mapping[str, Floats]) -> Floats:
    """What n-best lists print of the scores of derivations, in their order: (N, D)"""
    printed = [columns[name][:, scores] for name, scores in builder.system.printed.items()]
    count = len(next(iter(columns.values())))
    return np.hstack([np.zeros((count, 0)), *printed])


def totals(builder: OptionBuilder, columns: Mapping[str, Floats]) -> Floats:
    """Weights x scores of derivations: (N,)"""
    total: Floats = sum(columns[name] @ np.array(weights) for name, weights in builder.weights.items())
    return total
