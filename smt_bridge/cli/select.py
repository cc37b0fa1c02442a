"""smt-select: the lines of a large text that are most like a small one of the domain."""

import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output, add_setting
from nmt.errors import ConfigError
from smt_bridge.cli.progress import Progress
from smt_bridge.config import SelectionConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-select",
        "Select the lines of a general text that are most like a text of the domain, by the difference of "
        "their cross-entropies (Moore and Lewis 2010); of "
        "parallel text by both sides (Axelrod et al. 2011). Selected lines keep their order.",
    )
    parser.add_argument(
        "--in-domain",
        "-d",
        type=Input,
        nargs="+",
        required=True,
        metavar="FILE",
        help="tokenized text of the domain: one file, or both sides",
    )
    parser.add_argument(
        "--general",
        "-g",
        type=Input,
        nargs="+",
        required=True,
        metavar="FILE",
        help="tokenized text to select from: one file, or both sides",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Output,
        nargs="+",
        required=True,
        metavar="FILE",
        help="selected lines, a file for each of --general",
    )
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--keep", type=options.positive, metavar="N", help="the best N lines")
    size.add_argument(
        "--words",
        type=options.positive,
        metavar="N",
        help="the best lines that have N words on the last side",
    )
    size.add_argument(
        "--dev",
        type=Input,
        metavar="FILE",
        help=(
            "as many as give an n-gram model of the last side the lowest perplexity on this text; prints a "
            "table"
        ),
    )
    parser.add_argument(
        "--scores",
        type=Output,
        metavar="FILE",
        default=None,
        help="write the difference of each line of --general: lower is more like the domain",
    )
    add_setting(parser, SelectionConfig, "order", help="of the n-gram models")
    add_setting(
        parser, SelectionConfig, "min_count", help="rarer words of the domain are unknown to the models"
    )
    add_setting(parser, SelectionConfig, "steps", help="sizes tried by --dev: all, a half, a quarter ...")
    add_setting(parser, SelectionConfig, "seed", help="of the sample that the general model is made of")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-select", args.quiet)
    import numpy as np

    from smt_bridge import selection

    selection.check(args.in_domain, args.general, args.output)
    if "-" in (*args.in_domain, *args.general):
        raise ConfigError("- (stdin): the texts are read more than once; give files")
    for paths in (args.in_domain, args.general):
        files.check_parallel(*paths)
    config = SelectionConfig(order=args.order, min_count=args.min_count, seed=args.seed, steps=args.steps)
    sides = [
        selection.learn(inside, general, config)
        for inside, general in zip(args.in_domain, args.general, strict=True)
    ]
    with Progress(0, "lines", args.quiet) as progress:
        values = selection.scores(sides, args.general, progress.add)
    if args.keep:
        order = selection.best(values, args.keep)
    elif args.words:
        lengths = np.fromiter(
            (len(files.split_words(line)) for line in files.read_lines(args.general[-1])), np.int64
        )
        order = selection.within(values, lengths, args.words)
    else:
        order = selection.best(values, len(values))
        trials = selection.search_size(sides[-1], args.general[-1], args.dev, order, config)
        chosen = min(trials, key=lambda trial: trial.perplexity)
        print("lines\tperplexity\tbest")
        for trial in trials:
            print(f"{trial.lines}\t{trial.perplexity:.4f}\t{'*' if trial is chosen else ''}")
        order = order[: chosen.lines]
    if args.scores:
        files.write_text(args.scores, (f"{value:.6f}" for value in values))
    kept = np.zeros(len(values), bool)
    kept[order] = True
    with ExitStack() as stack:
        outputs = [stack.enter_context(files.Writing(path)) for path in args.output]
        for rows, keep in zip(files.parallel(*args.general), kept, strict=True):
            if keep:
                for out, line in zip(outputs, rows, strict=True):
                    out.write(line + "\n")
    limit = f", differences up to {values[order[-1]]:.4f}" if len(order) else ""
    log.info("%s of %s lines selected%s", f"{len(order):,}", f"{len(values):,}", limit)


if __name__ == "__main__":
    sys.exit(main())
