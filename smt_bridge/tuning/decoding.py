"""What a tuning asks of the decoder: the development set decoded with other weights, and all weights of a
system from those that are tuned."""

from collections.abc import Generator, Sequence

from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.system import System
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.moses.weights import Weights
from smt_bridge.tuning.pool import Floats, to_weights


def decoded(
    decoder: Decoder, weights: Weights, sources: Sequence[str], workers: int, name: str
) -> Generator[PhraseTranslation]:
    """The translations of lines with other weights; the networks are not loaded again. `name`: of the text,
    for errors in its markup."""
    other = Decoder(decoder.system, decoder.config, weights, decoder.features)
    return other.translate_all(iter(sources), workers, name)


def whole_weights(system: System, names: Sequence[str], values: Floats) -> Weights:
    """The weights of the tuned features by name, with those of their scores that are not tuneable."""
    made = system.with_weights(to_weights(names, values))
    return {name: made[name] for name in system.sizes}
