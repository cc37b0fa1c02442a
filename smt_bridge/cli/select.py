"""smt-select: the lines of a large text that are most like a small text of the domain."""

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output, add_setting, positive, settings_of
from nmt.errors import ConfigError
from nmt.ngram.selection_config import SelectionConfig

if TYPE_CHECKING:
    from nmt.ngram.selection import Trial

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
    config = settings_of(SelectionConfig, args)
    sides = [
        selection.learn(inside, general, config)
        for inside, general in zip(args.in_domain, args.general, strict=True)
    ]
    with options.line_progress(args, args.general[0]) as progress:
        values = selection.scores(sides, args.general, progress.add)
    if args.keep:
        order = selection.best(values, args.keep)
    elif args.words:
        order = selection.within(values, selection.lengths(args.general[-1]), args.words)
    else:
        order = selection.best(values, len(values))
        trials = selection.search_size(sides[-1], args.general[-1], args.dev, order, config)
        order = order[: report(trials)]
    if args.scores:
        files.write_text(args.scores, (f"{value:.6f}" for value in values))
    selection.write(args.general, args.output, order)
    limit = f", differences up to {values[order[-1]]:.4f}" if len(order) else ""
    log.info("%s of %s lines selected%s", f"{len(order):,}", f"{len(values):,}", limit)


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
    made.renamed = {"-d": "--in-domain"}

    def add(*names: str, kind: type[str], what: str) -> None:
        made.add_argument(*names, type=kind, nargs="+", required=True, metavar="FILE", help=what)

    add("--in-domain", kind=Input, what="tokenized text of the domain: one file, or both sides")
    add("--general", "-g", kind=Input, what="tokenized text to select from: one file, or both sides")
    add("--output", "-o", kind=Output, what="selected lines, a file for each of --general")
    size = made.add_mutually_exclusive_group(required=True)
    size.add_argument("--keep", type=positive, metavar="N", help="the best N lines")
    size.add_argument(
        "--words", type=positive, metavar="N", help="the best lines, up to N words in all on the last side"
    )
    size.add_argument(
        "--dev",
        type=Input,
        metavar="FILE",
        help="the number that gives an n-gram model of the last side the lowest perplexity on this text; "
        "prints a table",
    )
    made.add_argument(
        "--scores",
        type=Output,
        metavar="FILE",
        default=None,
        help="write the difference of each line of --general: lower is more like the domain",
    )
    for name in ("order", "min_count", "steps", "seed"):
        add_setting(made, SelectionConfig, name)
    options.add_quiet(made)
    return made


if __name__ == "__main__":
    sys.exit(main())
