"""Scores of lines of text: the interface of language models of any kind, and n-gram models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.io import files
from nmt.io.files import check_lines
from nmt.ngram import count_models, trie_files


@dataclass
class LineScores:
    """The scores of a line: natural log p of each unit and of the end of the line."""

    units: list[str]
    log_probs: list[float]  # (units + 1,)
    in_vocabulary: list[bool]  # (units,) whether the unit is in the vocabulary


class LineScorer:
    """Interface of language models of any kind: their scores of lines of text."""

    name: str  # of the model, for results
    vocab_size: int  # units that the model knows, the end symbol included; 0 where the file does not say

    @property
    def carries(self) -> bool:
        """Whether the state is carried over from line to line, even from call to call."""
        return False

    @property
    def raw(self) -> bool:
        """Whether it reads raw text; tokenized lines would then be scored wrongly."""
        return False

    def files(self) -> list[Path]:
        """The files that scores depend on, besides the text."""
        raise NotImplementedError

    def units(self, lines: Sequence[str]) -> list[list[str]]:
        """Split each line into the units that are scored."""
        raise NotImplementedError

    def score(self, lines: Sequence[str]) -> list[LineScores]:
        """log p of each line, unit by unit."""
        raise NotImplementedError

    def log_z(self, lines: Sequence[str]) -> list[float]:
        """|log Z| of each distinct context of some lines, for a network trained with lm.normalizer; else
        nothing."""
        return []


class CountLineScorer(LineScorer):
    """A count-based n-gram model; words are separated by blanks."""

    def __init__(self, path: str) -> None:
        self.model, self.path = count_models.load_count_model(path), Path(path)
        self.name = self.path.name
        self.vocab_size = self.model.vocab_size

    def __repr__(self) -> str:
        return f"<LineScorer {self.name}: n-gram model, {max(0, self.vocab_size):,} words>"

    def files(self) -> list[Path]:
        return [trie_files.identity_file(self.path)]

    def units(self, lines: Sequence[str]) -> list[list[str]]:
        check_lines(lines)
        return [files.split_words(line) for line in lines]

    def score(self, lines: Sequence[str]) -> list[LineScores]:
        texts = self.units(lines)
        line_scores = self.model.scores(texts)
        return [
            LineScores(units=text, log_probs=scores.tolist(), in_vocabulary=list(map(self.model.knows, text)))
            for text, scores in zip(texts, line_scores, strict=True)
        ]
