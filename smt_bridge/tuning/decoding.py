"""What a tuning asks of the decoder: the development set decoded with other weights, here or by an executor,
and all weights of a system from those that are tuned."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nmt.work.executors import Executor, Lost, LostLines
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.protocol import is_stateful
from smt_bridge.decoder.system import PhraseBasedSystem
from smt_bridge.decoder.translation import Derivation, PhraseTranslation
from smt_bridge.decoder.xml_input import MarkedLine
from smt_bridge.moses.weights import Weights
from smt_bridge.tuning.pool import Floats, feature_names, from_weights, to_weights

BLOCK = 20  # lines that an executor decodes together
NO_OPTIONS = np.zeros(0, np.int32)


@dataclass(frozen=True)
class DecodingBlock:
    """Lines of the development set, and the weights to decode them with."""

    lines: list[MarkedLine]
    weights: Weights


DecodingExecutor = Executor[DecodingBlock, list[PhraseTranslation]]


def with_weights(decoder: Decoder, weights: Weights) -> Decoder:
    """Return a decoder with new weights that shares the loaded networks."""
    return Decoder(decoder.system, decoder.config, weights, decoder.features)


def decode(
    decoder: Decoder, weights: Weights, sources: Sequence[str], workers: int, name: str
) -> Generator[PhraseTranslation]:
    """The translations of lines with other weights, by threads. `name`: of the text, for errors in its
    markup."""
    return with_weights(decoder, weights).translate_all(iter(sources), workers, name)


def decode_by_executor(
    executor: DecodingExecutor, decoder: Decoder, weights: Weights, sources: Sequence[str], name: str
) -> Generator[PhraseTranslation]:
    """Decode lines with new weights by an executor that computes as `Redecoder` does; keeps only texts and
    features. UserError, once all others are decoded, that names lines whose workers died."""
    marked, lost, first = decoder.all_marked(sources, name), LostLines(), 0

    def blocks() -> Iterator[DecodingBlock]:
        while lines := list(islice(marked, BLOCK)):
            yield DecodingBlock(lines, weights)

    for result in executor.map(blocks()):
        end = min(first + BLOCK, len(sources))
        if isinstance(result, Lost):
            lost.add(first + 1, end, result)
        else:
            yield from result
        first = end
    lost.check(name, "start the tuning again, and it goes on after the last iteration")


class Redecoder:
    """Decodes blocks with the weights that each brings along."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.weights: Weights = {}

    def compute(self, block: DecodingBlock) -> list[PhraseTranslation]:
        """The translations of a block, without what only explanations need."""
        if block.weights != self.weights:
            self.decoder, self.weights = with_weights(self.decoder, block.weights), block.weights
        return [strip_details(self.decoder.translate_line(line)) for line in block.lines]


def strip_details(translation: PhraseTranslation) -> PhraseTranslation:
    """Texts, features and totals alone."""
    return PhraseTranslation(
        None,
        [
            Derivation(NO_OPTIONS, derivation.text, derivation.features, derivation.total)
            for derivation in translation.derivations
        ],
    )


def starting_weights(decoder: Decoder, names: Sequence[str]) -> list[Floats]:
    """The weights that a tuning decodes with before it tunes: those of the system, and first the same without
    its stateful features. The lists of a search with networks are short and much alike, so that from these
    alone any weight may seem right for the features that the networks make up for, and yet lead the search
    astray: it prunes by them. Lists of the search without networks show what such weights do."""
    own = from_weights(names, decoder.system.tuneable_weights())
    stateful = {feature.name for feature in decoder.features if is_stateful(feature)}
    without = np.where([head in stateful for head in feature_names(names)], 0.0, own)
    return [own] if (without == own).all() or not without.any() else [without, own]


def whole_weights(system: PhraseBasedSystem, names: Sequence[str], values: Floats) -> Weights:
    """The weights of the tuned features by name, with those of their scores that are not tuneable."""
    weights = system.with_weights(to_weights(names, values))
    return {name: weights[name] for name in system.sizes}
