"""log p(target | source, alignment) by a joint model (Devlin et al. 2014), for the hypotheses of n-best
lists."""

import numpy as np

from nmt.data.aligned import source_windows, target_contexts
from nmt.errors import ConfigError
from nmt.runs import aligned
from nmt.runs.aligned import SavedAligned
from nmt.text.escapes import unescape
from nmt.text.vocab import EOS
from smt_bridge.features.base import Reader, Values, WordPairs, digest, run_files
from smt_bridge.features.spec import FeatureSettings, FeatureSpec


class Joint:
    """A run as a feature. Moses' escapes are undone. settings.assume_normalized takes log Z as 0."""

    word_aligned = True

    def __init__(self, run: SavedAligned, settings: FeatureSettings) -> None:
        """ConfigError where log Z is taken as 0, but the model was not trained for that."""
        self.run, self.settings = run, settings
        if settings.assume_normalized and not run.model.normalizer:
            raise ConfigError(f"--assume-normalized: {run.directory} was not trained with model.normalizer")
        self.scores = run.model.window_scores(settings.assume_normalized, keep_tables=True)

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "Joint":
        """From a joint model's run directory."""
        return cls(aligned.load(spec.path, settings.checkpoint, settings.device), settings)

    def identity(self) -> str:
        """See Feature."""
        return digest("joint", run_files(self.run.directory, self.run.step), self.settings.arithmetic())

    def readers(self) -> dict[str, Reader]:
        """Both sides."""
        run = self.run
        return {
            "source": Reader(cut=run.source.cut, known=run.source_words.ids),
            "target": Reader(cut=run.target.cut, known=run.target_words.ids),
        }

    def score(self, pairs: WordPairs) -> Values:
        """Natural log p of each target, the end symbol included. ConfigError for pairs without alignment."""
        if pairs.affiliations is None:
            raise ConfigError(
                "joint: scores whole sentences with their word alignment, which only n-best lists have; use "
                "it in smt-rescore, or in the search (NNJM in the moses.ini)"
            )
        run, shape = self.run, self.scores.shape
        sources = [
            run.source_words.encode(run.source.cut(list(map(unescape, words)))) for words in pairs.sources
        ]
        targets = [
            run.target_words.encode(run.target.cut(list(map(unescape, words)))) for words in pairs.targets
        ]
        parts = self.scores.source_part(
            np.concatenate([source_windows(ids, shape.window) for ids in sources])
        )
        starts = np.cumsum([0, *(len(ids) + 1 for ids in sources)])
        places = [
            starts[source] + np.array([*affiliation, len(sources[source])], np.int64)
            for source, affiliation in zip(pairs.source_of, pairs.affiliations, strict=True)
        ]
        contexts = np.concatenate([target_contexts(ids, shape.order) for ids in targets])
        words = np.array([word for ids in targets for word in (*ids, EOS)], np.int64)
        found = self.scores.score(parts, np.concatenate(places), contexts, words)
        return np.add.reduceat(found, np.cumsum([0, *(len(ids) + 1 for ids in targets[:-1])]))
