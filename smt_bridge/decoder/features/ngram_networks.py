"""N-gram networks as features of the search: neural language models (CSLM) and joint models (NNJM)."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from nmt.compute.compiled import njit
from nmt.data.affiliation import affiliations, source_windows
from nmt.errors import ConfigError
from nmt.ngram.compiled_queries import MIX
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import BOS, EOS, Vocab
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features import load_joint, load_network
from smt_bridge.decoder.features.protocol import Candidates, Gains, SentenceScorer, StatefulFeature
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.table import parse_points
from smt_bridge.moses.ini import FeatureLine
from smt_bridge.moses.words import units

if TYPE_CHECKING:
    from nmt.models.protocols import WindowScores

# ---- histories ---------------------------------------------------------------------------------------------
# Shared by both kinds of networks. N: number of candidates; G: number of n-grams; n: order.


SENTENCE_END = -1  # in NGrams.position: the end symbol, which belongs to no option


class WordNumbers:
    """Converts words to a network's ids after unescaping them. Several threads may share one."""

    def __init__(self, path: str, text: TextPipeline, vocab: Vocab) -> None:
        """`path`: path of the run, for messages."""
        self.path, self.text, self.vocab = path, text, vocab
        self.ids: dict[str, int] = {}
        self.lock = threading.Lock()

    def __call__(self, word: str) -> int:
        """The id of a word. ConfigError if the network splits it into subwords."""
        with self.lock:
            word_id = self.ids.get(word)
            if word_id is None:
                word_units = units([word], self.text)
                if len(word_units) != 1:
                    raise ConfigError(
                        f"{self.path}: splits words into subwords; searching needs a model of whole words"
                    )
                word_id = self.ids[word] = int(self.vocab.encode(word_units)[0])
        return word_id


class NGrams(NamedTuple):
    """The n-grams of candidates, or of derivations."""

    contexts: Int64s  # (G, n - 1)
    words: Int64s  # (G,)
    owner: Int64s  # (G,) index of the candidate or derivation
    position: Int64s  # (G,) position of the word in Sentence.text; SENTENCE_END for the end symbol

    def sums(self, scores: Floats, count: int) -> Floats:
        """Sum the n-grams' scores by owner: (G,) -> (count, 1)"""
        return np.bincount(self.owner, scores, count).astype(np.float64)[:, None]


class WordHistories:
    """The last n - 1 words of each hypothesis of a sentence. A state is the index of a row; hypotheses with
    the same last words recombine."""

    def __init__(self, sentence: Sentence, ids: Int32s, order: int) -> None:
        """`ids`: Sentence.text in the network's vocabulary (W,); `order`: n."""
        self.sentence, self.ids = sentence, ids
        self.rows = np.full((256, order - 1), BOS, np.int64)  # row 0: before the first word
        self.used = 1

    def extend(self, candidates: Candidates) -> tuple[NGrams, Int64s, Int64s]:
        """Store the histories of candidates, and return their n-grams, their states (N,), and their
        recombination keys (N,), which are equal for equal last words."""
        sentence, option = self.sentence, candidates.option
        count, size = len(option), self.rows.shape[1]
        while self.used + count > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        total = int(sentence.length[option].sum()) + (count if candidates.complete else 0)
        ngrams = NGrams(np.empty((total, size), np.int64), *np.empty((3, total), np.int64))
        states, keys = np.arange(self.used, self.used + count), np.empty(count, np.int64)
        gather(self.rows, candidates.state, states, option, sentence.start, sentence.length, self.ids,
            EOS if candidates.complete else -1, ngrams.contexts, ngrams.words, ngrams.owner, ngrams.position,
            keys)  # fmt: skip
        self.used += count
        return ngrams, states, keys

    def of_derivations(self, paths: Sequence[Int32s]) -> NGrams:
        """All n-grams of derivations, given by their options in target order."""
        size, beginning = self.rows.shape[1], self.rows[0]
        positions = [
            np.concatenate([np.arange(words.start, words.stop) for words in self.sentence.slices(path)])
            for path in paths
        ]
        lines = [np.concatenate([beginning, self.ids[row], [EOS]]) for row in positions]
        windows = [np.lib.stride_tricks.sliding_window_view(line[:-1], size) for line in lines]
        return NGrams(
            np.concatenate(windows),
            np.concatenate([line[size:] for line in lines]),
            np.repeat(np.arange(len(lines)), [len(line) - size for line in lines]),
            np.concatenate([part for row in positions for part in (row, [SENTENCE_END])]).astype(np.int64),
        )


@njit
def gather(histories: Int64s, states: Int64s, after: Int64s, option: Int64s, start: Int32s, length: Int32s,
ids: Int32s, last: int, contexts: Int64s, words: Int64s, owner: Int64s, position: Int64s,
keys: Int64s) -> None:  # fmt: skip
    """Fill in the n-grams of N candidates: contexts (G, n - 1), and words, owners and positions (G,). The
    last n - 1 words of candidate i go to histories[after[i]], their hash to keys[i]. `histories`: see
    WordHistories.rows; `states`, `option`: see Candidates; `start`, `length`: see Sentence; `ids`: ids of
    Sentence.text; `last`: id of the end symbol, -1 if the sentence does not end here."""
    size = histories.shape[1]
    line = np.empty(size + 64, np.int64)
    count = 0
    for number in range(len(option)):
        first, many = start[option[number]], length[option[number]]
        if size + many + 1 > len(line):
            line = np.empty(size + 2 * many + 64, np.int64)
        line[:size] = histories[states[number]]
        for word in range(many):
            line[size + word] = ids[first + word]
        line[size + many] = last
        for word in range(many + 1 if last >= 0 else many):
            contexts[count] = line[word : word + size]
            words[count] = line[word + size]
            owner[count] = number
            position[count] = first + word if word < many else np.int64(-1)
            count += 1
        histories[after[number]] = line[many : many + size]
        key = np.int64(0)
        for column in range(size):
            key = (key ^ (key >> np.int64(31))) * MIX + line[many + column] + np.int64(1)
        keys[number] = key


class NgramFeature(StatefulFeature):
    """Base class of features that are n-gram networks. Each has one score."""

    arguments: ClassVar[Set[str]] = frozenset({"factor", "path", "normalized"})
    scores: int = 1
    stand_in: ClassVar[float] = 1.0
    needs_torch: ClassVar[bool] = True


class NgramScorer(SentenceScorer):
    """Scores one sentence with an n-gram network. States are those of WordHistories."""

    histories: WordHistories

    @abstractmethod
    def scores(self, ngrams: NGrams) -> Floats:
        """Natural log p of the words of n-grams: (G,)"""

    def gains(self, candidates: Candidates) -> Gains:
        ngrams, states, keys = self.histories.extend(candidates)
        return Gains(ngrams.sums(self.scores(ngrams), len(candidates.option)), states, keys)

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Score the words of all derivations together, so that shared ones are computed once."""
        ngrams = self.histories.of_derivations(paths)
        return ngrams.sums(self.scores(ngrams), len(paths))


def score_in_buffers(score: Callable[[slice], Floats], count: int, buffer: int) -> Floats:
    """Score `count` n-grams, `buffer` at a time: (count,). `score`: scores a slice of them."""
    return np.concatenate([np.zeros(0), *(score(slice(at, at + buffer)) for at in range(0, count, buffer))])


# ---- cslm --------------------------------------------------------------------------------------------------
# A neural n-gram model in the search: n-grams are collected, and scored in one batch when their stack is
# complete (van Merriënboer 2018, section 4.4.1).
#
# CSLM name=CSLM0 factor=0 path=RUN_DIR [normalized=true]


class TargetNetwork(NamedTuple):
    """An n-gram network with its text pipeline. G: number of n-grams."""

    order: int
    score: Callable[[Int64s, Int64s], Floats]  # contexts (G, n - 1), words (G,) -> natural log p (G,)
    text: TextPipeline
    vocab: Vocab


class CSLMFeature(NgramFeature):
    """Log p of each target word given the n - 1 words before it. Target words are unescaped. ConfigError when
    a sentence starts if the network splits one of its target words into subwords."""

    def __init__(self, line: FeatureLine, network: TargetNetwork, buffer: int) -> None:
        self.name, self.path = line.name, line.options["path"]
        self.network, self.buffer = network, buffer
        self.number = WordNumbers(self.path, network.text, network.vocab)

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Load the CSLM of a feature line. Raises the errors of `load_network`."""
        network = load_network(line.name, line.options["path"], line.truth("normalized"))
        return cls(line, network, config.buffer)

    def start(self, sentence: Sentence) -> "CSLMScorer":
        return CSLMScorer(self, sentence)


class CSLMScorer(NgramScorer):
    """Scores one sentence with a CSLM."""

    def __init__(self, feature: CSLMFeature, sentence: Sentence) -> None:
        self.network, self.buffer = feature.network, feature.buffer
        self.histories = WordHistories(sentence, sentence.ids(feature.number), feature.network.order)

    def scores(self, ngrams: NGrams) -> Floats:
        contexts, words = ngrams.contexts, ngrams.words
        return score_in_buffers(
            lambda part: self.network.score(contexts[part], words[part]), len(words), self.buffer
        )

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Score the n-grams of all derivations in one call, so that shared ones are computed once."""
        ngrams = self.histories.of_derivations(paths)
        return ngrams.sums(self.network.score(ngrams.contexts, ngrams.words), len(paths))


# ---- nnjm --------------------------------------------------------------------------------------------------
# A joint model in the search (Devlin et al. 2014): log p of each target word given the words before it
# and the source words around its affiliated word.
#
# NNJM name=NNJM0 factor=0 path=RUN_DIR [normalized=true]
#
# Affiliations come from the alignment points of an option; an option without points is aligned along the
# diagonal. The state of a hypothesis is therefore only its last words, and a candidate costs as much as with
# a CSLM: the source's part of the first layer is computed once for each position of the sentence.


class JointNetwork(NamedTuple):
    """A joint model with the text pipelines and vocabularies of both sides."""

    scores: "WindowScores"
    source: tuple[TextPipeline, Vocab]
    target: tuple[TextPipeline, Vocab]


class NNJMFeature(NgramFeature):
    """Log p of the target words under a joint model. Words are unescaped. ConfigError when a sentence starts
    if the network splits one of its source or target words into subwords."""

    def __init__(self, line: FeatureLine, network: JointNetwork, buffer: int) -> None:
        self.name, self.network, self.buffer = line.name, network.scores, buffer
        self.source_number = WordNumbers(line.options["path"], *network.source)
        self.number = WordNumbers(line.options["path"], *network.target)

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Load the joint model of a feature line. Raises the errors of `load_joint`."""
        network = load_joint(line.options["path"], line.truth("normalized"))
        return cls(line, network, config.buffer)

    def start(self, sentence: Sentence) -> "NNJMScorer":
        return NNJMScorer(self, sentence)


class NNJMScorer(NgramScorer):
    """Scores one sentence with a joint model."""

    def __init__(self, feature: NNJMFeature, sentence: Sentence) -> None:
        self.network, self.buffer = feature.network, feature.buffer
        shape, source = feature.network.shape, [feature.source_number(word) for word in sentence.words]
        self.histories = WordHistories(sentence, sentence.ids(feature.number), shape.order)
        self.parts = feature.network.source_part(source_windows(source, shape.window))
        # The last entry is for the end symbol, which is affiliated with that of the source.
        self.affiliation = np.append(word_affiliations(sentence), len(source))
        assert SENTENCE_END == -1

    def scores(self, ngrams: NGrams) -> Floats:
        positions, contexts, words = self.affiliation[ngrams.position], ngrams.contexts, ngrams.words
        return score_in_buffers(
            lambda part: self.network.score(self.parts, positions[part], contexts[part], words[part]),
            len(words),
            self.buffer,
        )


def word_affiliations(sentence: Sentence) -> Int64s:
    """The position of the source word with which each word of Sentence.text is affiliated: (W,)"""
    positions = np.zeros(len(sentence.text), np.int64)
    for option in range(sentence.size):
        first, start, length = (
            int(values[option]) for values in (sentence.first, sentence.start, sentence.length)
        )
        source, extra = int(sentence.last[option]) - first + 1, sentence.extra(option)
        if extra is None:
            own = row_affiliations(sentence.table.points_text(int(sentence.rows[option])), source, length)
        else:
            own = tuple(affiliations(extra.points, source, length))
        positions[start : start + length] = own
        positions[start : start + length] += first
    return positions


@lru_cache(1 << 16)
def row_affiliations(points: bytes, source: int, target: int) -> tuple[int, ...]:
    """The source position with which each target word of a table row is affiliated. `points`: its alignment
    field; `source`, `target`: its numbers of words. Cached, as a table has few distinct alignments."""
    return tuple(affiliations(parse_points(points), source, target))
