"""Scorers of nmt-score: they turn blocks of pairs or lines into lines of the outputs.

The last output is not written to a file: it holds sums over each block, for the summary in the log.
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
    """Lines that are scored together."""

    first: int  # number of the first line, from 0
    rows: Sequence[tuple[str, ...]]  # (source, target), with alignment for a joint model; (text,) for an LM


class BlockScorer(Protocol):
    """Scores blocks of lines by loaded models."""

    def models(self) -> list[Path]:
        """The files, besides the texts, that scores depend on."""
        ...

    def check(self, in_parts: bool) -> None:
        """ConfigError or DataError for options and lines that cannot be scored, before any work. `in_parts`:
        several processes may score."""
        ...

    def lines(self, block: ScoringBlock) -> Lines:
        """The lines that a block adds to each output, and as last output its sums."""
        ...

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Summary of all blocks for the log; empty for none."""
        ...


def load_scorer(args: argparse.Namespace) -> BlockScorer:
    """Load the models that the options name."""
    if args.input is not None:
        return MonolingualScorer(args)
    return PairScorer(args) if args.alignment is None else AlignedScorer(args)


class PairScorer:
    """Scores pairs by one translator or an ensemble."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nmt.runs import alignment
        from nmt.runs.run import Run

        self.args = args
        run = Run.of(*args.runs, which=args.checkpoint, device=args.device)
        self.run = run.for_text(args.tokenized)
        if args.alignments:
            alignment.check_attention(self.run)
        self.precision = options.precision_contexts(
            args.precision, [member.model for member in self.run.members], args.device
        )

    def models(self) -> list[Path]:
        return self.run.files()

    def check(self, in_parts: bool) -> None:
        """DataError for a line that is too long."""
        from nmt.runs.run import SCORED

        args, run = self.args, self.run
        for path, lengths in ((args.source, run.source_lengths), (args.target, run.target_lengths)):
            limit = lengths.limit(args.max_line_words, path)
            lengths.refuse(files.preview(path), limit, SCORED)

    def lines(self, block: ScoringBlock) -> Lines:
        """Scores, alignments with --alignments, and the sums of log p and words."""
        from nmt.compute.precision import enter_all
        from nmt.runs import alignment

        args, name = self.args, files.name_of(self.args.source)
        limit = self.run.source_lengths.limit(args.max_line_words, name, block.first)
        with enter_all(self.precision):
            scores = self.run.word_scores(block.rows, limit)
            outputs = [[score_line(row, args.word_scores) for row in scores]]
            if args.alignments:
                links = alignment.align(self.run, block.rows, limit)
                outputs.append(list(map(pharaoh.line_of, links)))
        return [*outputs, [f"{sum(map(sum, scores))!r} {sum(map(len, scores))}"]]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Mean log p of a pair and of a word."""
        fields = [line.split() for line in sums]
        total, words = sum(float(log_prob) for log_prob, _ in fields), sum(int(count) for _, count in fields)
        if not words:
            return ""
        return (
            f"{lines:,} pairs, mean log p {total / lines:.4f}, a word {total / words:.4f}, perplexity "
            f"{math.exp(-total / words):.2f} ({self.run.name})"
        )


class AlignedScorer:
    """Scores pairs with their alignment by a joint model."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nmt.runs.alignment import load_aligned

        self.args = args
        self.run = load_aligned(args.runs[0], args.checkpoint, args.device).for_text(args.tokenized)

    def models(self) -> list[Path]:
        return self.run.files()

    def check(self, in_parts: bool) -> None:
        """Accept everything: lines are checked when they are scored."""

    def lines(self, block: ScoringBlock) -> Lines:
        """Scores, and nothing as sums."""
        from nmt.runs.alignment import aligned_word_scores

        name = files.name_of(self.args.alignment)
        scores = aligned_word_scores(self.run, block.rows, name, block.first)
        return [[score_line(row, self.args.word_scores) for row in scores], []]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        return ""


class MonolingualScorer:
    """Scores lines by a language model."""

    def __init__(self, args: argparse.Namespace) -> None:
        from nmt.runs.language_model import line_scorer

        self.args = args
        self.model = line_scorer(
            args.runs[0], args.checkpoint, args.device, args.assume_normalized, args.backoff, args.tokenized
        )

    def models(self) -> list[Path]:
        """The files of the model, or of all members of a mixture, and of --backoff."""
        paths = [path for path in (self.args.runs[0], self.args.backoff) if os.path.isfile(path)]
        return [*self.model.files(), *map(Path, paths)]

    def check(self, in_parts: bool) -> None:
        """ConfigError where several processes may score lines that depend on the previous ones."""
        if in_parts and self.model.carries:
            raise ConfigError(
                f"{self.args.runs[0]}: lm.carry: each line depends on those before it; score it in one "
                "process, without --workers, --cluster and --resume"
            )

    def lines(self, block: ScoringBlock) -> Lines:
        """Scores, and packed totals as sums."""
        texts = [line for (line,) in block.rows]
        totals, outputs = PerplexityTotals(), list[str]()
        for line, scored in zip(texts, self.model.score(texts), strict=True):
            outputs.append(score_line(scored.log_probs, self.args.word_scores))
            totals.add(line, scored)
        return [outputs, [totals.pack()]]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """The perplexities with and without unknown units."""
        totals = PerplexityTotals()
        for packed in sums:
            totals.add_packed(packed)
        return f"{lines:,} lines, {totals.perplexities()} ({self.model.name})" if lines else ""


def score_line(scores: Sequence[float], words: bool) -> str:
    """Format the log p of a line, and with `words` also that of each unit."""
    each = " ||| " + " ".join(f"{value:.6f}" for value in scores) if words else ""
    return f"{sum(scores):.6f}{each}"
