"""log p(target | source, alignment) by a joint model (Devlin et al. 2014), or log p(source | target,
alignment) by one of the other direction, for the hypotheses of n-best lists."""

from collections.abc import Sequence

import numpy as np

from nmt.data.aligned import AlignedPair, Ints, mirrored, source_windows, target_contexts
from nmt.errors import ConfigError
from nmt.layers.distinct import distinct
from nmt.runs import alignment
from nmt.runs.alignment import SavedAligned
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import EOS, Vocab
from smt_bridge.features.base import Reader, Values, WordPairs, digest
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from smt_bridge.moses.words import check_reads_words, units


class Joint:
    """A run as a feature. Moses' escapes are undone. settings.assume_normalized takes log Z as 0.

    `inverse`: the run is of the other direction.
    """

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
        """From a joint model's run directory."""
        run = alignment.load_aligned(spec.path, settings.checkpoint, settings.device)
        return cls(run, settings, spec.kind == "inverse-joint")

    def identity(self) -> str:
        """See Feature."""
        kind = "inverse-joint" if self.inverse_aligned else "joint"
        return digest(kind, self.run.files(), self.settings.arithmetic())

    def readers(self) -> dict[str, Reader]:
        """Both sides."""
        first = Reader(cut=self.run.source.cut, known=self.run.source_words.ids)
        second = Reader(cut=self.run.target.cut, known=self.run.target_words.ids)
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
        windows, places = windows_of(aligned_pairs, shape.window)
        distinct_windows, index = distinct(windows)
        contexts = np.concatenate([target_contexts(pair.target, shape.order) for pair in aligned_pairs])
        words = np.array([word for pair in aligned_pairs for word in (*pair.target, EOS)], np.int64)
        parts = self.scores.source_part(distinct_windows)
        found = self.scores.score(parts, index[places], contexts, words)
        return np.add.reduceat(found, np.cumsum([0, *(len(pair.target) + 1 for pair in aligned_pairs[:-1])]))

    def aligned_pairs(self, pairs: WordPairs, affiliations: Sequence[Sequence[int]]) -> list[AlignedPair]:
        """The pairs as the model reads them."""
        run = self.run
        of_sources, of_targets = (run.source, run.source_words), (run.target, run.target_words)
        if self.inverse_aligned:
            of_sources, of_targets = of_targets, of_sources
        sources = [ids_of(words, *of_sources) for words in pairs.sources]
        targets = [ids_of(words, *of_targets) for words in pairs.targets]
        rows = zip(pairs.source_of, targets, affiliations, strict=True)
        if self.inverse_aligned:
            found = [AlignedPair(target, sources[row], places) for row, target, places in rows]
        else:
            found = [AlignedPair(sources[row], target, places) for row, target, places in rows]
        return list(map(mirrored, found)) if self.scores.shape.backward else found


def ids_of(words: list[str], pipeline: TextPipeline, vocab: Vocab) -> list[int]:
    """Words of Moses as ids."""
    return vocab.encode(units(words, pipeline))


def windows_of(pairs: Sequence[AlignedPair], window: int) -> tuple[Ints, Ints]:
    """The windows of all distinct sentences that are read, (P, w), and for each word of the others, end
    symbols included, its place in them, (N,)"""
    starts: dict[tuple[int, ...], int] = {}
    windows: list[Ints] = []
    places: list[int] = []
    count = 0
    for source, _, affiliation in pairs:
        start = starts.setdefault(tuple(source), count)
        if start == count:
            windows.append(source_windows(source, window))
            count += len(source) + 1
        places += [start + place for place in (*affiliation, len(source))]
    return np.concatenate(windows), np.array(places, np.int64)
