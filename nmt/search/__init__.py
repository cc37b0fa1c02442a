"""Beam search and sampling over any model with the methods start, step and reorder. This module defines what
they return; it does not import torch."""

from dataclasses import dataclass, field


@dataclass
class FinishedHypothesis:
    """Ids without the end symbol, natural log p with it, and the score that ranks hypotheses."""

    words: list[int]
    log_prob: float
    score: float
    complete: bool = True  # False: ended by the length limit
    looked_at: list[int] = field(default_factory=list)  # source position of most attention, by word
