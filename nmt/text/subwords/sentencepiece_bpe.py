"""Byte-pair encoding by SentencePiece, of raw text; in training merges may be left out (BPE dropout)."""

import heapq
import random
from typing import ClassVar

from nmt.text.subwords.pieces import Pieces, recut
from nmt.text.subwords.protocol import Sampler
from nmt.text.vocab import Vocab


class SentencePieceBPE(Pieces):
    """A SentencePiece model of type BPE."""

    kind: ClassVar[str] = "sentencepiece-bpe"
    model_type: ClassVar[str] = "bpe"
    rate_key: ClassVar[str] = "bpe_dropout"

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """BPE dropout."""
        return DroppedPieces(self.pieces(), rate, vocab)


class DroppedPieces:
    """Merges the best pair of neighbors first, the leftmost of equals, as the library does, but leaves out
    each with the chance `rate` (Provilkov et al. 2020). Bytes and unknown characters stay as they are."""

    def __init__(self, pieces: dict[str, float], rate: float, vocab: Vocab) -> None:
        self.scores = {piece: score for piece, score in pieces.items() if piece in vocab.ids}
        self.rate, self.vocab = rate, vocab

    def __call__(self, ids: list[int], key: str) -> list[int]:
        draw = random.Random(key)
        units = self.vocab.decode(ids)
        return self.vocab.encode(recut(units, self.scores, lambda text: self.merge(list(text), draw)))

    def merge(self, symbols: list[str], draw: random.Random) -> list[str]:
        """The pieces of a text, given as characters. A symbol that was merged into its left neighbor is
        empty."""
        after = [*range(1, len(symbols)), -1]
        before = list(range(-1, len(symbols) - 1))
        waiting: list[tuple[float, int, str, int]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right >= 0:
                pair = symbols[left] + symbols[right]
                if pair in self.scores:
                    heapq.heappush(waiting, (-self.scores[pair], left, pair, right))

        for left in range(len(symbols) - 1):
            offer(left, left + 1)
        while waiting:
            _, left, pair, right = heapq.heappop(waiting)
            if after[left] != right or symbols[left] + symbols[right] != pair:
                continue  # one of the two was merged meanwhile
            if draw.random() < self.rate:
                continue
            symbols[left], symbols[right] = pair, ""
            after[left] = after[right]
            if after[right] >= 0:
                before[after[right]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [symbol for symbol in symbols if symbol]
