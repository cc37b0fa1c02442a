"""log p(target) by a neural language model (the CSLM of section 4.4.1, or a recurrent one)."""

import numpy as np
from numpy.typing import NDArray

from nmt.checkpoint import SavedLM
from nmt.errors import ConfigError
from nmt.lm import arpa
from nmt.lm.backoff import Shares
from nmt.lm.cslm import CSLM
from nmt.scoring import text_scores
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
        if normalized and not (isinstance(run.model, CSLM) and run.config.normalizer):
            raise ConfigError(
                f"--assume-normalized: {run.directory} is not a CSLM trained with lm.normalizer"
            )
        self.run, self.normalized = run, normalized
        self.shares = Shares(arpa.read(backoff), run.words.ids) if backoff else None

    def readers(self) -> dict[str, Reader]:
        """By side of the table."""
        return {"target": Reader(self.run.text.cut, self.run.words.ids)}

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """Natural log p of each target."""
        cut, encode = self.run.text.cut, self.run.words.encode
        texts = [cut(list(map(unescape, words))) for words in pairs.targets]
        values = text_scores(self.run.model, list(map(encode, texts)), self.normalized, ends=pairs.whole)
        return values + [share.sum() for share in self.shares.logs(texts)] if self.shares else values
