"""A neural n-gram model inside the search (section 4.4.1: n-grams are gathered, and scored in one product
when a stack is complete).

CSLM name=CSLM0 factor=0 path=RUN_DIR [normalized=true]
"""

from collections.abc import Callable, Sequence, Set
from typing import ClassVar, NamedTuple, Self

import numpy as np

from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import Vocab
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features import load_network
from smt_bridge.decoder.features.histories import Histories, WordNumbers
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
        self.number = WordNumbers(self.path, network.text, network.vocab)

    @classmethod
    def load(cls, line: SearchFeatureLine, config: DecoderConfig) -> Self:
        """ConfigError for a run that is not a CSLM."""
        network = load_network(line.name, line.options["path"], line.truth("normalized"))
        return cls(line, network, config.buffer)

    @property
    def order(self) -> int:
        return self.network.order

    def score(self, contexts: Int64s, words: Int64s) -> Floats:
        """log p(word | context), a buffer at a time: (G, n - 1), (G,) -> (G,)"""
        parts = (slice(at, at + self.buffer) for at in range(0, len(words), self.buffer))
        found = [self.network.score(contexts[part], words[part]) for part in parts]
        return np.concatenate([np.zeros(0), *found])

    def of_options(self, sentence: Sentence) -> Floats:
        return np.zeros((sentence.size, 1))

    def start(self, sentence: Sentence) -> "CSLMScorer":
        return CSLMScorer(self, sentence)


class CSLMScorer:
    """A state is that of Histories: the last n - 1 words."""

    begin = 0

    def __init__(self, feature: CSLM, sentence: Sentence) -> None:
        self.feature = feature
        self.histories = Histories(sentence, sentence.ids(feature.number), feature.order)

    def gains(self, candidates: Candidates) -> Gains:
        found, states, keys = self.histories.extended(candidates)
        scores = self.feature.score(found.contexts, found.words)
        return Gains(found.sums(scores, len(candidates.option)), states, keys)

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """All n-grams of all derivations together: what derivations share is computed once."""
        found = self.histories.of_derivations(paths)
        return found.sums(self.feature.network.score(found.contexts, found.words), len(paths))
