"""log p(target | source) by an encoder-decoder, or log p(source | target) by one of the other direction.

The score of Cho et al. 2014, section 3.1 (chapter 4.3.1), for phrases; for whole sentences the same number.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from nmt.compute.reduced import Reduced
from nmt.runs import checkpoint
from nmt.runs.checkpoint import SavedRun
from nmt.scoring import pair_scores
from nmt.text.vocab import Vocab
from smt_bridge.features.base import Reader, Values, WordPairs, digest
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words, units


class Translation:
    """A run as a feature. Its words are tokenized text without Moses' escapes, so those are undone.

    `inverse`: the run translates the other way.
    """

    by_phrase = True

    def __init__(self, run: SavedRun, inverse: bool = False, settings: FeatureSettings | None = None) -> None:
        """ConfigError for a run of raw text."""
        check_reads_words(run.directory, source=run.source.raw, target=run.target.raw)
        self.run, self.inverse, self.settings = run, inverse, settings or FeatureSettings()
        precision = self.settings.precision
        self.products: AbstractContextManager[object] = (
            nullcontext() if precision == "fp32" else Reduced(precision, run.model)
        )
        self.shares = CorpusShares(run.target_words) if self.settings.unknown == "split" else None

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "Translation":
        """From a translator's run directory."""
        run = checkpoint.load(spec.path, settings.checkpoint, settings.device)
        return cls(run, spec.kind == "inverse", settings)

    def identity(self) -> str:
        """See Feature."""
        kind = "inverse" if self.inverse else "translation"
        return digest(kind, self.run.files(), self.settings.arithmetic())

    def exact(self) -> "Translation":
        """The same feature in fp32."""
        return Translation(self.run, self.inverse, replace(self.settings, precision="fp32"))

    def readers(self) -> dict[str, Reader]:
        """Both sides."""
        first = Reader(cut=self.run.source.cut, known=self.run.source_words.ids)
        second = Reader(cut=self.run.target.cut, known=self.run.target_words.ids)
        return {"target": first, "source": second} if self.inverse else {"source": first, "target": second}

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each pair, the end symbol included."""
        run = self.run
        sources, targets, source_of = pairs.sources, pairs.targets, pairs.source_of
        if self.inverse:
            distinct: dict[tuple[str, ...], int] = {}
            source_of = [distinct.setdefault(tuple(target), len(distinct)) for target in targets]
            targets = [pairs.sources[row] for row in pairs.source_of]
            sources = list(map(list, distinct))
        read = [run.source_words.encode(units(words, run.source)) for words in sources]
        written = [units(words, run.target) for words in targets]
        with self.products:
            values = pair_scores(
                run.model, read, [run.target_words.encode(text) for text in written], source_of
            )
        if self.shares:
            values += [self.shares.log(text) for text in written]
        return values


class CorpusShares:
    """The share of each unknown word in p(UNK), by its count in the training corpus.

    p(UNK) is the probability of *any* unknown word, so that taking it for each of them overestimates all
    (section 4.4.2). Shared, the probabilities of all words sum to one again. The words that the training
    corpus lacks have one count together.
    """

    def __init__(self, vocab: Vocab) -> None:
        self.known = vocab.ids
        self.counts = vocab.counts
        self.total = 1 + sum(count for word, count in vocab.counts.items() if word not in vocab.ids)

    def log(self, words: list[str]) -> float:
        """Natural log of the product of the shares of the unknown words among `words`; 0 without any."""
        return sum(
            math.log(self.counts.get(word, 1) / self.total) for word in words if word not in self.known
        )
