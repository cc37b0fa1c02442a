"""smt-ini: show, check and edit a moses.ini. An edit changes num-features and weights together, and only the
lines of its feature and weights; if the output is in another folder, paths of files become absolute."""

import argparse
import logging
import sys
from collections.abc import Sequence

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, positive
from nmt.errors import ConfigError, UserError
from smt_bridge.cli import decoding
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import sparse_weights
from smt_bridge.moses.check import problems
from smt_bridge.moses.ini import Ini

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    ini = moses_ini.read(args.ini)
    if args.action == "show":
        show(ini)
    elif args.action == "check":
        roots = [args.root] if args.root else ini.roots
        issues = list(problems(ini, roots, not args.quick))
        beside = "" if args.root else moses_ini.folder_beside(ini)
        mixed = beside and moses_ini.path_only_in(ini, ".", beside)
        if mixed:
            issues.append(
                f"{args.ini}: {mixed} is relative to the current folder, other paths to {beside}, so there "
                "is no folder to start Moses in; write absolute paths"
            )
        print("\n".join(issues) if issues else f"{args.ini}: nothing wrong")
        if beside and not mixed:
            log.info("tables are found beside the ini: start Moses in %s, or write absolute paths", beside)
        if issues:
            raise UserError(f"{args.ini}: {len(issues)} problem{'s' * (len(issues) > 1)}, listed above")
    else:
        decoding.check_tables(ini, [("--output", args.output)])
        edited = set_weights(args, ini) if args.action == "set-weights" else edit(args, ini)
        moses_ini.write(args.output, edited)


def parser() -> options.Parser:
    parser = options.Parser("smt-ini", "Show, check and edit a moses.ini.")
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=options.ActionParser
    )

    def add(name: str, what: str, description: str = "") -> argparse.ArgumentParser:
        text = description or f"{what[0].upper()}{what[1:]}."
        action = actions.add_parser(name, help=what, description=text)
        action.add_argument("ini", type=InputPath, metavar="INI", help="the moses.ini")
        return action

    add("show", "list features, numbers of scores, weights and paths")
    check = add(
        "check",
        "compare the ini with its tables",
        "Report everything that Moses would refuse or silently get wrong, with exit status 2 if there is "
        "anything.",
    )
    check.add_argument(
        "--root",
        default=None,
        metavar="DIR",
        help="folder in which Moses will be started, to which paths are relative; default: look them up "
        "beside the ini, then in the current folder, as smt-decode and smt-tune do",
    )
    check.add_argument("--quick", action="store_true", help="read only the first line of each table")
    add_feature_options(add("add-feature", "add scores to a table, or add a new feature"))
    remove = add("remove-feature", "remove one score of a table, or a whole feature")
    remove.add_argument("--name", required=True, help="the feature")
    remove.add_argument(
        "--column", type=positive, help="remove only this score of the feature, counted from 1"
    )
    remove.add_argument("--path", type=InputPath, help="path of the table without that column")
    set_path = add("set-path", "make a feature read another file, such as a filtered table")
    set_path.add_argument("--name", required=True, help="the feature, e.g. LexicalReordering0")
    set_path.add_argument("--path", type=InputPath, required=True, help="its new file")
    weights = add("set-weights", "replace the weights by those of a tuner")
    weights.add_argument(
        "--weights",
        "-w",
        type=InputPath,
        required=True,
        metavar="FILE",
        help="lines 'Name= v v', or another moses.ini; weights of sparse values go to NAME.sparse-weights "
        "beside the output NAME.ini",
    )
    for name in ("add-feature", "remove-feature", "set-path", "set-weights"):
        options.add_output(actions.choices[name])
        options.add_quiet(actions.choices[name])
    return parser


def add_feature_options(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--name", help="the feature that gets more scores, e.g. TranslationModel0")
    target.add_argument("--line", help="a new feature line, e.g. 'KENLM name=LM1 factor=0 path=... order=5'")
    parser.add_argument(
        "--weight",
        type=arguments.real(),
        action="append",
        default=[],
        help="weight of a new score; repeat the option for each new score; a sparse feature has none",
    )
    parser.add_argument("--path", type=InputPath, help="path of the table with the new columns")


def show(ini: Ini) -> None:
    print("name\ttype\tscores\tweights\tpath")
    for feature in ini.features:
        values = ini.weights.get(feature.name)
        if values is not None:
            text = " ".join(f"{value:.6g}" for value in values)
        else:
            text = "(none: Moses uses 1)" if feature.scores else f"(sparse: {ini.weight_file or 'all 0'})"
        print(f"{feature.name}\t{feature.kind}\t{feature.scores}\t{text}\t{feature.options.get('path', '')}")


def edit(args: argparse.Namespace, ini: Ini) -> Ini:
    """Return the ini with the edit of an action other than set-weights, with paths for the folder of the
    output. ConfigError or DataError for an edit that does not fit it."""
    path = args.path and path_for(ini, args.path)
    if args.action == "set-path":
        edited = moses_ini.set_path(ini, args.name, path)
    elif args.action == "remove-feature" and args.column:
        edited = moses_ini.remove_column(ini, args.name, args.column, path)
    elif args.action == "remove-feature" and args.path:
        raise ConfigError("--path goes with --column: it names the table without that column")
    elif args.action == "remove-feature":
        edited = moses_ini.remove_feature(ini, args.name)
    elif args.name and not args.weight:
        raise ConfigError(f"--name {args.name}: give --weight for each of the new scores")
    elif args.name:
        edited = moses_ini.add_columns(ini, args.name, args.weight, path)
    elif path:
        raise ConfigError("--path requires --name; with --line, write path=... in the line")
    else:
        edited = moses_ini.add_feature(ini, args.line, args.weight)
    return for_output(args, edited)


def path_for(ini: Ini, path: str) -> str:
    """A path of an option, relative to the current folder, as the ini may name it: absolute if the ini's
    folder has another file of this name, which would be read in its place."""
    here = moses_ini.search_roots(path, ["."])
    return here if here and here != moses_ini.search_roots(path, ini.roots) else path


def for_output(args: argparse.Namespace, ini: Ini) -> Ini:
    """Adapt the paths of an ini to the folder of the output; unchanged for stdout."""
    return ini if args.output == "-" else moses_ini.with_moved_paths(ini, args.output)


def set_weights(args: argparse.Namespace, ini: Ini) -> Ini:
    """Return the ini with the weights of --weights. Those of sparse values, with the ones that the ini has
    already, go to a file beside the output. ConfigError for weights that do not fit the ini, and for sparse
    ones if the output is stdout or their file is one that the ini names."""
    dense, sparse = moses_ini.split_weights(ini, moses_ini.read_weights(args.weights))
    edited = for_output(args, moses_ini.set_weights(ini, dense))
    if not sparse:
        return edited
    if args.output == "-":
        raise ConfigError(
            f"--output -: the weights of sparse values such as {next(iter(sparse))} go to a file beside the "
            "new moses.ini; name a file"
        )
    path = sparse_weights.beside(args.output)
    decoding.check_tables(ini, [("--output", str(path))])
    _, old = moses_ini.split_weights(ini, moses_ini.read_weights(args.ini))
    sparse_weights.write(path, old | sparse)
    return moses_ini.with_weight_file(edited, path.name)


if __name__ == "__main__":
    sys.exit(main())
