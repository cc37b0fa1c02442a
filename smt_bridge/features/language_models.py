"""Language models as features: log p(target)."""

from pathlib import Path

import numpy as np

from nmt.errors import ConfigError
from nmt.lm.base import choose_scorer
from nmt.ngram import arpa
from nmt.ngram import count_model as count
from nmt.ngram.backoff import UnknownShares
from nmt.runs import checkpoint, language_model
from nmt.runs.checkpoint import SavedLM
from nmt.runs.language_model import mixture_scorer
from nmt.text.tokenize import unescape
from smt_bridge.features.base import SideReader, Values, WordPairs, digest, hash_of
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words, units

# ---- count lm ----------------------------------------------------------------------------------------------
# log p(target) by an n-gram model: ARPA, gzipped ARPA or KenLM's binary formats.
#
# Words are as Moses has them, escapes in place: its language models are trained on the same escaped text.


class CountLM:
    """Scores a phrase without `<s>` and `</s>`, a sentence with both. `reverse`: a model of reversed
    sentences."""

    def __init__(self, path: str, reverse: bool = False) -> None:
        self.path, self.reverse = Path(path), reverse
        self.model = count.load_count_model(path)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "CountLM":
        """From an n-gram model's file."""
        return cls(spec.path, spec.kind == "reverse-lm")

    def identity(self) -> str:
        return digest("reverse-lm" if self.reverse else "lm", [self.path])

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target."""
        texts = [words[::-1] for words in pairs.targets] if self.reverse else pairs.targets
        return np.array([scores.sum() for scores in self.model.scores(texts, pairs.whole)], np.float64)


# ---- mixture lm --------------------------------------------------------------------------------------------
# log p(target) by several language models as one, see nmt/runs/language_model.py.


class MixtureLM:
    """A mixture as a feature. Moses' escapes are undone for all its models, n-gram models among them. A
    sentence is scored from its beginning to its end, a phrase as the beginning of a sentence."""

    def __init__(self, path: str, settings: FeatureSettings) -> None:
        if settings.assume_normalized or settings.backoff:
            option = "--backoff" if settings.backoff else "--assume-normalized"
            raise ConfigError(f"{option}: {path} is a mixture; this is for a single network")
        self.path, self.settings = path, settings
        self.model = mixture_scorer(path, settings.device, tokenized=True)
        check_reads_words(path, target=self.model.raw)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "MixtureLM":
        return cls(spec.path, settings)

    def identity(self) -> str:
        """Hash of the kind, the file, which holds the checksums of its models, and the settings."""
        return digest("mixture-lm", [Path(self.path)], self.settings.arithmetic())

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target."""
        lines = [" ".join(map(unescape, words)) for words in pairs.targets]
        scores = self.model.score(lines)
        ends = None if pairs.whole else -1
        return np.array([sum(line.log_probs[:ends]) for line in scores], np.float64)


# ---- neural lm ---------------------------------------------------------------------------------------------
# log p(target) by a neural language model: feed-forward (CSLM; van Merriënboer 2018, section 4.4.1) or
# recurrent.


class NeuralLM:
    """A language model's run as a feature. Moses' escapes are undone.

    A sentence is scored from its beginning to its end symbol, a phrase as the beginning of a sentence,
    without end symbol. ConfigError for a run of raw text. settings.assume_normalized takes log Z as 0;
    settings.backoff names an ARPA file, of text without escapes, that shares p(UNK) among unknown words."""

    def __init__(self, run: SavedLM, settings: FeatureSettings) -> None:
        check_reads_words(run.directory, target=run.text.raw)
        self.run, self.settings = run, settings
        self.scorer = choose_scorer(run.model, settings.assume_normalized, run.directory)
        self.shares = UnknownShares(arpa.read(settings.backoff), run.words.ids) if settings.backoff else None

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "NeuralLM | MixtureLM":
        """From a language model's run directory, or several models as one from a file of nmt-interpolate."""
        if language_model.is_mixture(spec.path):
            return MixtureLM.load(spec, settings)
        return cls(checkpoint.load_lm(spec.path, settings.checkpoint, settings.device), settings)

    def identity(self) -> str:
        settings = self.settings
        backoff = hash_of(Path(settings.backoff)) if settings.backoff else b""
        return digest("neural-lm", self.run.files(), settings.arithmetic() + backoff)

    def readers(self) -> dict[str, SideReader]:
        return {"target": SideReader(cut=self.run.text.cut, vocabulary=self.run.words.ids)}

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target."""
        texts = [units(words, self.run.text) for words in pairs.targets]
        values = self.scorer.score_sentences(self.run.encode(texts), ends=pairs.whole)
        return values + [share.sum() for share in self.shares.logs(texts)] if self.shares else values
