"""The feature `mrf` of phrase tables and n-best lists: the pseudo-log-likelihood of the target by a Markov
random field, Σ log p(word | its neighbors)."""

from pathlib import Path

from nmt.papers.mrf import file
from nmt.papers.mrf.model import ChainMRF
from nmt.text.tokenize import unescape
from nmt.text.vocab import Vocab
from smt_bridge.features.base import SideReader, Values, WordPairs, digest
from smt_bridge.features.registry import FeatureSettings, FeatureSpec


class MarkovRandomField:
    """A sentence is scored with the separators around it, a phrase by its words alone. Moses' escapes are
    undone."""

    def __init__(self, path: Path, model: ChainMRF, vocab: Vocab) -> None:
        self.path, self.model, self.vocab = path, model, vocab

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "MarkovRandomField":
        """From a file of nmt-mrf."""
        return cls(Path(spec.path), *file.load(Path(spec.path)))

    def identity(self) -> str:
        return digest("mrf", [self.path])

    def readers(self) -> dict[str, SideReader]:
        """Read only the target side, as words of the vocabulary."""
        return {"target": SideReader(cut=list, vocabulary=self.vocab.ids)}

    def score(self, pairs: WordPairs) -> Values:
        """Score the target side of each pair, in natural logarithms."""
        texts = [self.vocab.encode(list(map(unescape, words))) for words in pairs.targets]
        return self.model.score_sentences(texts, ends=pairs.whole)
