"""The source phrases of a table that nmt-analyze phrases shows (Tables 4.2 and 4.3)."""

import heapq
from dataclasses import dataclass
from itertools import groupby

from nmt.config.settings import number
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair


@dataclass
class PhrasesConfig:
    """Which source phrases are shown, and how many targets of each."""

    sources: int = number(5, least=1, help="source phrases of each kind")
    # The text says "more than 3", "at least 4" and "more than 4 or 5".
    min_words: int = number(4, least=1, help="fewest words of a source phrase")
    min_targets: int = 4
    best: int = 3  # targets by the table and by the model, as in Table 4.2
    samples: int = number(50, least=1, most=100_000, help="draws for each source phrase")  # as in Table 4.3
    shown: int = 5  # of the different draws
    seed: int = number(1, least=0, help="random seed of the draws")


def choose(table: str, config: PhrasesConfig) -> list[tuple[str, list[PhrasePair]]]:
    """The most frequent and the rarest long source phrases: (kind, pairs of the source).

    Of equally frequent ones the first in the table is taken.
    """
    heaps: dict[str, list[tuple[tuple[int, int], list[PhrasePair]]]] = {"frequent": [], "rare": []}
    for place, (source, group) in enumerate(groupby(phrase_table.read(table), key=lambda pair: pair.source)):
        if len(source.split()) < config.min_words:
            continue
        pairs = list(group)
        if len(pairs) < config.min_targets:
            continue
        count = phrase_table.source_count(pairs[0])
        for kind, rank in (("frequent", (count, -place)), ("rare", (-count, -place))):
            heapq.heappush(heaps[kind], (rank, pairs))
            if len(heaps[kind]) > config.sources:
                heapq.heappop(heaps[kind])
    return [
        (kind, pairs)
        for kind, heap in heaps.items()
        for _, pairs in sorted(heap, key=lambda item: item[0], reverse=True)
    ]
