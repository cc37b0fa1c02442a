"""smt-select: the lines of a large text that are most like a small text of the domain."""

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
from nmt.cli.arguments import InputPath, OutputPath, add_setting, parse_settings, positive
from nmt.cli.jobs import TextJob, advance
from nmt.errors import ConfigError
from nmt.io import files
from nmt.io.progress import Progress
from nmt.ngram.selection_config import SelectionConfig
from nmt.work.texts import FinishedChunk, Lines, TextChunk

if TYPE_CHECKING:
    from nmt.ngram.selection import Floats, Side, Trial

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-select", args)
    from nmt.ngram import selection

    selection.check(args.in_domain, args.general, args.output)
    if "-" in (*args.in_domain, *args.general):
        raise ConfigError("- (stdin): the texts are read more than once; give files")
    for paths in (args.in_domain, args.general):
        files.check_parallel(*paths)
    job = TextJob(args, "smt-select", args.general, output=args.output[0])
    with job.lock(), scored(args, job) as (sides, values):
        write(args, sides, values)


def write(args: argparse.Namespace, sides: "Sequence[Side]", values: "Floats") -> None:
    """Choose by the difference of each line, and write."""
    from nmt.ngram import selection

    if args.keep:
        order = selection.best(values, args.keep)
    elif args.words:
        order = selection.within(values, selection.lengths(args.general[-1]), args.words)
    else:
        order = selection.best(values, len(values))
        config = parse_settings(SelectionConfig, args)
        trials = selection.search_size(sides[-1], args.general[-1], args.dev, order, config)
        order = order[: report(trials)]
    if args.scores:
        files.write_text(args.scores, (f"{value:.6f}" for value in values))
    selection.write(args.general, args.output, order)
    limit = f", differences up to {values[order[-1]]:.4f}" if len(order) else ""
    log.info("%s of %s lines selected%s", f"{len(order):,}", f"{len(values):,}", limit)


# ---- scores ------------------------------------------------------------------------------------------------


@contextmanager
def scored(args: argparse.Namespace, job: TextJob) -> "Iterator[tuple[Sequence[Side], Floats]]":
    """The models of each language, and the difference of each line of the general text. What other processes
    have computed is kept until the block ends."""
    from nmt.ngram import selection

    if not job.in_parts:
        config = parse_settings(SelectionConfig, args)
        sides = [
            selection.learn(inside, general, config)
            for inside, general in zip(args.in_domain, args.general, strict=True)
        ]
        with options.line_progress(args, args.general[0]) as progress:
            values = selection.scores(sides, args.general, progress.add)
        yield sides, values
        return
    learn = partial(load, domain=list(map(os.path.abspath, args.in_domain)), samples=sampled(args, job))
    work = learn(args)
    with job.run(learn, work) as compute:
        with options.line_progress(args, args.general[0]) as progress:
            values = selection.joined(followed(compute(chunks(args.general)), progress))
        yield work.sides, values


def sampled(args: argparse.Namespace, job: TextJob) -> list[str]:
    """The general lines that models are learned from, in files of the job, which all its processes read.
    ConfigError without its folder."""
    from nmt.ngram import selection

    if job.folder is None:
        raise ConfigError(
            f"--output {args.output[0]}: --workers and --cluster keep files beside it; name a file"
        )
    config, paths = parse_settings(SelectionConfig, args), list[str]()
    for number, (inside, general) in enumerate(zip(args.in_domain, args.general, strict=True)):
        paths.append(os.path.abspath(job.folder / f"general-{number}"))
        files.write_text(paths[-1], selection.general_sample(inside, general, config))
    return paths


def load(args: argparse.Namespace, domain: Sequence[str], samples: Sequence[str]) -> "DifferenceScorer":
    """The models, learned from texts of the domain and from samples of the general ones."""
    from nmt.ngram import selection

    config = parse_settings(SelectionConfig, args)
    sides = [
        selection.estimate(inside, files.read_lines(sample), config)
        for inside, sample in zip(domain, samples, strict=True)
    ]
    return DifferenceScorer(sides, [*domain, *samples])


@dataclass
class DifferenceScorer:
    """What scores blocks of lines."""

    sides: "Sequence[Side]"
    texts: Sequence[str]  # that the models were learned from

    def models(self) -> list[Path]:
        """These texts."""
        return list(map(Path, self.texts))

    def lines(self, rows: Sequence[tuple[str, ...]]) -> Lines:
        """The difference of each line, with all its digits."""
        from nmt.ngram import selection

        return [[repr(value) for value in selection.differences(self.sides, rows).tolist()]]


def chunks(paths: Sequence[str]) -> Iterator[TextChunk[list[tuple[str, ...]]]]:
    """The general text in blocks."""
    from nmt.ngram import selection

    first = 0
    for block in selection.blocks(files.parallel(*paths)):
        yield TextChunk(first, len(block), block)
        first += len(block)


def followed(parts: Iterable[FinishedChunk], progress: Progress) -> Iterator[list[str]]:
    """The differences of each block, which is counted."""
    for done in parts:
        yield done.outputs[0]
        advance(progress, done)


def report(trials: "Sequence[Trial]") -> int:
    """Print the sizes that were tried; returns the best one."""
    chosen = min(trials, key=lambda trial: trial.perplexity)
    print("lines\tperplexity\tbest")
    for trial in trials:
        print(f"{trial.lines}\t{trial.perplexity:.4f}\t{'*' if trial is chosen else ''}")
    return chosen.lines


def parser() -> options.Parser:
    made = options.Parser(
        "smt-select",
        "Select the lines of a general text that are most like a text of the domain, by the difference of "
        "their cross-entropies (Moore and Lewis 2010); in parallel text, by both sides (Axelrod et al. "
        "2011). Selected lines keep their order.",
    )

    def add(*names: str, kind: type[str], what: str) -> None:
        made.add_argument(*names, type=kind, nargs="+", required=True, metavar="FILE", help=what)

    add("--in-domain", kind=InputPath, what="tokenized text of the domain: one file, or both sides")
    add("--general", "-g", kind=InputPath, what="tokenized text to select from: one file, or both sides")
    add("--output", "-o", kind=OutputPath, what="selected lines, a file for each of --general")
    size = made.add_mutually_exclusive_group(required=True)
    size.add_argument("--keep", type=positive, metavar="N", help="the best N lines")
    size.add_argument(
        "--words", type=positive, metavar="N", help="the best lines, up to N words in all on the last side"
    )
    size.add_argument(
        "--dev",
        type=InputPath,
        metavar="FILE",
        help="the number that gives an n-gram model of the last side the lowest perplexity on this text; "
        "prints a table",
    )
    made.add_argument(
        "--scores",
        type=OutputPath,
        metavar="FILE",
        default=None,
        help="write the difference of each line of --general: lower is more like the domain",
    )
    for name in ("order", "min_count", "steps", "seed"):
        add_setting(made, SelectionConfig, name)
    jobs.add_options(made)
    options.add_quiet(made)
    return made


if __name__ == "__main__":
    sys.exit(main())
