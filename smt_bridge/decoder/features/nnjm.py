"""A joint model inside the search (Devlin et al. 2014): log p of each target word given those before it and
the source words around the one that it belongs to.

NNJM name=NNJM0 factor=0 path=RUN_DIR [normalized=true]

Affiliations are found within the phrase, by the alignment points of its option; an option without points
uses the diagonal. So a hypothesis needs no more than its last words, and a candidate costs what one of a CSLM
does: the source's part of the first layer is computed once for each place of the sentence.
"""

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from nmt.data.affiliation import affiliations
from nmt.data.aligned import source_windows
from nmt.models.protocols import WindowScores
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import Vocab
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features import load_joint
from smt_bridge.decoder.features.histories import END, Histories, NGrams, WordNumbers
from smt_bridge.decoder.features.protocol import Candidates, Gains, SearchFeatureLine
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.table import points_of


class JointNetwork(NamedTuple):
    """A joint model with the text pipeline and vocabulary of both sides."""

    scores: WindowScores
    source: tuple[TextPipeline, Vocab]
    target: tuple[TextPipeline, Vocab]


class NNJM:
    """The feature. Words are unescaped, and each must be one unit of the network."""

    arguments: ClassVar[Set[str]] = frozenset({"factor", "path", "normalized"})
    scores: ClassVar[int] = 1
    stand_in: ClassVar[float] = 1.0
    needs_torch: ClassVar[bool] = True

    def __init__(self, line: SearchFeatureLine, network: JointNetwork, buffer: int) -> None:
        self.name, self.network, self.buffer = line.name, network.scores, buffer
        self.source_number = WordNumbers(line.options["path"], *network.source)
        self.number = WordNumbers(line.options["path"], *network.target)

    @classmethod
    def load(cls, line: SearchFeatureLine, config: DecoderConfig) -> Self:
        """CheckpointError for a run that is no joint model; ConfigError for one whose log Z is not near 0."""
        network = load_joint(line.options["path"], line.truth("normalized"))
        return cls(line, network, config.buffer)

    def of_options(self, sentence: Sentence) -> Floats:
        return np.zeros((sentence.size, 1))

    def start(self, sentence: Sentence) -> "NNJMScorer":
        return NNJMScorer(self, sentence)


class NNJMScorer:
    """A state is that of Histories: the last n - 1 words."""

    begin = 0

    def __init__(self, feature: NNJM, sentence: Sentence) -> None:
        self.feature = feature
        shape, source = feature.network.shape, [feature.source_number(word) for word in sentence.words]
        self.histories = Histories(sentence, sentence.ids(feature.number), shape.order)
        self.parts = feature.network.source_part(source_windows(source, shape.window))
        self.affiliation = np.append(affiliated(sentence), len(source))  # at END the source's end symbol
        assert END == -1

    def scores(self, found: NGrams) -> Floats:
        """log p of words, a buffer at a time: (G,)"""
        buffer, places = self.feature.buffer, self.affiliation[found.place]
        parts = (slice(at, at + buffer) for at in range(0, len(places), buffer))
        scores = [
            self.feature.network.score(self.parts, places[part], found.contexts[part], found.words[part])
            for part in parts
        ]
        return np.concatenate([np.zeros(0), *scores])

    def gains(self, candidates: Candidates) -> Gains:
        found, states, keys = self.histories.extended(candidates)
        return Gains(found.sums(self.scores(found), len(candidates.option)), states, keys)

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """All words of all derivations together: what derivations share is computed once."""
        found = self.histories.of_derivations(paths)
        return found.sums(self.scores(found), len(paths))


def affiliated(sentence: Sentence) -> Int64s:
    """The place in the sentence of the source word that each word of Sentence.text belongs to: (W,)"""
    found = np.zeros(len(sentence.text), np.int64)
    for option in range(sentence.size):
        begin, start, length = (
            int(values[option]) for values in (sentence.begin, sentence.start, sentence.length)
        )
        source, extra = int(sentence.last[option]) - begin + 1, sentence.extra(option)
        if extra is None:
            own = of_row(sentence.table.points_text(int(sentence.rows[option])), source, length)
        else:
            own = tuple(affiliations(extra.points, source, length))
        found[start : start + length] = own
        found[start : start + length] += begin
    return found


@lru_cache(1 << 16)
def of_row(points: bytes, source: int, target: int) -> tuple[int, ...]:
    """The affiliations of a row of the table, by its alignment field; a table has few different ones."""
    return tuple(affiliations(points_of(points), source, target))
