"""smt-select: select the lines of a large text that are most similar to a text of the domain."""

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_settings, parse_settings, positive
from nmt.cli.jobs import TextJob, advance
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.io.progress import Progress
from nmt.ngram.selection_config import SelectionConfig
from nmt.work.text_chunks import FinishedChunk, Lines, TextChunk

if TYPE_CHECKING:
    from nmt.ngram.selection import Side, Trial
    from nmt.ngram.text_scorer import Floats

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-select",
        "Select the lines of a general text that are most similar to a text of the domain, by the difference "
        "of their cross-entropies (Moore and Lewis 2010); of parallel text, by both sides (Axelrod et al. "
        "2011). Selected lines stay in order.",
    )

    def add(*names: str, kind: type[str], what: str) -> None:
        parser.add_argument(*names, type=kind, nargs="+", required=True, metavar="FILE", help=what)

    add("--in-domain", kind=InputPath, what="tokenized text of the domain: one file, or both sides")
    add("--general", "-g", kind=InputPath, what="tokenized text to select from: one file, or both sides")
    add("--output", "-o", kind=OutputPath, what="selected lines, one file for each of --general")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--keep", type=positive, metavar="N", help="select the best N lines")
    size.add_argument(
        "--words", type=positive, metavar="N", help="select the best lines up to N words on the last side"
    )
    size.add_argument(
        "--dev",
        type=InputPath,
        metavar="FILE",
        help="try several numbers of lines: estimate an n-gram model on the last side of each selection, and "
        "select the number with the lowest perplexity on this text; prints a table",
    )
    parser.add_argument(
        "--scores",
        type=OutputPath,
        metavar="FILE",
        default=None,
        help="write the difference of each line of --general; lower is more similar to the domain",
    )
    add_settings(parser, SelectionConfig, "order", "min_count", "steps", "seed")
    jobs.add_options(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    own_parser = parser()
    args = options.parse(own_parser, argv)
    from nmt.ngram import selection

    if not args.dev:
        options.refuse_alone(own_parser, args, ("steps",), "--dev FILE")
    selection.check(args.in_domain, args.general, args.output)
    files.require_files((*args.in_domain, *args.general), "the texts are read more than once")
    if args.dev and "-" in (*args.output, args.scores):
        raise ConfigError("- (stdout): the table of --dev is printed there; write to files")
    for paths in (args.in_domain, args.general):
        files.check_parallel(*paths)
    job = TextJob(args, "smt-select", args.general, output=args.output[0])
    with job.lock(), score_lines(args, job) as (sides, values):
        write_selection(args, sides, values)


def write_selection(args: argparse.Namespace, sides: "Sequence[Side]", values: "Floats") -> None:
    """Select lines by their cross-entropy differences `values` (lines,), and write them, and the differences
    with --scores. `sides`: models of each language."""
    from nmt.ngram import selection

    if args.keep:
        order = selection.best(values, args.keep)
    elif args.words:
        order = selection.within(values, selection.lengths(args.general[-1]), args.words)
    else:
        order = selection.best(values, len(values))
        if not len(order):
            raise DataError(f"{args.general[0]}: no line has words on every side; give another text")
        config = parse_settings(SelectionConfig, args)
        trials = selection.search_size(sides[-1], args.general[-1], args.dev, order, config)
        order = order[: print_sizes(trials)]
    if args.scores:
        files.write_text(args.scores, (f"{value:.6f}" for value in values))
    selection.write(args.general, args.output, order)
    limit = f", differences up to {values[order[-1]]:.4f}" if len(order) else ""
    log.info("%s of %s lines selected%s", f"{len(order):,}", f"{len(values):,}", limit)


# ---- scores ------------------------------------------------------------------------------------------------


@contextmanager
def score_lines(args: argparse.Namespace, job: TextJob) -> "Iterator[tuple[Sequence[Side], Floats]]":
    """Yield the models of each language, and the cross-entropy difference of each line of the general text.
    The folder of a job with workers is removed when the block ends."""
    from nmt.ngram import selection

    if not job.in_parts:
        config = parse_settings(SelectionConfig, args)
        sides = [
            selection.learn(in_domain, general, config)
            for in_domain, general in zip(args.in_domain, args.general, strict=True)
        ]
        with options.line_progress(args, args.general[0]) as progress:
            values = selection.scores(sides, args.general, progress.add)
        yield sides, values
        return
    learn = partial(
        train_scorer, domain=list(map(os.path.abspath, args.in_domain)), samples=write_samples(args, job)
    )
    work = learn(args)
    with job.run(learn, work) as compute:
        with options.line_progress(args, args.general[0]) as progress:
            values = selection.concatenate(count_progress(compute(cut_chunks(args.general)), progress))
        yield work.sides, values


def write_samples(args: argparse.Namespace, job: TextJob) -> list[str]:
    """Write samples of the general text, on which models are estimated, to files in the job folder that all
    workers read; returns their paths, one for each side. ConfigError for a job without a folder."""
    from nmt.ngram import selection

    if job.folder is None:
        raise ConfigError(
            f"--output {args.output[0]}: --workers and --cluster need a folder beside the output; name a file"
        )
    config, paths = parse_settings(SelectionConfig, args), list[str]()
    for number, (in_domain, general) in enumerate(zip(args.in_domain, args.general, strict=True)):
        paths.append(os.path.abspath(job.folder / f"general-{number}"))
        files.write_text(paths[-1], selection.general_sample(in_domain, general, config))
    return paths


def train_scorer(
    args: argparse.Namespace, domain: Sequence[str], samples: Sequence[str]
) -> "DifferenceScorer":
    """Estimate the in-domain and the general model of each side, and return a scorer of cross-entropy
    differences. `domain`: paths of the in-domain texts, one for each side; `samples`: paths of the samples of
    the general text, likewise."""
    from nmt.ngram import selection

    config = parse_settings(SelectionConfig, args)
    sides = [
        selection.estimate(in_domain, files.read_lines(sample), config)
        for in_domain, sample in zip(domain, samples, strict=True)
    ]
    return DifferenceScorer(sides, [*domain, *samples])


@dataclass
class DifferenceScorer:
    """Scores blocks of lines by cross-entropy difference (Moore and Lewis 2010)."""

    sides: "Sequence[Side]"
    texts: Sequence[str]  # from which the models were learned

    def models(self) -> list[Path]:
        """The texts on which the models are estimated, since the same texts give the same models."""
        return list(map(Path, self.texts))

    def lines(self, rows: Sequence[tuple[str, ...]]) -> Lines:
        """Format the difference of each of `rows`, one or both sides of a line, with all digits. Returns the
        lines of the only output."""
        from nmt.ngram import selection

        return [[repr(value) for value in selection.differences(self.sides, rows).tolist()]]


def cut_chunks(paths: Sequence[str]) -> Iterator[TextChunk[list[tuple[str, ...]]]]:
    """Cut the general text into chunks of parallel lines. `paths`: one or both sides."""
    from nmt.ngram import selection

    first = 0
    for block in selection.blocks(files.parallel(*paths)):
        yield TextChunk(first, len(block), block)
        first += len(block)


def count_progress(parts: Iterable[FinishedChunk], progress: Progress) -> Iterator[list[str]]:
    """Yield the differences of each chunk, and count its lines."""
    for done in parts:
        yield done.outputs[0]
        advance(progress, done)


def print_sizes(trials: "Sequence[Trial]") -> int:
    """Print a table of the perplexity for each size that was tried; returns the best size, in lines."""
    chosen = min(trials, key=lambda trial: trial.perplexity)
    print("lines\tperplexity\tbest")
    for trial in trials:
        print(f"{trial.lines}\t{trial.perplexity:.4f}\t{'*' if trial is chosen else ''}")
    return chosen.lines


if __name__ == "__main__":
    sys.exit(main())
