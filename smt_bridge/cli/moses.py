"""smt-moses: run an installed Moses, after checking the moses.ini for mistakes that Moses does not report."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, add_settings, parse_settings, positive
from nmt.errors import DataError
from nmt.io import files
from smt_bridge.moses import check as check_system
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import programs as moses

Run = Callable[[argparse.Namespace, moses.Installation], None]  # one action

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    args.run(args, moses.find_installation(args.moses))


def parser() -> options.Parser:
    parser = options.Parser("smt-moses", "Filter, compact, decode and tune with an installed Moses.")
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=options.ActionParser
    )

    def add(name: str, run: Run, what: str) -> options.ActionParser:
        action = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        action.set_defaults(run=run, parser=action)
        action.add_argument(
            "--moses",
            metavar="DIR",
            default=None,
            help="folder of a built mosesdecoder; default: the environment variable MOSES_HOME",
        )
        action.add_argument("--threads", type=positive, default=1, help="number of threads of Moses")
        options.add_quiet(action)
        return action

    add_filter(add("filter", run_filter, "filter the tables of a moses.ini for a text, with Moses' script"))
    compact = add("compact", run_compact, "make a compact table (.minphr) with all scores of a text table")
    compact.add_argument("table", type=InputPath, metavar="TABLE", help="a text phrase table")
    compact.add_argument("--output", "-o", required=True, metavar="STEM", help="write STEM.minphr")
    add_decode(add("decode", run_decode, "translate a text, optionally with an n-best list"))
    add_tune(add("tune", run_tune, "run Moses' own tuning loop"))
    return parser


def add_text(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the arguments INI and --input. `what`: help text of --input."""
    parser.add_argument("ini", type=InputPath, metavar="INI", help="the moses.ini")
    parser.add_argument("--input", "-i", type=InputPath, required=True, metavar="TEXT", help=what)


def add_filter(parser: argparse.ArgumentParser) -> None:
    add_text(parser, "the text to be translated")
    options.add_required_output(parser, "DIR", "a new folder")


def add_decode(parser: options.ActionParser) -> None:
    add_text(parser, "tokenized text")
    options.add_required_output(parser, "FILE", "the translation, line by line")
    parser.add_argument(
        "--n-best-list",
        type=OutputPath,
        metavar="FILE",
        default=None,
        help="write an n-best list of distinct texts, with segmentation and alignment",
    )
    help_text = "with --n-best-list: distinct texts of each sentence in the list; default: 100"
    add_setting(parser, moses.DecodeOptions, "n_best", default=None, help=help_text)


def add_tune(parser: options.ActionParser) -> None:
    add_text(parser, "source side of the development set")
    parser.add_argument(
        "--reference",
        "-r",
        type=InputPath,
        nargs="+",
        required=True,
        metavar="FILE",
        help="reference translations; several files have to be named ref0 ref1 ...",
    )
    parser.add_argument(
        "--working-dir",
        type=OutputPath,
        required=True,
        metavar="DIR",
        help="working folder of the loop; the tuned moses.ini is written there",
    )
    add_settings(parser, moses.TuneOptions, "method", "n_best", "iterations")
    parser.add_argument(
        "--no-filter", action="store_true", help="do not filter the tables for the development set first"
    )


def check_ini(ini: str) -> None:
    """DataError with the first problem of the moses.ini at path `ini`, and the number of further ones. Tables
    are checked by their first lines only."""
    issues = list(check_system.problems(moses_ini.read(ini), ["."], thorough=False))
    if issues:
        raise DataError(
            f"{issues[0]}{f' ({len(issues) - 1} more: smt-ini check)' if len(issues) > 1 else ''}"
        )


def run_filter(args: argparse.Namespace, installation: moses.Installation) -> None:
    files.existing([args.input])
    check_ini(args.ini)
    log.info("%s", moses.filter_model(installation, args.ini, args.input, args.output))


def run_compact(args: argparse.Namespace, installation: moses.Installation) -> None:
    files.existing([args.table])
    output = f"{args.output.removesuffix('.minphr')}.minphr"
    arguments.check_separate([("TABLE", args.table)], [("--output", output)])
    moses.compact(installation, args.table, output, check_system.columns(args.table), args.threads)


def run_decode(args: argparse.Namespace, installation: moses.Installation) -> None:
    if not args.n_best_list:
        options.refuse_alone(args.parser, args, ("n_best",), "--n-best-list FILE")
    files.existing([args.input])
    check_ini(args.ini)
    choice = parse_settings(moses.DecodeOptions, args, n_best=args.n_best or moses.DecodeOptions.n_best)
    moses.decode(installation, args.ini, args.input, args.output, choice)


def run_tune(args: argparse.Namespace, installation: moses.Installation) -> None:
    references = args.reference
    files.check_parallel(args.input, *references)
    check_ini(args.ini)
    choice = parse_settings(moses.TuneOptions, args, filter=not args.no_filter)
    log.info("%s", moses.tune(installation, args.ini, args.input, references, args.working_dir, choice))


if __name__ == "__main__":
    sys.exit(main())
