"""A neural n-gram model inside the search (section 4.4.1: n-grams are gathered, and scored in one product
when a stack is complete).

CSLM name=CSLM0 factor=0 path=RUN_DIR [normalized=true]
"""

import threading
from collections.abc import Callable, Sequence, Set
from typing import ClassVar, NamedTuple, Self

import numpy as np

from nmt.errors import ConfigError
from nmt.text.escapes import unescape
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import BOS, EOS, Vocab
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.automaton import MIX
from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features import load_network
from smt_bridge.decoder.features.protocol import Candidates, Gains, SearchFeatureLine
from smt_bridge.decoder.sentence import Sentence


class Network(NamedTuple):
    """An n-gram network with its text pipeline. G n-grams."""

    order: int
    score: Callable[[Int64s, Int64s], Floats]  # contexts (G, n - 1), words (G,) -> log p, natural (G,)
    text: TextPipeline
    vocab: Vocab


class CSLM:
    """The feature: log p of the target words by a network that sees the n - 1 words before. Target words are
    unescaped, and each must be one unit of the network."""

    arguments: ClassVar[Set[str]] = frozenset({"factor", "path", "normalized"})
    scores: ClassVar[int] = 1
    stand_in: ClassVar[float] = 1.0
    needs_torch: ClassVar[bool] = True

    def __init__(self, line: SearchFeatureLine, network: Network, buffer: int) -> None:
        self.name, self.path = line.name, line.options["path"]
        self.network, self.buffer = network, buffer
        self.ids: dict[str, int] = {}
        self.lock = threading.Lock()  # of `ids`

    @classmethod
    def load(cls, line: SearchFeatureLine, config: DecoderConfig) -> Self:
        """ConfigError for a run that is not a CSLM."""
        network = load_network(line.name, line.options["path"], line.truth("normalized"))
        return cls(line, network, config.buffer)

    @property
    def order(self) -> int:
        return self.network.order

    def number(self, word: str) -> int:
        """The network's id of a target word. ConfigError for a network of subwords."""
        with self.lock:
            found = self.ids.get(word)
            if found is None:
                units = self.network.text.cut([unescape(word)])
                if len(units) != 1:
                    raise ConfigError(
                        f"{self.path}: splits words into subwords; searching needs a model of whole words"
                    )
                found = self.ids[word] = int(self.network.vocab.encode(units)[0])
        return found

    def score(self, contexts: Int64s, words: Int64s) -> Floats:
        """log p(word | context), a buffer at a time: (G, n - 1), (G,) -> (G,)"""
        found = np.empty(len(words))
        for at in range(0, len(words), self.buffer):
            part = slice(at, at + self.buffer)
            found[part] = self.network.score(contexts[part], words[part])
        return found

    def of_options(self, sentence: Sentence) -> Floats:
        return np.zeros((sentence.size, 1))

    def start(self, sentence: Sentence) -> "CSLMScorer":
        return CSLMScorer(self, sentence)


class CSLMScorer:
    """A state is a row of `histories`: the last n - 1 words. Hypotheses recombine where these are equal."""

    begin = 0

    def __init__(self, feature: CSLM, sentence: Sentence) -> None:
        self.feature, self.sentence = feature, sentence
        self.ids = sentence.ids(feature.number)
        self.histories = np.full((256, feature.order - 1), BOS, np.int64)
        self.used = 1

    def gains(self, candidates: Candidates) -> Gains:
        sentence, option = self.sentence, candidates.option
        count, size = len(option), self.histories.shape[1]
        while self.used + count > len(self.histories):
            self.histories = np.concatenate([self.histories, np.empty_like(self.histories)])
        ngrams = int(sentence.length[option].sum()) + (count if candidates.complete else 0)
        contexts, words = np.empty((ngrams, size), np.int64), np.empty(ngrams, np.int64)
        owner, keys = np.empty(ngrams, np.int64), np.empty(count, np.int64)
        states = np.arange(self.used, self.used + count)
        gather(self.histories, candidates.state, states, option, sentence.start, sentence.length, self.ids,
            EOS if candidates.complete else -1, contexts, words, owner, keys)  # fmt: skip
        self.used += count
        found = np.bincount(owner, self.feature.score(contexts, words), count)
        return Gains(found.astype(np.float64)[:, None], states, keys)

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """All n-grams of all derivations together: what derivations share is computed once."""
        size = self.histories.shape[1]
        texts = [np.concatenate([self.ids[words] for words in self.sentence.places(path)]) for path in paths]
        lines = [np.concatenate([np.full(size, BOS), text, [EOS]]) for text in texts]
        contexts = np.concatenate(
            [np.lib.stride_tricks.sliding_window_view(line[:-1], size) for line in lines]
        )
        words = np.concatenate([line[size:] for line in lines])
        owner = np.repeat(np.arange(len(lines)), [len(line) - size for line in lines])
        found = self.feature.network.score(contexts, words)
        return np.bincount(owner, found, len(lines)).astype(np.float64)[:, None]


@njit
def gather(histories: Int64s, before: Int64s, after: Int64s, option: Int64s, start: Int32s, length: Int32s,
ids: Int32s, last: int, contexts: Int64s, words: Int64s, owner: Int64s, keys: Int64s) -> None:  # fmt: skip
    """The n-grams of candidates: contexts (G, n - 1), words (G,), candidate (G,). The words remembered after
    candidate i go to histories[after[i]], their hash to keys[i]. `last`: the end symbol, -1 for none."""
    size = histories.shape[1]
    line = np.empty(size + 64, np.int64)
    count = 0
    for number in range(len(option)):
        first, many = start[option[number]], length[option[number]]
        if size + many + 1 > len(line):
            line = np.empty(size + 2 * many + 64, np.int64)
        line[:size] = histories[before[number]]
        for word in range(many):
            line[size + word] = ids[first + word]
        line[size + many] = last
        for word in range(many + 1 if last >= 0 else many):
            contexts[count] = line[word : word + size]
            words[count] = line[word + size]
            owner[count] = number
            count += 1
        histories[after[number]] = line[many : many + size]
        key = np.int64(0)
        for column in range(size):
            key = (key ^ (key >> np.int64(31))) * MIX + line[many + column] + np.int64(1)
        keys[number] = key
