"""smt-ini: look at, check and edit a moses.ini; num-features and weights move together, all other bytes
stay."""

import argparse
import sys
from collections.abc import Sequence

from nmt import files
from nmt.cli import arguments, options
from nmt.cli.arguments import Input
from nmt.errors import ConfigError, UserError
from smt_bridge import moses_ini, weights
from smt_bridge.check_system import problems
from smt_bridge.moses_ini import Ini


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("smt-ini", "Show, check and edit a moses.ini.")
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=options.Action
    )
    show_parser = actions.add_parser(
        "show",
        help="features, numbers of scores, weights, paths",
        description="Features, numbers of scores, weights and paths.",
    )
    show_parser.add_argument("ini", type=Input, metavar="INI")
    check_parser = actions.add_parser(
        "check",
        help="compare it with its tables",
        description="What Moses would refuse or silently get wrong; exit status 2 when there is anything.",
    )
    check_parser.add_argument("ini", type=Input, metavar="INI")
    check_parser.add_argument(
        "--root", default=".", metavar="DIR", help="the folder in which Moses will be started"
    )
    check_parser.add_argument("--quick", action="store_true", help="only the first line of each table")
    add_parser = edit(actions, "add-feature", "more scores for a table, or a whole new feature")
    where = add_parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--name", help="the feature that gets more scores, e.g. TranslationModel0")
    where.add_argument(
        "--line", help="a whole new feature line, e.g. 'KENLM name=LM1 factor=0 path=... order=5'"
    )
    add_parser.add_argument(
        "--weight",
        type=arguments.real(),
        action="append",
        required=True,
        help="weight of a new score; as many as there are new scores",
    )
    add_parser.add_argument("--path", type=Input, help="the table that has the new columns")
    remove_parser = edit(actions, "remove-feature", "one score of a table less, or a whole feature")
    remove_parser.add_argument("--name", required=True, help="the feature")
    remove_parser.add_argument(
        "--column", type=options.positive, help="only this score of it, counted from 1"
    )
    remove_parser.add_argument("--path", type=Input, help="the table without that column")
    set_parser = edit(actions, "set-weights", "take weights from a tuner")
    set_parser.add_argument(
        "--weights",
        "-w",
        type=Input,
        required=True,
        metavar="FILE",
        help="lines 'Name= v v', or another moses.ini",
    )
    args = parser.parse_args(argv)
    options.start_log("smt-ini", getattr(args, "quiet", False))
    ini = moses_ini.read(args.ini)
    if args.action == "show":
        show(ini)
    elif args.action == "check":
        found = list(problems(ini, args.root, not args.quick))
        print("\n".join(found) if found else f"{args.ini}: nothing wrong")
        if found:
            raise UserError(f"{args.ini}: {len(found)} problem{'s' * (len(found) > 1)}, listed above")
    else:
        with files.Writing(args.output) as out:
            out.write("\n".join(changed(args, ini).lines))


def edit(
    actions: "argparse._SubParsersAction[options.Action]", name: str, what: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.add_argument("ini", type=Input, metavar="INI")
    options.add_output(parser)
    options.add_quiet(parser)
    return parser


def show(ini: Ini) -> None:
    print("name\ttype\tscores\tweights\tpath")
    for feature in ini.features:
        values = ini.weights.get(feature.name)
        text = " ".join(f"{value:.6g}" for value in values) if values is not None else "(none: Moses uses 1)"
        print(f"{feature.name}\t{feature.kind}\t{feature.scores}\t{text}\t{feature.options.get('path', '')}")


def changed(args: argparse.Namespace, ini: Ini) -> Ini:
    if args.action == "set-weights":
        return moses_ini.set_weights(ini, weights.read(args.weights))
    if args.action == "remove-feature":
        if args.column:
            return moses_ini.remove_column(ini, args.name, args.column, args.path)
        return moses_ini.remove_feature(ini, args.name)
    if args.name:
        return moses_ini.add_columns(ini, args.name, args.weight, args.path)
    if args.path:
        raise ConfigError("--path goes with --name; write path=... into the --line")
    return moses_ini.add_feature(ini, args.line, args.weight)


if __name__ == "__main__":
    sys.exit(main())
