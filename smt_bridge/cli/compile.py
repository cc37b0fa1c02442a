"""smt-compile: write tables and language models as mapped arrays, which open at once and share memory."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, check_separate, new_folder, parse_settings
from nmt.errors import ConfigError, DataError
from nmt.io import files, mapped
from smt_bridge.cli.shared_options import add_compilation
from smt_bridge.decoder.config import CompileConfig

# Regular expression of the paths in a folder of a model that was never finished: one without a moses.ini.
UNFINISHED = (
    rf"mapped-(table|lm\d+)(/({mapped.UNFINISHED}|manifest\.json))?"
    r"|(mapped-words\d+\.txt|mapped-moses\.sparse-weights)(\.part.*)?|moses\.ini\.part.*"
)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-compile",
        "Write a phrase table and its reordering table as a folder of arrays that smt-decode, smt-tune and "
        "nmt-serve map into memory: it opens in milliseconds, processes share it, and only what a text needs "
        "is read. From a model the new folder also has its language models, as nmt-ngram compile makes them "
        "of ARPA files, copies of its lists of words and of word classes, and a moses.ini with the same "
        "weights; networks and other language models stay where they are. From a table it is what path= of "
        "PhraseDictionaryMemory and LexicalReordering name. Moses itself reads only text tables and ARPA "
        "files.",
        "Tables of more than 100 MB, as they are stored, are built on disk: files without a name in the new "
        "folder take about 200 bytes for each phrase pair until it is complete.",
    )
    parser.add_argument(
        "model",
        type=InputPath,
        metavar="MODEL_DIR|INI|TABLE",
        help="a folder made by smt-train, a moses.ini, or a phrase table",
    )
    options.add_required_output(parser, "DIR", "a new folder")
    parser.add_argument(
        "--reordering", type=InputPath, default="", metavar="FILE", help="the reordering table of TABLE"
    )
    add_compilation(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv, times=True)
    files.existing([path for path in (args.model, args.reordering) if path])
    if is_table(args.model):
        compile_table(args)
    elif args.reordering:
        raise ConfigError("--reordering: goes with a phrase table; a model names its own reordering table")
    else:
        compile_model(args)


def is_table(path: str) -> bool:
    """Whether a path is a phrase table, not a moses.ini or a folder. DataError for an unreadable or empty
    file."""
    if not Path(path).is_file():
        return False
    first = next(iter(files.read_byte_lines(path)), None)
    if first is None:
        raise DataError(f"{path}: the file is empty, expected a phrase table or a moses.ini")
    return b"|||" in first


def compile_table(args: argparse.Namespace) -> None:
    """Write a phrase table, and its reordering table if there is one, as the new folder --output. Errors as
    from `compile_tables` and `new_folder`."""
    from smt_bridge.compiled_model import compile_tables
    from smt_bridge.moses import check

    check_separate([("TABLE", args.model), ("--reordering", args.reordering)], [("--output", args.output)])
    config, folder = parse_settings(CompileConfig, args), Path(args.output)
    with new_folder(folder, "smt-compile", mapped.UNFINISHED), files.naming_unwritten(folder):
        columns, visible = check.columns(args.model), options.shows_bar(args)
        compile_tables(args.model, columns, args.reordering or None, folder, config, visible)


def compile_model(args: argparse.Namespace) -> None:
    """Compile the tables and the ARPA language models of a model into the new folder --output, with a
    moses.ini that names them. Other language models and networks stay where they are. ConfigError for an
    output that is part of the model, for a feature that the engine does not support, and as from
    `compile_tables` and `new_folder`; DataError for a model that is damaged or incomplete; UserError if the
    disk is full or the folder is in use."""
    from smt_bridge import compiled_model

    model = compiled_model.read_model(args.model)
    check_separate([("MODEL", path) for path in model.paths()], [("--output", args.output)])
    config, folder = parse_settings(CompileConfig, args), Path(args.output)
    with new_folder(folder, "smt-compile", UNFINISHED):
        names = compiled_model.compile_model(model, folder, config, options.shows_bar(args))
        compiled_model.write_ini(folder / compiled_model.INI, model.ini, names)


if __name__ == "__main__":
    sys.exit(main())
