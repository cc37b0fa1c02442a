"""What nmt-score computes: blocks of pairs or lines in, the lines of its outputs out.

The last output is written nowhere: it has sums over each block, for the line that the log ends with.
"""

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nmt.cli import options
from nmt.cli.perplexity import PerplexityTotals
from nmt.errors import ConfigError
from nmt.formats import pharaoh
from nmt.io import files
from nmt.work.texts import Lines


@dataclass(frozen=True)
class ScoringBlock:
    """Rows of lines that are scored together."""

    first: int  # number of the first one, from 0
    rows: Sequence[tuple[str, ...]]  # source and target, with their alignment for a joint model; or one text


class BlockScorer(Protocol):
    """What scores, loaded."""

    def models(self) -> list[Path]:
        """The files that scores depend on, besides the texts."""
        ...

    def check(self, in_parts: bool) -> None:
        """ConfigError or DataError for what cannot be scored, before the first line is. `in_parts`: by
        more than one process."""
        ...

    def lines(self, block: ScoringBlock) -> Lines:
        """The lines that a block adds to each output, and its sums."""
        ...

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """A line for the log of all blocks; empty for none."""
        ...


def load_scorer(args: argparse.Namespace) -> BlockScorer:
    """The models that the options name."""
    if args.input is not None:
        return TextScorer(args)
    return PairScorer(args) if args.alignment is None else AlignedScorer(args)


class PairScorer:
    """log p of each pair by one or several translators."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nmt.runs import alignment
        from nmt.runs.run import Run

        self.args = args
        self.run = Run.of(*args.runs, which=args.checkpoint, device=args.device)
        if args.alignments:
            alignment.check_attention(self.run)
        self.reduced = options.precision_contexts(
            args.precision, [one.model for one in self.run.members], args.device
        )

    def models(self) -> list[Path]:
        """The files of all runs."""
        return self.run.files()

    def check(self, in_parts: bool) -> None:
        """DataError for a line that is too long."""
        from nmt.runs.run import SCORED

        args, run = self.args, self.run
        for path, lengths in ((args.source, run.source_lengths), (args.target, run.target_lengths)):
            limit = lengths.limit(args.max_line_words, path)
            lengths.refuse(files.preview(path), args.tokenized, limit, SCORED)

    def lines(self, block: ScoringBlock) -> Lines:
        """Scores, alignments if they are asked for, and log p and words of the block."""
        from nmt.compute.precision import enter_all
        from nmt.runs import alignment

        args, name = self.args, files.name_of(self.args.source)
        limit = self.run.source_lengths.limit(args.max_line_words, name, block.first)
        with enter_all(self.reduced):
            found = self.run.word_scores(block.rows, args.tokenized, limit)
            outputs = [[score_line(scores, args.word_scores) for scores in found]]
            if args.alignments:
                links = alignment.align(self.run, block.rows, args.tokenized, limit)
                outputs.append([pharaoh.line_of(one) for one in links])
        return [*outputs, [f"{sum(map(sum, found))!r} {sum(map(len, found))}"]]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Means of log p."""
        parts = [line.split() for line in sums]
        total, words = sum(float(part[0]) for part in parts), sum(int(part[1]) for part in parts)
        if not words:
            return ""
        return (
            f"{lines:,} pairs, mean log p {total / lines:.4f}, a word {total / words:.4f}, perplexity "
            f"{math.exp(-total / words):.2f} ({self.run.name})"
        )


class AlignedScorer:
    """log p of each pair by a joint model, given the alignment."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nmt.runs.alignment import load_aligned

        self.args = args
        self.run = load_aligned(args.runs[0], args.checkpoint, args.device)

    def models(self) -> list[Path]:
        """The files of the run."""
        return self.run.files()

    def check(self, in_parts: bool) -> None:
        """Nothing."""

    def lines(self, block: ScoringBlock) -> Lines:
        """Scores."""
        from nmt.runs.alignment import aligned_word_scores

        name = files.name_of(self.args.alignment)
        found = aligned_word_scores(self.run, block.rows, self.args.tokenized, name, block.first)
        return [[score_line(scores, self.args.word_scores) for scores in found], []]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """None."""
        return ""


class TextScorer:
    """log p of each line by a language model."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nmt.runs.language_model import line_scorer

        self.args = args
        self.model = line_scorer(
            args.runs[0], args.checkpoint, args.device, args.assume_normalized, args.backoff
        )

    def models(self) -> list[Path]:
        """The files of the model, or of all models of a mixture."""
        given = [path for path in (self.args.runs[0], self.args.backoff) if os.path.isfile(path)]
        return [*self.model.files(), *map(Path, given)]

    def check(self, in_parts: bool) -> None:
        """ConfigError for a model whose lines depend on those before, unless one process scores all."""
        if in_parts and self.model.carries:
            raise ConfigError(
                f"{self.args.runs[0]}: lm.carry: each line depends on those before it; score it in one "
                "process, without --workers, --cluster and --resume"
            )

    def lines(self, block: ScoringBlock) -> Lines:
        """Scores, and the sums of the block."""
        texts = [line for (line,) in block.rows]
        totals, outputs = PerplexityTotals(), list[str]()
        for line, scored in zip(texts, self.model.score(texts, self.args.tokenized), strict=True):
            outputs.append(score_line(scored.log_probs, self.args.word_scores))
            totals.add(line, scored)
        return [outputs, [totals.packed()]]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Both perplexities."""
        totals = PerplexityTotals()
        for packed in sums:
            totals.add_packed(packed)
        return f"{lines:,} lines, {totals.perplexities()} ({self.model.name})" if lines else ""


def score_line(scores: Sequence[float], words: bool) -> str:
    """A line of the output: the sum of the scores of the words, and with `words` each of them."""
    each = " ||| " + " ".join(f"{value:.6f}" for value in scores) if words else ""
    return f"{sum(scores):.6f}{each}"
