"""nmt-score: log p(target | source) of sentence pairs, or log p of lines, one number a line."""

import logging
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from nmt.cli import jobs, options
from nmt.cli.arguments import InputPath, OutputPath
from nmt.cli.jobs import ChunkComputer, TextJob
from nmt.cli.perplexity import PerplexityTotals, perplexity
from nmt.errors import ConfigError
from nmt.formats import pharaoh
from nmt.io import files
from nmt.io.numbers import counted
from nmt.io.progress import Total
from nmt.runs.run import SCORED, Run
from nmt.work.text_chunks import Lines, TextChunk

log = logging.getLogger(__name__)

READ_AHEAD = 2000  # pairs that are sorted by length and scored together

# ---- scorers -----------------------------------------------------------------------------------------------
# Scorers turn blocks of pairs or lines into lines of the outputs. A last output, which is not written to a
# file, has the sums of each block, for the summary in the log.


@dataclass(frozen=True)
class ScoringBlock:
    """Lines that are scored together."""

    first: int  # number of the first line, from 0
    rows: Sequence[tuple[str, ...]]  # (source, target), with alignment for a joint model; (text,) for an LM


class BlockScorer(ChunkComputer[ScoringBlock]):
    """Scores blocks of lines with loaded models. The last output of `lines` is the sums."""

    def check(self, in_parts: bool) -> None:
        """Check options and texts before any work. ConfigError or DataError if they cannot be scored.
        `in_parts`: whether several processes may score."""

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Summarize the sums of all blocks for the log; empty if there is nothing to report."""
        return ""


def load_scorer(args: Namespace) -> BlockScorer:
    """Load the models that the options name. ConfigError or CheckpointError for one that cannot be loaded or
    does not support the options, DataError for a damaged language model."""
    if args.input is not None:
        return MonolingualScorer(args)
    return PairScorer(args) if args.alignment is None else AlignedScorer(args)


class PairScorer(BlockScorer):
    """Scores pairs with one translator or an ensemble."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        run = Run.of(*args.runs, which=args.checkpoint, device=args.device, threads=args.threads or 0)
        self.run = run.for_text(args.tokenized)
        if args.alignments:
            from nmt.runs.torch_run import check_attention

            check_attention(self.run)
        self.precision = options.precision_contexts(args.precision, self.run.modules, args.device)

    def models(self) -> list[Path]:
        return self.run.files()

    def check(self, in_parts: bool) -> None:
        """DataError for a line of either text that is too long."""
        args, run = self.args, self.run
        for path, lengths in ((args.source, run.source_lengths), (args.target, run.target_lengths)):
            limit = lengths.limit(args.max_line_words, path)
            lengths.refuse(files.preview(path), limit, SCORED)

    def lines(self, block: ScoringBlock) -> Lines:
        """Compute the scores, with --alignments the alignments, and the sums of log p and of words."""
        args, name = self.args, files.name_of(self.args.source)
        limit = self.run.source_lengths.limit(args.max_line_words, name, block.first)
        with options.enter_all(self.precision):
            scores = self.run.word_scores(block.rows, limit)
            outputs = [[score_line(row, args.word_scores) for row in scores]]
            if args.alignments:
                from nmt.runs.torch_run import align

                links = align(self.run, block.rows, limit)
                outputs.append(list(map(pharaoh.format_links, links)))
        return [*outputs, [f"{sum(map(sum, scores))!r} {sum(map(len, scores))}"]]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Report the mean log p of a pair and of a word."""
        fields = [line.split() for line in sums]
        total, words = sum(float(log_prob) for log_prob, _ in fields), sum(int(count) for _, count in fields)
        if not words:
            return ""
        return (
            f"{counted(lines, 'pair')}, mean log p {total / lines:.4f}, a word {total / words:.4f}, "
            f"perplexity {perplexity(total, words):.2f} ({self.run.name})"
        )


class AlignedScorer(BlockScorer):
    """Scores aligned pairs with a joint model."""

    def __init__(self, args: Namespace) -> None:
        from nmt.runs.joint import load_aligned

        self.args = args
        self.run = load_aligned(args.runs[0], args.checkpoint, args.device).for_text(args.tokenized)

    def models(self) -> list[Path]:
        return self.run.files()

    def lines(self, block: ScoringBlock) -> Lines:
        """Compute the scores; the sums are empty."""
        from nmt.runs.joint import aligned_word_scores

        name = files.name_of(self.args.alignment)
        scores = aligned_word_scores(self.run, block.rows, name, block.first)
        return [[score_line(row, self.args.word_scores) for row in scores], []]


class MonolingualScorer(BlockScorer):
    """Scores lines with a language model."""

    def __init__(self, args: Namespace) -> None:
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
        """ConfigError if several processes may score, but lines depend on those before them."""
        if in_parts and self.model.carries:
            raise ConfigError(
                f"{self.args.runs[0]}: lm.carry: each line depends on those before it; score it in one "
                "process, without --workers, --cluster and --resume"
            )

    def lines(self, block: ScoringBlock) -> Lines:
        """Compute the scores; the sums are the totals for perplexities, packed into a line."""
        texts = [line for (line,) in block.rows]
        totals, outputs = PerplexityTotals(), list[str]()
        for line, scored in zip(texts, self.model.score(texts), strict=True):
            outputs.append(score_line(scored.log_probs, self.args.word_scores))
            totals.add(line, scored)
        return [outputs, [totals.pack()]]

    def summary(self, sums: Sequence[str], lines: int) -> str:
        """Report the perplexities with and without unknown units."""
        totals = PerplexityTotals()
        for packed in sums:
            totals.add_packed(packed)
        return f"{counted(lines, 'line')}, {totals.perplexities()} ({self.model.name})" if lines else ""


def score_line(scores: Sequence[float], words: bool) -> str:
    """Format the log p of a line, and with `words` also that of each unit."""
    each = " ||| " + " ".join(f"{value:.6f}" for value in scores) if words else ""
    return f"{sum(scores):.6f}{each}"


# ---- options -----------------------------------------------------------------------------------------------


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-score",
        "Score text line by line: natural log p(target | source) of sentence pairs by a translator, or log p "
        "of lines by a language model. Scores include the end of the sentence.",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=InputPath,
        metavar="RUN_DIR|ARPA|BINARY",
        help="run directories made by nmt-train; several translators form an ensemble, which averages their "
        "probabilities. Or one language model: run directory, ARPA file, KenLM binary, or mixture written "
        "by nmt-interpolate",
    )
    options.add_compute(parser)
    options.add_precision(parser)
    parser.add_argument(
        "--source", "-s", type=InputPath, metavar="FILE", help="source text; plain, gzip, or -"
    )
    parser.add_argument("--target", "-t", type=InputPath, metavar="FILE", help="target text, line by line")
    parser.add_argument(
        "--alignment",
        "-a",
        type=InputPath,
        metavar="FILE",
        help="for a joint model: word alignment of both texts, lines of points 0-0 1-2",
    )
    options.add_output(parser)
    parser.add_argument(
        "--alignments",
        type=OutputPath,
        metavar="FILE",
        help="also write the word alignment of each pair, 0-0 1-2 ..., from the greatest attention of each "
        "target word; for models with attention",
    )
    parser.add_argument(
        "--word-scores",
        action="store_true",
        help="append ` ||| ` and the log p of each unit and of the end symbol",
    )
    parser.add_argument(
        "--tokenized", action="store_true", help="both texts are tokenized like the training text"
    )
    options.add_max_line_words(
        parser, "are refused by a translator", ", or what the training allowed if that is more"
    )
    add_language_model(parser)
    jobs.add_options(parser.add_argument_group("jobs"))
    options.add_quiet(parser)
    return parser


def add_language_model(parser: options.Parser) -> None:
    group = parser.add_argument_group("language models")
    group.add_argument(
        "--input", "-i", type=InputPath, metavar="FILE", help="text to score; plain, gzip, or -"
    )
    options.add_network_scores(group)


def check_options(args: Namespace) -> None:
    """ConfigError for options that exclude each other."""
    pairs = any(path is not None for path in (args.source, args.target, args.alignment))
    if args.input is not None:
        if pairs or len(args.runs) > 1 or args.precision != "fp32" or args.alignments:
            raise ConfigError(
                "--input is scored by one language model, in fp32; a translator needs --source and --target "
                "instead"
            )
    elif args.source is None or args.target is None:
        raise ConfigError("expected --source and --target for a translator, or --input for a language model")
    elif args.assume_normalized or args.backoff:
        raise ConfigError(
            "--assume-normalized and --backoff are for language models, with --input; leave them out"
        )
    elif args.alignments and args.alignment is not None:
        raise ConfigError(
            "--alignments: a joint model has no attention, it reads the --alignment; leave --alignments out"
        )
    options.refuse_exported(args, args.runs, ("input", "alignment", "alignments"))
    if args.alignment is not None and (len(args.runs) > 1 or args.precision != "fp32"):
        raise ConfigError("--alignment is for one joint model, in fp32")


# ---- the command -------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    check_options(args)
    texts = text_paths(args)
    if args.input is not None:
        number: Total = partial(files.number_of_lines, args.input)
    else:
        number = files.check_parallel(*texts)  # before the first pair is scored
    job = TextJob(args, "nmt-score", texts)
    with job.lock():
        score_texts(args, job, number)


def text_paths(args: Namespace) -> list[str]:
    """The paths of the texts; messages name the first."""
    if args.input is not None:
        return [args.input]
    return [args.source, args.target, *([args.alignment] if args.alignment else [])]


def score_texts(args: Namespace, job: TextJob, number: Total) -> None:
    """Load the models, score the texts and write the scores. `number`: of pairs or lines, 0 if unknown."""
    set_up = job.set_up_torch(args.runs[0]) if is_neural(args) else ""
    work = load_scorer(args)
    work.check(job.in_parts)
    paths = [args.output, *([args.alignments] if args.alignments else [])]
    unit = "pairs" if args.input is None else "lines"
    sums, lines = list[str](), 0
    with (
        job.run(load_scorer, work) as compute,
        job.open_outputs(paths) as write,
        options.progress(args, unit, number, set_up) as progress,
    ):
        for done in compute(chunks(job.inputs)):
            write(done)
            sums += done.outputs[-1]
            lines += done.count
            jobs.advance(progress, done)
    if summary := work.summary(sums, lines):
        log.info("%s", summary)


def is_neural(args: Namespace) -> bool:
    """Whether the models are networks."""
    if args.input is None:
        return True
    from nmt.runs import language_model  # imports NumPy, which exported runs need not

    return language_model.needs_torch(args.runs[0])


def chunks(texts: Sequence[str]) -> Iterator[TextChunk[ScoringBlock]]:
    """Cut the texts into blocks that are scored together."""
    rows, first = files.parallel(*texts), 0
    while block := list(islice(rows, READ_AHEAD)):
        yield TextChunk(first, len(block), ScoringBlock(first, block))
        first += len(block)


if __name__ == "__main__":
    sys.exit(main())
