"""log p(target) by a neural language model (the CSLM of section 4.4.1, or a recurrent one)."""

from pathlib import Path

from nmt.lm.protocols import scorer_of
from nmt.ngram import arpa
from nmt.ngram.backoff import UnknownShares
from nmt.runs import checkpoint, language_model
from nmt.runs.checkpoint import SavedLM
from smt_bridge.features.base import Reader, Values, WordPairs, digest, hash_of
from smt_bridge.features.mixture_lm import MixtureLM
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words, units


class NeuralLM:
    """A run as a feature. Moses' escapes are undone, as for translation models.

    A sentence is scored from its beginning to its end symbol, a phrase as the beginning of a sentence,
    without end symbol. ConfigError for a run of raw text. settings.assume_normalized takes log Z as 0;
    settings.backoff names an ARPA file, of text without escapes, that shares p(UNK) among unknown words.
    """

    def __init__(self, run: SavedLM, settings: FeatureSettings) -> None:
        check_reads_words(run.directory, target=run.text.raw)
        self.run, self.settings = run, settings
        self.scorer = scorer_of(run.model, settings.assume_normalized, run.directory)
        self.shares = UnknownShares(arpa.read(settings.backoff), run.words.ids) if settings.backoff else None

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "NeuralLM | MixtureLM":
        """From a language model's run directory, or several models as one from a file of nmt-interpolate."""
        if language_model.is_mixture(spec.path):
            return MixtureLM.load(spec, settings)
        return cls(checkpoint.load_lm(spec.path, settings.checkpoint, settings.device), settings)

    def identity(self) -> str:
        """See Feature."""
        settings = self.settings
        backoff = hash_of(Path(settings.backoff)) if settings.backoff else b""
        return digest("neural-lm", self.run.files(), settings.arithmetic() + backoff)

    def readers(self) -> dict[str, Reader]:
        """The target side alone."""
        return {"target": Reader(cut=self.run.text.cut, known=self.run.words.ids)}

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target."""
        texts = [units(words, self.run.text) for words in pairs.targets]
        values = self.scorer.score_sentences(self.run.encode(texts), ends=pairs.whole)
        return values + [share.sum() for share in self.shares.logs(texts)] if self.shares else values
