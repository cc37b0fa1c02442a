"""The built-in features that need torch: translation models, joint models, and neural language models, alone
and in mixtures."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from nmt.compute.precision import Reduced
from nmt.data.affiliation import AlignedPair, Ints, mirror_pair, source_windows, target_contexts
from nmt.data.batches import Ids
from nmt.errors import ConfigError
from nmt.layers.batch_scores import distinct_windows, on_device
from nmt.lm.base import choose_scorer
from nmt.ngram import count_models
from nmt.ngram.unknown_shares import UnknownShares
from nmt.runs import checkpoint, joint, language_model
from nmt.runs.checkpoint import SavedLM, SavedRun
from nmt.runs.joint import SavedAligned
from nmt.runs.language_model import mixture_scorer
from nmt.scoring import pair_scores
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import unescape
from nmt.text.vocab import EOS, Vocab
from smt_bridge.features.base import PairFeature, SideReader, Values, WordPairs, digest, file_hash
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.features.translation import Translation, side_reader
from smt_bridge.moses.words import check_detokenizes, check_reads_words, units

# ---- translation -------------------------------------------------------------------------------------------


class RunTranslation(Translation):
    """A translator's run as a feature, computed by torch."""

    run: SavedRun

    def __init__(self, run: SavedRun, inverse: bool = False, settings: FeatureSettings | None = None) -> None:
        super().__init__(run, inverse, settings)
        precision = self.settings.precision
        # The context in which the run computes: matrix products in reduced precision, or as usual.
        self.products: AbstractContextManager[object] = (
            nullcontext() if precision == "fp32" else Reduced(precision, run.model)
        )

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "RunTranslation":
        run = checkpoint.load(spec.path, settings.checkpoint, settings.device)
        return cls(run, spec.kind == "inverse", settings)

    def exact(self) -> "RunTranslation":
        return RunTranslation(self.run, self.inverse, replace(self.settings, precision="fp32"))

    def pair_scores(self, sources: Sequence[Ids], targets: Sequence[Ids], source_of: Sequence[int]) -> Values:
        with self.products:
            return pair_scores(self.run.model, sources, targets, source_of)


# ---- joint -------------------------------------------------------------------------------------------------
# log p(target | source, alignment) by a joint model (Devlin et al. 2014), or log p(source | target,
# alignment) by one of the other direction, for the hypotheses of n-best lists.


class Joint(PairFeature):
    """A joint model's run as a feature. Moses' escapes are undone first. With settings.assume_normalized, log
    Z is taken as 0.

    `inverse`: the run is a model of the source given the target."""

    word_aligned = True

    def __init__(self, run: SavedAligned, settings: FeatureSettings, inverse: bool = False) -> None:
        """ConfigError for a run that reads raw text, and if log Z is to be taken as 0 although the model was
        not trained with a normalizer."""
        check_reads_words(run.directory, source=run.source.raw, target=run.target.raw)
        self.run, self.settings, self.inverse_aligned = run, settings, inverse
        if settings.assume_normalized and not run.model.self_normalized:
            raise ConfigError(
                f"--assume-normalized: {run.directory} was not trained with model.normalizer; leave it out"
            )
        self.scores = run.model.window_scores(settings.assume_normalized, keep_tables=True)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "Joint":
        run = joint.load_aligned(spec.path, settings.checkpoint, settings.device)
        return cls(run, settings, spec.kind == "inverse-joint")

    def identity(self) -> str:
        kind = "inverse-joint" if self.inverse_aligned else "joint"
        return digest(kind, self.run.files(), self.settings.arithmetic())

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each pair's target, or of its source if inverse, including the end symbol.
        ConfigError for pairs without affiliations."""
        if pairs.affiliations is None:
            raise ConfigError(
                "joint: scores whole sentences with their word alignment, which only n-best lists have; use "
                "it in smt-rescore, or in the search (NNJM in the moses.ini)"
            )
        aligned_pairs = self.aligned_pairs(pairs, pairs.affiliations)
        shape = self.scores.shape
        windows, positions = joint_windows(aligned_pairs, shape.window)
        rows, index = (part.numpy() for part in distinct_windows(on_device(windows, torch.device("cpu"))))
        contexts = np.concatenate([target_contexts(pair.target, shape.order) for pair in aligned_pairs])
        words = np.array([word for pair in aligned_pairs for word in (*pair.target, EOS)], np.int64)
        parts = self.scores.source_part(rows)
        scores = self.scores.score(parts, index[positions], contexts, words)
        return np.add.reduceat(scores, np.cumsum([0, *(len(pair.target) + 1 for pair in aligned_pairs[:-1])]))

    def aligned_pairs(self, pairs: WordPairs, affiliations: Sequence[Sequence[int]]) -> list[AlignedPair]:
        """Convert pairs to ids in the model's direction. `affiliations`: those of `pairs`."""
        run = self.run
        source_side, target_side = (run.source, run.source_words), (run.target, run.target_words)
        if self.inverse_aligned:
            source_side, target_side = target_side, source_side
        sources = [encode_words(words, *source_side) for words in pairs.sources]
        targets = [encode_words(words, *target_side) for words in pairs.targets]
        rows = zip(pairs.source_of, targets, affiliations, strict=True)
        if self.inverse_aligned:
            aligned = [AlignedPair(target, sources[row], positions) for row, target, positions in rows]
        else:
            aligned = [AlignedPair(sources[row], target, positions) for row, target, positions in rows]
        return list(map(mirror_pair, aligned)) if self.scores.shape.backward else aligned


def encode_words(words: list[str], pipeline: TextPipeline, vocab: Vocab) -> list[int]:
    """Convert words with Moses' escapes to ids."""
    return vocab.encode(units(words, pipeline))


def joint_windows(pairs: Sequence[AlignedPair], window: int) -> tuple[Ints, Ints]:
    """The windows of source words at all P positions of the distinct source sentences (P, w), end symbols
    included; also returns the index of the window for each of the N target words and end symbols (N,).
    `pairs`: at least one; `window`: number of words w."""
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


# ---- mixture lm --------------------------------------------------------------------------------------------
# log p(target) by a mixture of several language models, see nmt/runs/language_model.py.


class MixtureLM(PairFeature):
    """A mixture as a feature. Moses' escapes are undone for all its models, including n-gram models. A
    sentence is scored from its beginning to its end symbol, a phrase as the beginning of a sentence."""

    def __init__(self, path: str, settings: FeatureSettings) -> None:
        """Load the mixture at `path`. ConfigError for settings that do not apply to a mixture, and for models
        that read raw text; also the errors of `mixture_scorer`."""
        if settings.assume_normalized or settings.backoff:
            option = "--backoff" if settings.backoff else "--assume-normalized"
            raise ConfigError(f"{option}: {path} is a mixture; this is for a single network; leave it out")
        self.path, self.settings = path, settings
        self.model = mixture_scorer(path, settings.device, tokenized=True)
        check_reads_words(path, target=self.model.raw)

    def identity(self) -> str:
        """Hash of kind, settings, and the mixture's file, which has the checksums of its models."""
        return digest("mixture-lm", [Path(self.path)], self.settings.arithmetic())

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target; with the end symbol if `pairs.whole`."""
        lines = [" ".join(map(unescape, words)) for words in pairs.targets]
        scores = self.model.score(lines)
        ends = None if pairs.whole else -1
        return np.array([sum(line.log_probs[:ends]) for line in scores], np.float64)


# ---- neural lm ---------------------------------------------------------------------------------------------
# log p(target) by a neural language model: feed-forward (CSLM; van Merriënboer 2018, section 4.4.1) or
# recurrent.


class NeuralLM(PairFeature):
    """A language model's run as a feature. Moses' escapes are undone first.

    A sentence is scored from its beginning to its end symbol; a phrase is scored as the beginning of a
    sentence, without an end symbol. With settings.assume_normalized, log Z is taken as 0. settings.backoff:
    ARPA file of text without escapes, by which p(UNK) is divided among unknown words."""

    def __init__(self, run: SavedLM, settings: FeatureSettings) -> None:
        """ConfigError for a run of raw text of an unknown language, and if log Z is to be taken as 0 although
        the model was not trained with a normalizer; DataError for a file that is not ARPA."""
        check_detokenizes(run.directory, target=run.text)
        self.run, self.settings = run, settings
        self.scorer = choose_scorer(run.model, settings.assume_normalized, run.directory)
        backoff = count_models.read_arpa(settings.backoff) if settings.backoff else None
        self.shares = UnknownShares(backoff, run.words.ids) if backoff else None

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "NeuralLM | MixtureLM":
        """Load the run of a language model, or a mixture of models from a file of nmt-interpolate."""
        if language_model.is_mixture(spec.path):
            return MixtureLM(spec.path, settings)
        return cls(checkpoint.load_lm(spec.path, settings.checkpoint, settings.device), settings)

    def identity(self) -> str:
        settings = self.settings
        backoff = file_hash(Path(settings.backoff)) if settings.backoff else b""
        return digest("neural-lm", self.run.files(), settings.arithmetic() + backoff)

    def readers(self) -> dict[str, SideReader]:
        return {"target": side_reader(self.run.text, self.run.words)}

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target; with the end symbol if `pairs.whole`."""
        texts = [units(words, self.run.text) for words in pairs.targets]
        values = self.scorer.score_sentences(self.run.encode(texts), ends=pairs.whole)
        return values + [share.sum() for share in self.shares.logs(texts)] if self.shares else values
