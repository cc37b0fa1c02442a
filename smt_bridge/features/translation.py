"""Translation models as features: log p(target | source) by an encoder-decoder, or log p(source | target) by
one of the other direction.

This is the phrase score of Cho et al. 2014a, section 3.1; whole sentences are scored in the same way. Torch
is not imported here; the features of runs that torch computes are in torch_features.py.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

import numpy as np

from nmt.errors import ConfigError
from nmt.runs.exported import ExportedRun
from nmt.runs.pair import LanguagePair
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import Vocab
from smt_bridge.features.base import PairFeature, SideReader, Values, WordPairs, digest
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_detokenizes, unescaped_units, units

Ids = Sequence[int]


class Translation(PairFeature):
    """A translator's run as a feature. Moses' escapes are undone first, as the run reads tokenized text
    without them; a run of raw text reads detokenized text.

    `inverse`: the run translates from target to source."""

    by_phrase = True

    def __init__(
        self, run: LanguagePair, inverse: bool = False, settings: FeatureSettings | None = None
    ) -> None:
        """ConfigError for a run of raw text of an unknown language."""
        check_detokenizes(run.directory, source=run.source, target=run.target)
        self.run, self.inverse, self.settings = run, inverse, settings or FeatureSettings()
        self.shares = CorpusShares(run.target_words) if self.settings.unknown == "split" else None

    @abstractmethod
    def pair_scores(self, sources: Sequence[Ids], targets: Sequence[Ids], source_of: Sequence[int]) -> Values:
        """Natural log p of each target, end symbol included, given its source: (targets,). That of target i
        is sources[source_of[i]]."""

    def identity(self) -> str:
        kind = "inverse" if self.inverse else "translation"
        return digest(kind, self.run.files(), self.settings.arithmetic())

    def readers(self) -> dict[str, SideReader]:
        first = side_reader(self.run.source, self.run.source_words)
        second = side_reader(self.run.target, self.run.target_words)
        return {"target": first, "source": second} if self.inverse else {"source": first, "target": second}

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target given its source, or the reverse if `inverse`, end symbol included:
        (pairs,). With unknown=split also the log of the corpus shares of unknown words."""
        run = self.run
        sources, targets, source_of = pairs.sources, pairs.targets, pairs.source_of
        if self.inverse:
            distinct: dict[tuple[str, ...], int] = {}
            source_of = [distinct.setdefault(tuple(target), len(distinct)) for target in targets]
            targets = [pairs.sources[row] for row in pairs.source_of]
            sources = list(map(list, distinct))
        read = [run.source_words.encode(units(words, run.source)) for words in sources]
        written = [units(words, run.target) for words in targets]
        values = self.pair_scores(read, [run.target_words.encode(text) for text in written], source_of)
        if self.shares:
            values += [self.shares.log(text) for text in written]
        return values


def side_reader(text: TextPipeline, vocab: Vocab) -> SideReader:
    """How a network with this text pipeline and vocabulary reads words without escapes."""
    return SideReader(cut=partial(unescaped_units, text=text), vocabulary=vocab.ids)


class ExportedTranslation(Translation):
    """A run exported to CTranslate2 as a feature."""

    def __init__(self, exported: ExportedRun, inverse: bool, settings: FeatureSettings) -> None:
        """ConfigError for any precision but the default, since that of the weights is part of the exported
        run, and for a run of raw text of an unknown language."""
        [run] = exported.members
        if settings.precision != "fp32":
            raise ConfigError(
                f"--precision {settings.precision}: {run.directory} was exported to CTranslate2 with a "
                "precision of its own; leave --precision out"
            )
        super().__init__(run, inverse, settings)
        self.translator = exported.translator

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "ExportedTranslation":
        run = ExportedRun.of(
            spec.path, which=settings.checkpoint, device=settings.device, threads=settings.threads
        )
        return cls(run, spec.kind == "inverse", settings)

    def pair_scores(self, sources: Sequence[Ids], targets: Sequence[Ids], source_of: Sequence[int]) -> Values:
        read = [self.run.source_words.decode(source) for source in sources]
        texts = [
            (read[row], self.run.target_words.decode(target))
            for row, target in zip(source_of, targets, strict=True)
        ]
        return np.array([math.fsum(values) for values in self.translator.score(texts)], np.float64)


# ---- unknown words -----------------------------------------------------------------------------------------


class CorpusShares:
    """Divides p(UNK) among unknown words in proportion to their counts in the training corpus.

    p(UNK) is the probability of *any* unknown word; using it for each of them overestimates them all (van
    Merriënboer 2018, section 4.4.2). After the division, the probabilities of all words sum to one again.
    Words that the training corpus lacks count as one further word that occurred once."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocabulary = vocab.ids
        self.counts = vocab.counts
        self.total = 1 + sum(count for word, count in vocab.counts.items() if word not in vocab.ids)

    def log(self, words: list[str]) -> float:
        """Sum of the natural logs of the shares of all unknown words in `words`; 0 if there are none."""
        return sum(
            math.log(self.counts.get(word, 1) / self.total) for word in words if word not in self.vocabulary
        )
