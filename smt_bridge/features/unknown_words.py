"""The number of words that a network does not know, used as a word penalty (van Merriënboer 2018, section
4.4.2 and table 4.1)."""

from pathlib import Path

import numpy as np

from nmt.errors import CheckpointError, DataError
from nmt.runs import directory as run_directory
from nmt.text import subwords
from nmt.text.tokenize import unescape
from nmt.text.vocab import Vocab
from smt_bridge.features.base import Values, WordPairs, digest
from smt_bridge.features.registry import FeatureSettings, FeatureSpec


class UnknownWords:
    """Counts the words of one side outside a vocabulary: that of a run directory, or a file of nmt-vocab.
    Moses' escapes are undone first, as for the network."""

    def __init__(self, path: Path, side: str = "target") -> None:
        self.path, self.side = path, side
        self.known = Vocab.load(path).ids

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "UnknownWords":
        """DataError for a run of subwords; CheckpointError where there is no vocabulary."""
        return cls(vocab_path(spec.path, settings.side), settings.side)

    def identity(self) -> str:
        return digest("unknown-words", [self.path], self.side.encode())

    def score(self, pairs: WordPairs) -> Values:
        """The number of unknown words of each pair."""
        if self.side == "target":
            return np.array([self.count(words) for words in pairs.targets], np.float64)
        counts = [self.count(words) for words in pairs.sources]
        return np.array([counts[source] for source in pairs.source_of], np.float64)

    def count(self, words: list[str]) -> int:
        return sum(unescape(word) not in self.known for word in words)


def vocab_path(path: str, side: str) -> Path:
    """The vocabulary of a run directory, or a file of nmt-vocab."""
    vocab_file = Path(path)
    if vocab_file.is_dir():
        if subwords.stored(vocab_file, side):
            raise DataError(
                f"{path}: this run cuts words into subwords, so that no word is unknown to it; "
                "unknown-words needs a run of whole words"
            )
        run_directory.verify(vocab_file)
        vocab_file = vocab_file / f"{side}.vocab"
    if not vocab_file.exists():
        raise CheckpointError(f"{path}: no run directory and no vocabulary file")
    return vocab_file
