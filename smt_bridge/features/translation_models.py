"""Translation models as features: log p(target | source), or of the other direction."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from nmt.compute.precision import Reduced
from nmt.data.aligned import AlignedPair, Ints, mirror_pair, source_windows, target_contexts
from nmt.errors import ConfigError
from nmt.layers.batch_scores import distinct_windows as distinct
from nmt.runs import alignment, checkpoint
from nmt.runs.alignment import SavedAligned
from nmt.runs.checkpoint import SavedRun
from nmt.scoring import pair_scores
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import EOS, Vocab
from smt_bridge.features.base import SideReader, Values, WordPairs, digest
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words, units

# ---- translation -------------------------------------------------------------------------------------------
# log p(target | source) by an encoder-decoder, or log p(source | target) by one of the other direction.
#
# The phrase score of Cho et al. 2014, section 3.1; whole sentences are scored alike.


class Translation:
    """A translator's run as a feature. It reads tokenized text without Moses' escapes, so these are undone.

    `inverse`: the run translates the other way."""

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
        run = checkpoint.load(spec.path, settings.checkpoint, settings.device)
        return cls(run, spec.kind == "inverse", settings)

    def identity(self) -> str:
        kind = "inverse" if self.inverse else "translation"
        return digest(kind, self.run.files(), self.settings.arithmetic())

    def exact(self) -> "Translation":
        return Translation(self.run, self.inverse, replace(self.settings, precision="fp32"))

    def readers(self) -> dict[str, SideReader]:
        first = SideReader(cut=self.run.source.cut, vocabulary=self.run.source_words.ids)
        second = SideReader(cut=self.run.target.cut, vocabulary=self.run.target_words.ids)
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

    p(UNK) is the probability of *any* unknown word; using it for each of them overestimates all (van
    Merriënboer 2018, section 4.4.2). Shared, the probabilities of all words sum to one again. Words that the
    training corpus lacks count together as one."""

    def __init__(self, vocab: Vocab) -> None:
        self.known = vocab.ids
        self.counts = vocab.counts
        self.total = 1 + sum(count for word, count in vocab.counts.items() if word not in vocab.ids)

    def log(self, words: list[str]) -> float:
        """Natural log of the product of the shares of the unknown words among `words`; 0 without any."""
        return sum(
            math.log(self.counts.get(word, 1) / self.total) for word in words if word not in self.known
        )


# ---- joint -------------------------------------------------------------------------------------------------
# log p(target | source, alignment) by a joint model (Devlin et al. 2014), or log p(source | target,
# alignment) by one of the other direction, for the hypotheses of n-best lists.


class Joint:
    """A joint model's run as a feature. Moses' escapes are undone. settings.assume_normalized takes log Z as
    0.

    `inverse`: the run is of the other direction."""

    word_aligned = True

    def __init__(self, run: SavedAligned, settings: FeatureSettings, inverse: bool = False) -> None:
        """ConfigError for a run of raw text, and where log Z is taken as 0, but the model was not trained for
        that."""
        check_reads_words(run.directory, source=run.source.raw, target=run.target.raw)
        self.run, self.settings, self.inverse_aligned = run, settings, inverse
        if settings.assume_normalized and not run.model.self_normalized:
            raise ConfigError(f"--assume-normalized: {run.directory} was not trained with model.normalizer")
        self.scores = run.model.window_scores(settings.assume_normalized, keep_tables=True)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "Joint":
        run = alignment.load_aligned(spec.path, settings.checkpoint, settings.device)
        return cls(run, settings, spec.kind == "inverse-joint")

    def identity(self) -> str:
        kind = "inverse-joint" if self.inverse_aligned else "joint"
        return digest(kind, self.run.files(), self.settings.arithmetic())

    def readers(self) -> dict[str, SideReader]:
        first = SideReader(cut=self.run.source.cut, vocabulary=self.run.source_words.ids)
        second = SideReader(cut=self.run.target.cut, vocabulary=self.run.target_words.ids)
        if self.inverse_aligned:
            first, second = second, first
        return {"source": first, "target": second}

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target, the end symbol included. ConfigError for pairs without alignment."""
        if pairs.affiliations is None:
            raise ConfigError(
                "joint: scores whole sentences with their word alignment, which only n-best lists have; use "
                "it in smt-rescore, or in the search (NNJM in the moses.ini)"
            )
        aligned_pairs = self.aligned_pairs(pairs, pairs.affiliations)
        shape = self.scores.shape
        windows, positions = windows_of(aligned_pairs, shape.window)
        distinct_windows, index = distinct(windows)
        contexts = np.concatenate([target_contexts(pair.target, shape.order) for pair in aligned_pairs])
        words = np.array([word for pair in aligned_pairs for word in (*pair.target, EOS)], np.int64)
        parts = self.scores.source_part(distinct_windows)
        scores = self.scores.score(parts, index[positions], contexts, words)
        return np.add.reduceat(scores, np.cumsum([0, *(len(pair.target) + 1 for pair in aligned_pairs[:-1])]))

    def aligned_pairs(self, pairs: WordPairs, affiliations: Sequence[Sequence[int]]) -> list[AlignedPair]:
        """Convert pairs to ids in the model's direction."""
        run = self.run
        of_sources, of_targets = (run.source, run.source_words), (run.target, run.target_words)
        if self.inverse_aligned:
            of_sources, of_targets = of_targets, of_sources
        sources = [ids_of(words, *of_sources) for words in pairs.sources]
        targets = [ids_of(words, *of_targets) for words in pairs.targets]
        rows = zip(pairs.source_of, targets, affiliations, strict=True)
        if self.inverse_aligned:
            aligned = [AlignedPair(target, sources[row], positions) for row, target, positions in rows]
        else:
            aligned = [AlignedPair(sources[row], target, positions) for row, target, positions in rows]
        return list(map(mirror_pair, aligned)) if self.scores.shape.backward else aligned


def ids_of(words: list[str], pipeline: TextPipeline, vocab: Vocab) -> list[int]:
    """Convert Moses' words to ids."""
    return vocab.encode(units(words, pipeline))


def windows_of(pairs: Sequence[AlignedPair], window: int) -> tuple[Ints, Ints]:
    """Windows of all distinct sentences that are read, (P, w), and the index of the window of each word of
    the other side, end symbols included, (N,)"""
    starts: dict[tuple[int, ...], int] = {}
    windows: list[Ints] = []
    positions: list[int] = []
    count = 0
    for source, _, affiliation in pairs:
        start = starts.setdefault(tuple(source), count)
        if start == count:
            windows.append(source_windows(source, window))
            count += len(source) + 1
        positions += [start + position for position in (*affiliation, len(source))]
    return np.concatenate(windows), np.array(positions, np.int64)
