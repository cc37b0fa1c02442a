"""The number of words that a network does not know: the papers' word penalty (section 4.4.2, the last row of
table 4.1)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt import run_directory
from nmt.data.vocab import Vocab
from nmt.errors import CheckpointError, DataError
from nmt.text.escapes import unescape
from smt_bridge.features.base import Pairs


class UnknownWords:
    """Counts words of one side outside a vocabulary. Moses' escapes are undone first, as for the network."""

    def __init__(self, vocab: Vocab, side: str = "target") -> None:
        self.known, self.side = vocab.ids, side

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        if self.side == "target":
            return np.array([self.count(words) for words in pairs.targets], np.float64)
        counts = [self.count(words) for words in pairs.sources]
        return np.array([counts[source] for source in pairs.source_of], np.float64)

    def count(self, words: list[str]) -> int:
        return sum(unescape(word) not in self.known for word in words)


def load_vocab(path: str, side: str) -> Vocab:
    """The vocabulary of a run directory, or a file of nmt-vocab."""
    place = Path(path)
    if place.is_dir():
        if (place / f"{side}.codes").exists():
            raise DataError(
                f"{path}: this run cuts words into subwords, so that no word is unknown to it; "
                "unknown-words "
                "needs a run of whole words"
            )
        run_directory.verify(place)
        place = place / f"{side}.vocab"
    if not place.exists():
        raise CheckpointError(f"{path}: no run directory and no vocabulary file")
    return Vocab.load(place)
