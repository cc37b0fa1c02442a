"""log p(target phrase | source phrase) by an encoder-decoder: the score of Cho et al. 2014, section 3.1."""

from collections.abc import Sequence

from nmt import phrase_table
from nmt.checkpoint import Run
from nmt.phrase_table import PhrasePair
from nmt.scoring import word_scores


class Translation:
    """A run as a feature of phrase pairs. Phrases are tokenized text; Moses' escapes are undone for the model only."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def score(self, pairs: Sequence[PhrasePair]) -> list[float]:
        """Natural log p of each pair, the end symbol included."""
        run = self.run
        encoded = [
            (
                run.source_words.encode(run.source.cut(phrase_table.words(pair.source))),
                run.target_words.encode(run.target.cut(phrase_table.words(pair.target))),
            )
            for pair in pairs
        ]
        return [sum(scores) for scores in word_scores(run.model, encoded)]
