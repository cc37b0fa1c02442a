"""log p(target) by a neural language model (the CSLM of section 4.4.1, or a recurrent one)."""

import numpy as np
from numpy.typing import NDArray

from nmt.checkpoint import SavedLM
from nmt.lm import arpa
from nmt.lm.backoff import UnknownShares
from nmt.lm.protocols import scorer_of
from nmt.text.escapes import unescape
from smt_bridge.features.base import Pairs, Reader


class NeuralLM:
    """A run as a feature. Moses' escapes are undone, as for translation models.

    A sentence is scored from its beginning to its end symbol, a phrase as the beginning of a sentence,
    without end symbol.
    `normalized` takes log Z as 0. `backoff`: an ARPA file, of text without escapes, that shares p(UNK) among
    unknown words.
    """

    def __init__(self, run: SavedLM, normalized: bool = False, backoff: str = "") -> None:
        self.run, self.scorer = run, scorer_of(run.model, normalized, run.directory)
        self.shares = UnknownShares(arpa.read(backoff), run.words.ids) if backoff else None

    def readers(self) -> dict[str, Reader]:
        """By side of the table."""
        return {"target": Reader(self.run.text.cut, self.run.words.ids)}

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """Natural log p of each target."""
        cut, encode = self.run.text.cut, self.run.words.encode
        texts = [cut(list(map(unescape, words))) for words in pairs.targets]
        values = self.scorer.score_sentences(list(map(encode, texts)), ends=pairs.whole)
        return values + [share.sum() for share in self.shares.logs(texts)] if self.shares else values
