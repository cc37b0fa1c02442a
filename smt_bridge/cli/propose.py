"""smt-propose: new phrase pairs out of an encoder-decoder, for source phrases that a table lacks or covers thinly."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from nmt import files, phrase_table
from nmt.cli import options
from nmt.errors import ConfigError, DataError
from smt_bridge.cli.progress import Progress

log = logging.getLogger("nmt.propose")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-propose",
        "Let an encoder-decoder propose translations of source phrases that a table lacks or covers thinly. The new table has one more score, exp(1) "
        "in proposed rows and 1 in others, so that tuning can weigh proposals; the reordering table follows. Score further columns afterwards.",
    )
    parser.add_argument("table", metavar="TABLE", help="phrase table with Moses' four scores, sorted")
    options.add_model(parser)
    parser.add_argument("--inverse", metavar="RUN_DIR", default=None, help="a model of the other direction, for p(source | target); else that of the model")
    parser.add_argument("--lexical", required=True, metavar="STEM", help="word translation probabilities: STEM.e2f and STEM.f2e, of smt-extract or Moses")
    parser.add_argument("--input", "-i", nargs="+", required=True, metavar="TEXT", help="texts to be translated, whose phrases get proposals")
    options.add_output(parser)
    parser.add_argument("--reordering", metavar="TABLE", default=None, help="lexical reordering table of the same pairs")
    parser.add_argument("--reordering-output", metavar="FILE", default=None, help="it again, with rows for the proposals")
    parser.add_argument("--options", type=options.positive, default=3, metavar="N", help="proposals for a source phrase")
    parser.add_argument("--beam-size", type=options.positive, default=10, metavar="N", help="of the search for them")
    parser.add_argument("--thin", type=int, default=1, metavar="N", help="propose where the table has at most N options")
    parser.add_argument("--rare", type=int, default=2, metavar="N", help="and where the source was extracted at most N times")
    parser.add_argument("--longest", type=options.positive, default=4, metavar="N", help="words of a source phrase")
    parser.add_argument("--least", type=float, default=0.05, metavar="P", help="probability that a proposal has to have")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-propose", args.quiet)
    check(args)
    run(args, options.set_up_torch(args.device, args.threads, args.matmul, args.run))


def check(args: argparse.Namespace) -> None:
    if bool(args.reordering) != bool(args.reordering_output):
        raise ConfigError("--reordering and --reordering-output go together")
    paths = [args.table, *args.input, *([args.reordering] if args.reordering else []), f"{args.lexical}.e2f", f"{args.lexical}.f2e"]
    if "-" in paths:
        raise ConfigError("the table and the texts are read more than once; give files, not -")
    files.existing(paths)
    for path in (args.output, args.reordering_output):
        if path and path != "-" and os.path.realpath(path) in map(os.path.realpath, paths):
            raise ConfigError(f"{path}: is one of the inputs; name another output")
    if not 0 <= args.least <= 1:
        raise ConfigError(f"--least {args.least}: expected a probability")


def run(args: argparse.Namespace, set_up: str) -> None:
    from smt_bridge import propose
    from smt_bridge.filter_table import Occurring, read_texts

    config = propose.ProposeConfig(args.options, args.beam_size, args.thin, args.rare, args.longest, args.least)
    known = propose.read_table(args.table, args.reordering)
    thin = propose.wanted(Occurring(read_texts(args.input)), known, config)
    if not thin:
        raise DataError(f"{args.input[0]}: the table covers every phrase of up to {args.longest} words; give --thin or --rare a larger number")
    lexicons = (propose.read_lexicon(f"{args.lexical}.f2e"), propose.read_lexicon(f"{args.lexical}.e2f"))
    proposer = propose.Proposer(args.run, args.inverse, args.checkpoint, args.device, config, known, lexicons)
    log.info("%s", set_up)
    with Progress(len(thin), "phrases", args.quiet) as progress:
        rows = proposer.rows(thin, progress.add)
    with ExitStack() as stack:
        out = stack.enter_context(files.Writing(args.output))
        other = stack.enter_context(files.Writing(args.reordering_output)) if args.reordering_output else None
        kept = 0
        for line, reordering in propose.merged(phrase_table.read(args.table), rows, files.read_byte_lines(args.reordering) if args.reordering else None):
            out.write(line + b"\n")
            if other:
                other.write(reordering + b"\n")
            kept += 1
    log.info(
        "%s source phrases asked for, %s proposals for %s of them; %s rows in all; moses.ini: num-features=5 (smt-ini add-feature)",
        f"{len(thin):,}", f"{len(rows):,}", f"{len({row.source for row in rows}):,}", f"{kept:,}",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
