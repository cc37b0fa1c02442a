"""Beam search and sampling over any model with the methods start, step, reorder and join. This module defines
what they return; it does not import torch."""

from dataclasses import dataclass, field


@dataclass
class FinishedHypothesis:
    """A finished result of search or sampling: a translation, or a text of a language model."""

    words: list[int]  # ids, without the end symbol
    log_prob: float  # natural log p, that of the end symbol included
    score: float  # ranks the hypotheses of a sentence, higher is better
    complete: bool = True  # False: ended by the length limit
    # The source position that each word attended to most; empty without attention.
    looked_at: list[int] = field(default_factory=list)
