"""What each phrase of a derivation adds to its total, feature by feature: value x weight.

P phrases in target order, D scores of all features, also of those that n-best lists do not print. Row P is
the end of the sentence. All rows together add up to the total.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from smt_bridge.decoder import feature_values
from smt_bridge.decoder.arrays import Floats, Int32s
from smt_bridge.decoder.feature_values import Phrases
from smt_bridge.decoder.features.protocol import (
    Candidates,
    Scorer,
    SearchFeature,
    checked,
    is_stateful,
    of_derivations,
)
from smt_bridge.decoder.model import Task
from smt_bridge.decoder.options import OptionBuilder
from smt_bridge.decoder.translation import PhraseTranslation, span
from smt_bridge.moses.weights import Weights


def shares(builder: OptionBuilder, task: Task, path: Int32s) -> Floats:
    """value x weight of each phrase and each score, in the order of the builder's weights: (P + 1, D)"""
    found = values(builder, task, path)
    count = len(path) + 1
    rows = [found[name] * np.array(weights) for name, weights in builder.weights.items()]
    return np.hstack([np.zeros((count, 0)), *rows])


def values(builder: OptionBuilder, task: Task, path: Int32s) -> dict[str, Floats]:
    """The scores of each phrase, and of the end of the sentence: name -> (P + 1, K)"""
    system, sentence, count = builder.system, task.sentence, len(path)
    phrases = feature_values.phrases(sentence, [path])._replace(owner=np.arange(count))
    early = builder.settings.early_distortion_cost
    of_phrases: dict[str, Floats] = {
        **feature_values.of_table(builder, sentence, phrases, count),
        system.name("Distortion"): feature_values.distortions(phrases, early),
        system.name("WordPenalty"): -sentence.length[path][:, None].astype(np.float64),
        system.name("PhrasePenalty"): np.ones((count, 1)),
    }
    if system.reordering_name:
        of_phrases[system.reordering_name] = feature_values.of_reordering(builder, sentence, phrases, count)
    found = {name: np.vstack([each, np.zeros((1, each.shape[1]))]) for name, each in of_phrases.items()}
    for number, name in enumerate(system.lm_names):
        found[name] = of_lm(builder, number, task, path)
    return found | of_search_features(builder, task, path, phrases)


def of_lm(builder: OptionBuilder, number: int, task: Task, path: Int32s) -> Floats:
    """log p of each phrase after those before it, and how many of its words the model does not know where
    that is a score: (P + 1, 1 or 2)"""
    lm, ids, sentence = builder.model.word_lms[number], task.options.words[number], task.sentence
    words, totals = list[int](), [0.0]
    for place in sentence.places(path):
        words += ids[place].tolist()
        totals.append(lm.sentence(words, complete=False))
    whole = feature_values.of_lm(builder, number, task, path)
    found = np.diff([*totals, whole[0]])[:, None]
    if len(whole) == 1:
        return found
    unknown = [sum(not lm.knows(word) for word in sentence.target(int(option))) for option in path]
    return np.hstack([found, np.array([*unknown, 0.0])[:, None]])


def of_search_features(
    builder: OptionBuilder, task: Task, path: Int32s, phrases: Phrases
) -> dict[str, Floats]:
    """The scores of the features of the registry: name -> (P + 1, K)"""
    searching = [one.feature for one in task.model.stateful]
    scorers = {one.name: scorer for one, scorer in zip(searching, task.scorers, strict=True)}
    found = {}
    for weighted in builder.features:
        feature = weighted.feature
        of_options = checked(feature, feature.of_options(task.sentence), task.sentence.size)[phrases.option]
        rows = np.vstack([of_options, np.zeros((1, feature.scores))])
        if is_stateful(feature):
            scorer = scorers.get(feature.name) or feature.start(task.sentence)
            rows += of_steps(feature, scorer, path)
        found[feature.name] = rows
    return found


def of_steps(feature: SearchFeature, scorer: Scorer, path: Int32s) -> Floats:
    """What a stateful feature gives each phrase. The end has the rest of the derivation's value: of a feature
    that the search approximates, also what the approximation leaves out: (P + 1, K)"""
    state, rows = np.array([scorer.begin], np.int64), list[Floats]()
    for option in path.astype(np.int64):
        gains = scorer.gains(Candidates(np.array([option]), state, complete=False))
        rows.append(checked(feature, gains.values, 1))
        state = gains.states
    whole = checked(feature, of_derivations(scorer, [path], feature.scores), 1)
    return np.vstack([*rows, whole - sum(rows)])


# ---- as a table --------------------------------------------------------------------------------------------

HEAD = ("line", "row", "source words", "source", "target", "total")


def header(weights: Weights) -> Iterator[list[str]]:
    """The names of the columns, and a row with the weights: a value is its cell divided by its weight."""
    names = [
        name if len(found) == 1 else f"{name}.{number}"
        for name, found in weights.items()
        for number in range(1, len(found) + 1)
    ]
    yield [*HEAD, *names]
    yield ["", "weight", "", "", "", "", *(f"{one:.6g}" for found in weights.values() for one in found)]


def rows(number: int, found: PhraseTranslation) -> Iterator[list[str]]:
    """The rows of a line, counted from 1: its phrases in target order, the end of the sentence, and the sums,
    which are the total. A long line has an end for each of its parts, an empty line nothing."""
    before, every = 0, list[Floats]()
    for sentence, derivation in found.searched:
        assert derivation.shares is not None, "DecoderConfig.explain is not set"
        ends = np.cumsum([0, *(int(sentence.length[option]) for option in derivation.options)])
        for option, words, shares in zip(derivation.options, pairwise(ends), derivation.shares, strict=False):
            first, last = (before + int(ends[option]) for ends in (sentence.begin, sentence.last))
            texts = sentence.source(option), derivation.text[words[0] : words[1]]
            yield [str(number), "phrase", span(first, last), *map(" ".join, texts), *cells(shares)]
        yield [str(number), "end", "", "", "", *cells(derivation.shares[-1])]
        before += len(sentence.words)
        every.append(derivation.shares.sum(0))
    if every:
        whole = map(" ".join, (found.source, found.text))
        yield [str(number), "sum", "", *whole, *cells(np.sum(every, 0))]


def cells(shares: Floats) -> list[str]:
    """A row's sum, and each of its values."""
    return [f"{value + 0.0:.6f}" for value in [shares.sum(), *shares]]  # 0, and not -0
