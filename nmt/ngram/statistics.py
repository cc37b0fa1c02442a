"""How many n-grams a text has and how many of another text's are new: why n-gram models stop at about five
words (the document's figure 2.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.ngram.arpa import BOS, EOS, NgramModel, NgramOrder
from nmt.ngram.counting import Counted, NumberedText, count, numbered


@dataclass
class NgramStatistics:
    """The n-grams of one length; sentences have <s> and </s>, and none crosses their edges."""

    words: int  # n
    occurrences: int
    distinct: int
    once: float  # share of the distinct n-grams that occur once
    unseen: float | None  # share of the occurrences in the other text that this text does not have


def statistics(
    sentences: Iterable[Sequence[str]], order: int, others: Sequence[Sequence[str]] = ()
) -> list[NgramStatistics]:
    """The n-grams of 1 to `order` words of a text; `others`: sentences whose n-grams are looked up in it.
    DataError for a text without words, or with <s> or </s>."""
    text = numbered(sentences)
    counted = count(text, order)
    unseen = unseen_shares(text, counted, others)
    found = []
    for n, (here, share) in enumerate(zip(counted, unseen, strict=True), 1):
        raw = here.raw[~here.begins | (here.raw == 0)] if n == 1 else here.raw  # <s> alone is no word
        raw = raw[raw > 0]
        found.append(
            NgramStatistics(
                words=n,
                occurrences=int(raw.sum()),
                distinct=len(raw),
                once=float((raw == 1).mean()) if len(raw) else 0.0,
                unseen=share,
            )
        )
    return found


def unseen_shares(
    text: NumberedText, counted: list[Counted], others: Sequence[Sequence[str]]
) -> list[float | None]:
    """For each length the share of the n-grams of some sentences that the text does not have; None without
    sentences."""
    levels = [
        NgramOrder(keys=here.keys, log10=np.zeros(0), backoff=np.zeros(0)) for here in counted
    ]  # a model without probabilities finds n-grams too
    model = NgramModel(text.words, levels)
    lengths = np.array([len(words) + 2 for words in others], np.int64)
    starts = np.cumsum(lengths) - lengths
    flat = np.fromiter(
        (word for words in others for word in (model.ids[BOS], *model.encode(words), model.ids[EOS])),
        np.int64,
        int(lengths.sum()),
    )
    first = np.repeat(starts, lengths)
    place = np.arange(len(flat)) - first
    shares: list[float | None] = []
    for n, (here, nodes) in enumerate(zip(counted, model.nodes(flat, first), strict=True), 1):
        seen = here.raw[nodes] > 0 if n == 1 else nodes >= 0  # <unk> has a node, whether it occurs or not
        asked = place >= max(n - 1, 1)  # <s> alone is no word
        shares.append(float((~seen[asked]).mean()) if asked.any() else None)
    return shares
