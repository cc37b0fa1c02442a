"""log p(target | source) by an encoder-decoder, or log p(source | target) by one of the other direction.

The score of Cho et al. 2014, section 3.1 (chapter 4.3.1), for phrases; for whole sentences the same number.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt import fastmath
from nmt.checkpoint import SavedRun
from nmt.data.vocab import Vocab
from nmt.scoring import pair_scores
from nmt.text.escapes import unescape
from smt_bridge.features.base import Pairs, Reader


class Translation:
    """A run as a feature. Its words are tokenized text without Moses' escapes, so those are undone."""

    def __init__(
        self, run: SavedRun, inverse: bool = False, unknown: str = "plain", precision: str = "fp32"
    ) -> None:
        self.run, self.inverse = run, inverse
        self.products: AbstractContextManager[Any] = (
            nullcontext() if precision == "fp32" else fastmath.Reduced(precision, run.model)
        )
        self.shares = Shares(run.target_words) if unknown == "split" else None

    def readers(self) -> dict[str, Reader]:
        """By side of the table."""
        first, second = (
            Reader(self.run.source.cut, self.run.source_words.ids),
            Reader(self.run.target.cut, self.run.target_words.ids),
        )
        return {"target": first, "source": second} if self.inverse else {"source": first, "target": second}

    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """Natural log p of each pair, the end symbol included."""
        run = self.run
        sources, targets, source_of = pairs.sources, pairs.targets, pairs.source_of
        if self.inverse:
            distinct: dict[tuple[str, ...], int] = {}
            inverse_of = [distinct.setdefault(tuple(target), len(distinct)) for target in targets]
            targets, sources, source_of = (
                [pairs.sources[row] for row in pairs.source_of],
                list(map(list, distinct)),
                inverse_of,
            )
        read = [run.source_words.encode(run.source.cut(list(map(unescape, words)))) for words in sources]
        units = [run.target.cut(list(map(unescape, words))) for words in targets]
        with self.products:
            values = pair_scores(
                run.model, read, [run.target_words.encode(words) for words in units], source_of
            )
        if self.shares:
            values += [self.shares.log(words) for words in units]
        return values


class Shares:
    """What part of p(UNK) belongs to each unknown word: by its count in the training corpus.

    p(UNK) is the chance of *any* unknown word, so that taking it for each of them overestimates all (section
    4.4.2). Shared,
    the probabilities of all words sum to one again. One count is kept for the words that the training corpus
    lacks, together.
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
