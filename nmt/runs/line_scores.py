"""What a language model of any kind says of lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass
class LineScores:
    """A line as the model reads it: natural log p of each unit and of the end of the line."""

    units: list[str]
    log_probs: list[float]  # (units + 1,)
    known: list[bool]  # (units,) is the unit in the vocabulary?


class LineScorer(Protocol):
    """A language model of any kind, by what it says of lines of text."""

    name: str  # of the model, for results
    vocab_size: int  # units that the model knows, the end symbol included; 0 where the file does not say

    @property
    def carries(self) -> bool:
        """Does a line continue from the state after the line before?"""
        ...

    @property
    def raw(self) -> bool:
        """Does it read raw text, so that `tokenized` lines are another text to it?"""
        ...

    def files(self) -> list[Path]:
        """The files that scores depend on, besides the text."""
        ...

    def units(self, lines: Sequence[str], tokenized: bool = False) -> list[list[str]]:
        """The units that each line is read as. `tokenized`: the text is tokenized as the model's was."""
        ...

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]:
        """log p of each line, unit by unit."""
        ...

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]:
        """|log Z| of each distinct context of some lines, for a network trained with lm.normalizer; else
        nothing."""
        ...
