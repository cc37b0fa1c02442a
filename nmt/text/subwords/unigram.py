"""The unigram model of SentencePiece (Kudo 2018): the most probable cut, or in training one drawn from
p(cut) ** alpha."""

import math
import random
from typing import ClassVar

from nmt.text.subwords.pieces import Pieces, recut
from nmt.text.subwords.protocol import Sampler
from nmt.text.vocab import Vocab


class Unigram(Pieces):
    """A SentencePiece model of type unigram."""

    kind: ClassVar[str] = "unigram"
    model_type: ClassVar[str] = "unigram"
    rate_key: ClassVar[str] = "unigram_sampling"

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """Subword regularization; `rate` is alpha."""
        return Resegmented(self.pieces(), rate, vocab)


class Resegmented:
    """Draws cuts of a text with probability p(cut) ** alpha, up to a constant: forward sums, then a walk
    backward (section 3.2, l = infinity).

    Bytes and unknown characters stay as they are.
    """

    def __init__(self, pieces: dict[str, float], alpha: float, vocab: Vocab) -> None:
        self.weights = {piece: alpha * score for piece, score in pieces.items() if piece in vocab.ids}
        self.longest = max(map(len, self.weights), default=0)
        self.vocab = vocab

    def __call__(self, ids: list[int], key: str) -> list[int]:
        draw = random.Random(key)
        units = self.vocab.decode(ids)
        return self.vocab.encode(recut(units, self.weights, lambda text: self.cut(text, draw)))

    def cut(self, text: str, draw: random.Random) -> list[str]:
        """A cut of a text that has one."""
        totals, arcs = [0.0], list[list[tuple[int, float]]]([[]])
        for end in range(1, len(text) + 1):
            found = [
                (start, totals[start] + weight)
                for start in range(max(0, end - self.longest), end)
                if (weight := self.weights.get(text[start:end])) is not None and totals[start] > -math.inf
            ]
            arcs.append(found)
            totals.append(log_sum([value for _, value in found]))
        units, end = list[str](), len(text)
        while end:
            chances = [math.exp(value - totals[end]) for _, value in arcs[end]]
            [(start, _)] = draw.choices(arcs[end], chances)
            units.append(text[start:end])
            end = start
        return units[::-1]


def log_sum(values: list[float]) -> float:
    """log of the sum of exp(value); of none -inf."""
    top = max(values, default=-math.inf)
    return top + math.log(sum(math.exp(value - top) for value in values)) if values else top
