"""How far word alignments are from those of people, or of a grammar that wrote the text: the alignment error
rate (Och and Ney 2003)."""

from collections.abc import Iterable
from dataclasses import dataclass

from nmt.formats.pharaoh import GoldLinks, Links


@dataclass
class AlignmentScores:
    """The links of a system A against sure ones S and possible ones P ⊇ S, summed over sentences."""

    links: int = 0  # |A|
    sure: int = 0  # |S|
    found: int = 0  # |A ∩ S|
    allowed: int = 0  # |A ∩ P|

    @property
    def precision(self) -> float:
        """The share of the links that are possible, |A ∩ P| / |A|; 1 without any."""
        return self.allowed / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """The share of the sure links that are found, |A ∩ S| / |S|; 1 without any."""
        return self.found / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), from 0 to 1; 0 where there is nothing to link."""
        total = self.links + self.sure
        return 1 - (self.found + self.allowed) / total if total else 0.0


def score_alignment(gold: Iterable[GoldLinks], found: Iterable[Links]) -> AlignmentScores:
    """The scores of a text, sentence by sentence.

    >>> from nmt.formats.pharaoh import parse, parse_gold
    >>> score_alignment([parse_gold("0-0 1-1 1?2", "")], [parse("0-0 1-2 2-2", "")]).error_rate
    0.4
    """
    scores = AlignmentScores()
    for wanted, links in zip(gold, found, strict=True):
        scores.links += len(links)
        scores.sure += len(wanted.sure)
        scores.found += len(links & wanted.sure)
        scores.allowed += len(links & wanted.possible)
    return scores
