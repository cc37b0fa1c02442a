"""The built-in features that need no torch: n-gram models, and a count of unknown words."""

from pathlib import Path

import numpy as np

from nmt.errors import CheckpointError, DataError
from nmt.ngram import count_models, trie
from nmt.runs import directory as run_directory
from nmt.text import subwords
from nmt.text.tokenize import unescape
from nmt.text.vocab import Vocab
from smt_bridge.features.base import PairFeature, Values, WordPairs, digest
from smt_bridge.features.registry import FeatureSettings, FeatureSpec

# ---- count lm ----------------------------------------------------------------------------------------------
# log p(target) by an n-gram model: ARPA, gzipped ARPA or KenLM's binary formats.
#
# Words keep Moses' escapes, as its language models are trained on escaped text.


class CountLM(PairFeature):
    """An n-gram model as a feature. Phrases are scored without `<s>` and `</s>`, sentences with both.
    `reverse`: the model was trained on reversed sentences."""

    def __init__(self, path: str, reverse: bool = False) -> None:
        self.path, self.reverse = Path(path), reverse
        self.model = count_models.load_count_model(path)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "CountLM":
        return cls(spec.path, spec.kind == "reverse-lm")

    def identity(self) -> str:
        return digest("reverse-lm" if self.reverse else "lm", [trie.identity_file(self.path)])

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target: (pairs,)"""
        texts = [words[::-1] for words in pairs.targets] if self.reverse else pairs.targets
        return np.array([scores.sum() for scores in self.model.scores(texts, pairs.whole)], np.float64)


# ---- unknown words -----------------------------------------------------------------------------------------
# The number of words that a network does not know, used as a word penalty (van Merriënboer 2018, section
# 4.4.2 and table 4.1).


class UnknownWords(PairFeature):
    """Counts the words of one side that are not in a vocabulary, given as a run or as a file of nmt-vocab.
    Moses' escapes are undone first, as for a network."""

    def __init__(self, path: Path, side: str = "target") -> None:
        self.path, self.side = path, side
        self.vocabulary = Vocab.load(path).ids

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "UnknownWords":
        """Load the vocabulary. DataError for a run of subwords and for a file that is not a vocabulary;
        CheckpointError for a damaged run, and if there is no file."""
        return cls(vocab_path(spec.path, settings.side), settings.side)

    def identity(self) -> str:
        return digest("unknown-words", [self.path], self.side.encode())

    def score(self, pairs: WordPairs) -> Values:
        """The number of unknown words in each pair, on the side `side`."""
        if self.side == "target":
            return np.array([self.count(words) for words in pairs.targets], np.float64)
        counts = [self.count(words) for words in pairs.sources]
        return np.array([counts[source] for source in pairs.source_of], np.float64)

    def count(self, words: list[str]) -> int:
        return sum(unescape(word) not in self.vocabulary for word in words)


def vocab_path(path: str, side: str) -> Path:
    """The path of the vocabulary of a side (source or target): in the run directory `path`, or `path` itself,
    a file of nmt-vocab. Raises the errors of `UnknownWords.load`."""
    vocab_file = Path(path)
    if vocab_file.is_dir():
        if subwords.side_file(vocab_file, side):
            raise DataError(
                f"{path}: this run cuts words into subwords, so that no word is unknown to it; "
                "unknown-words needs a run of whole words"
            )
        run_directory.verify(vocab_file)
        vocab_file = vocab_file / f"{side}.vocab"
    if not vocab_file.exists():
        raise CheckpointError(f"{path}: no run directory and no vocabulary file; name either")
    return vocab_file
