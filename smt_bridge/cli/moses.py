"""smt-moses: run an installed Moses with our tables; what it would silently get wrong is checked before it
starts."""

import argparse
import logging
import sys
from collections.abc import Sequence

from nmt import files
from nmt.cli import arguments, options
from nmt.cli.arguments import Input, Output
from nmt.errors import DataError
from smt_bridge import check_system, moses, moses_ini

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("smt-moses", "Filter, compact, decode and tune with an installed Moses.")
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=options.Action
    )
    filter_parser = add(actions, "filter", "cut the tables of a moses.ini to a text, with Moses' script")
    filter_parser.add_argument("ini", type=Input, metavar="INI")
    filter_parser.add_argument(
        "--input", "-i", type=Input, required=True, metavar="TEXT", help="the text to be translated"
    )
    filter_parser.add_argument(
        "--output", "-o", type=Output, required=True, metavar="DIR", help="a new folder"
    )
    compact_parser = add(
        actions, "compact", "make a compact table (.minphr), with the number of scores that the table has"
    )
    compact_parser.add_argument("table", type=Input, metavar="TABLE")
    compact_parser.add_argument("--output", "-o", required=True, metavar="STEM", help="makes STEM.minphr")
    decode_parser = add(actions, "decode", "translate a text, with an n-best list where wanted")
    decode_parser.add_argument("ini", type=Input, metavar="INI")
    decode_parser.add_argument(
        "--input", "-i", type=Input, required=True, metavar="TEXT", help="tokenized text"
    )
    decode_parser.add_argument(
        "--output", "-o", type=Output, required=True, metavar="FILE", help="the translation, a line each"
    )
    decode_parser.add_argument(
        "--nbest",
        type=Output,
        metavar="FILE",
        default=None,
        help="an n-best list of distinct texts, with segmentation and alignment",
    )
    decode_parser.add_argument(
        "--size", type=options.positive, default=moses.DecodeOptions.size, help="of the n-best list"
    )
    tune_parser = add(actions, "tune", "Moses' own tuning loop")
    tune_parser.add_argument("ini", type=Input, metavar="INI")
    tune_parser.add_argument(
        "--input", "-i", type=Input, required=True, metavar="TEXT", help="source of the development set"
    )
    tune_parser.add_argument(
        "--reference",
        "-r",
        type=Input,
        nargs="+",
        required=True,
        metavar="FILE",
        help="its references; several have to be named ref0 ref1 ...",
    )
    tune_parser.add_argument(
        "--working-dir",
        type=Output,
        required=True,
        metavar="DIR",
        help="of the loop; the tuned moses.ini is made there",
    )
    tune_parser.add_argument(
        "--method", choices=("mert", "kbmira", "pro"), default=moses.TuneOptions.method, help="the optimizer"
    )
    tune_parser.add_argument(
        "--nbest", type=options.positive, default=moses.TuneOptions.nbest, help="size of the lists"
    )
    tune_parser.add_argument(
        "--iterations", type=options.positive, default=moses.TuneOptions.iterations, help="at most"
    )
    tune_parser.add_argument(
        "--no-filter", action="store_true", help="do not cut the tables to the development set first"
    )
    args = parser.parse_args(argv)
    options.start_log("smt-moses", args.quiet)
    installation = moses.find(args.moses)
    {"filter": run_filter, "compact": run_compact, "decode": run_decode, "tune": run_tune}[args.action](
        args, installation
    )


def add(
    actions: "argparse._SubParsersAction[options.Action]", name: str, what: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.add_argument(
        "--moses",
        metavar="DIR",
        default=None,
        help="a built mosesdecoder; the default is the environment variable MOSES_HOME",
    )
    parser.add_argument("--threads", type=options.positive, default=1, help="of Moses")
    options.add_quiet(parser)
    return parser


def check(ini: str) -> None:
    """DataError with the first problem of a system; smt-ini check lists all."""
    found = list(check_system.problems(moses_ini.read(ini), ".", thorough=False))
    if found:
        raise DataError(f"{found[0]}{f' ({len(found) - 1} more: smt-ini check)' if len(found) > 1 else ''}")


def run_filter(args: argparse.Namespace, installation: moses.Installation) -> None:
    files.existing([args.input])
    check(args.ini)
    log.info("%s", moses.filter_model(installation, args.ini, args.input, args.output))


def run_compact(args: argparse.Namespace, installation: moses.Installation) -> None:
    files.existing([args.table])
    arguments.check_separate([("TABLE", args.table)], [("--output", f"{args.output}.minphr")])
    moses.compact(installation, args.table, args.output, check_system.columns(args.table), args.threads)


def run_decode(args: argparse.Namespace, installation: moses.Installation) -> None:
    files.existing([args.input])
    check(args.ini)
    moses.decode(
        installation,
        args.ini,
        args.input,
        args.output,
        moses.DecodeOptions(args.threads, args.nbest, args.size),
    )


def run_tune(args: argparse.Namespace, installation: moses.Installation) -> None:
    references = args.reference
    files.check_parallel(args.input, *references)
    check(args.ini)
    choice = moses.TuneOptions(args.method, args.nbest, args.iterations, args.threads, not args.no_filter)
    log.info("%s", moses.tune(installation, args.ini, args.input, references, args.working_dir, choice))


if __name__ == "__main__":
    sys.exit(main())
