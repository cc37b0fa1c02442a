"""smt-propose: new phrase pairs out of an encoder-decoder, for source phrases that a table lacks or covers
thinly."""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from nmt import files, phrase_table
from nmt.cli import arguments, options
from nmt.cli.arguments import Input, Output, add_setting
from nmt.errors import ConfigError, DataError
from smt_bridge.cli.progress import Progress
from smt_bridge.config import ProposeConfig

log = logging.getLogger("nmt.propose")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-propose",
        "Let an encoder-decoder propose translations of source phrases that a table lacks or covers thinly. "
        "The new table has one more score, exp(1) "
        "in proposed rows and 1 in others, so that tuning can weigh proposals; the reordering table follows. "
        "Score further columns afterwards.",
    )
    parser.add_argument(
        "table", type=Input, metavar="TABLE", help="phrase table with Moses' four scores, sorted"
    )
    options.add_model(parser)
    parser.add_argument(
        "--inverse",
        type=Input,
        metavar="RUN_DIR",
        default=None,
        help="a model of the other direction, for p(source | target); else that of the model",
    )
    parser.add_argument(
        "--lexical",
        required=True,
        metavar="STEM",
        help="word translation probabilities: STEM.e2f and STEM.f2e, of smt-extract or Moses",
    )
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        nargs="+",
        required=True,
        metavar="TEXT",
        help="texts to be translated, whose phrases get proposals",
    )
    options.add_output(parser)
    parser.add_argument(
        "--reordering",
        type=Input,
        metavar="TABLE",
        default=None,
        help="lexical reordering table of the same pairs",
    )
    parser.add_argument(
        "--reordering-output",
        type=Output,
        metavar="FILE",
        default=None,
        help="it again, with rows for the proposals",
    )
    add_setting(parser, ProposeConfig, "options", help="proposals for a source phrase")
    add_setting(parser, ProposeConfig, "beam_size", help="of the search for them")
    add_setting(parser, ProposeConfig, "thin", help="propose where the table has at most N options")
    add_setting(parser, ProposeConfig, "rare", help="and where the source was extracted at most N times")
    add_setting(parser, ProposeConfig, "longest", help="words of a source phrase")
    add_setting(parser, ProposeConfig, "least", metavar="P", help="probability that a proposal has to have")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-propose", args.quiet)
    check(args)
    run(args, options.set_up_torch(args.device, args.threads, args.matmul, args.run))


def check(args: argparse.Namespace) -> None:
    if bool(args.reordering) != bool(args.reordering_output):
        raise ConfigError("--reordering and --reordering-output go together")
    lexicons = [f"{args.lexical}.e2f", f"{args.lexical}.f2e"]
    paths = [args.table, *args.input, *([args.reordering] if args.reordering else []), *lexicons]
    if "-" in paths:
        raise ConfigError("the table and the texts are read more than once; give files, not -")
    files.existing(paths)
    arguments.check_separate(
        [("--lexical", path) for path in lexicons],
        [("--output", args.output), ("--reordering-output", args.reordering_output)],
    )


def run(args: argparse.Namespace, set_up: str) -> None:
    from smt_bridge import propose
    from smt_bridge.filter_table import Occurring, read_texts

    config = ProposeConfig(
        options=args.options,
        beam_size=args.beam_size,
        thin=args.thin,
        rare=args.rare,
        longest=args.longest,
        least=args.least,
    )
    known = propose.read_table(args.table, args.reordering)
    thin = propose.wanted(Occurring(read_texts(args.input)), known, config)
    if not thin:
        raise DataError(
            f"{args.input[0]}: the table covers every phrase of up to {args.longest} words; give --thin or "
            "--rare a larger number"
        )
    lexicons = (propose.read_lexicon(f"{args.lexical}.f2e"), propose.read_lexicon(f"{args.lexical}.e2f"))
    proposer = propose.Proposer(args.run, args.inverse, args.checkpoint, args.device, config, known, lexicons)
    log.info("%s", set_up)
    with Progress(len(thin), "phrases", args.quiet) as progress:
        rows = proposer.rows(thin, progress.add)
    with ExitStack() as stack:
        out = stack.enter_context(files.Writing(args.output))
        other = stack.enter_context(files.Writing(args.reordering_output)) if args.reordering_output else None
        kept = 0
        for line, reordering in propose.merged(
            phrase_table.read(args.table),
            rows,
            files.read_byte_lines(args.reordering) if args.reordering else None,
        ):
            out.write(line + b"\n")
            if other:
                other.write(reordering + b"\n")
            kept += 1
    log.info(
        "%s source phrases asked for, %s proposals for %s of them; %s rows in all; "
        "moses.ini: num-features=5 (smt-ini add-feature)",
        f"{len(thin):,}", f"{len(rows):,}", f"{len({row.source for row in rows}):,}", f"{kept:,}",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
