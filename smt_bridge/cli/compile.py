"""smt-compile: write tables of Moses as mapped arrays, which open at once and share their memory."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath, check_separate, new_folder
from nmt.errors import ConfigError
from nmt.io import files, mapped
from smt_bridge.moses import ini as moses_ini

log = logging.getLogger(__name__)

# Beside the new moses.ini; names that no file in the working directory has.
TABLE, LM = "mapped-table", "mapped-lm"
MOST_LM_BITS = 16  # as in nmt/ngram/trie_build.py, which loads numpy


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-compile",
        "Write a phrase table and its reordering table as a folder of arrays that smt-decode, smt-tune and "
        "nmt-serve map into memory: it opens in milliseconds, processes share it, and only what a text needs "
        "is read. From a model the new folder also has its language models, as nmt-ngram compile makes them "
        "of ARPA files, and a moses.ini with the same weights; from a table it is what path= of "
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
    parser.add_argument("--output", "-o", type=OutputPath, required=True, metavar="DIR", help="a new folder")
    parser.add_argument(
        "--reordering", type=InputPath, default="", metavar="FILE", help="the reordering table of TABLE"
    )
    parser.add_argument(
        "--quantize",
        type=int,
        choices=(8, 16),
        default=0,
        metavar="BITS",
        help="8 or 16: store each score as the nearest of 256 or 65,536 values of its column; default: exact "
        "scores of 32 bits",
    )
    parser.add_argument(
        "--quantize-lm",
        type=arguments.integer(0, MOST_LM_BITS),
        default=0,
        metavar="BITS",
        help="bits of each log p and back-off of the language models, such as 12; 0: exact",
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-compile", args, times=True)
    files.existing([path for path in (args.model, args.reordering) if path])
    if is_table(args.model):
        from smt_bridge.moses import check

        check_separate(
            [("TABLE", args.model), ("--reordering", args.reordering)], [("--output", args.output)]
        )
        with new_folder(args.output, "smt-compile"):
            columns = check.columns(args.model)
            compile_tables(args, Path(args.output), columns, args.model, args.reordering or None)
    elif args.reordering:
        raise ConfigError("--reordering: goes with a phrase table; a model names its own reordering table")
    else:
        compile_model(args)


def is_table(path: str) -> bool:
    """Whether a path is a phrase table rather than a moses.ini or a folder. DataError for a file that cannot
    be read."""
    return Path(path).is_file() and b"|||" in next(iter(files.read_byte_lines(path)), b"")


def compile_model(args: argparse.Namespace) -> None:
    """Write the tables of a model to the new folder --output, with a moses.ini that names them. ConfigError
    for an output that is part of the model, or as from `compile_tables` and `new_folder`; DataError for a
    model that is damaged."""
    from nmt.ngram import count_models
    from smt_bridge.decoder import system
    from smt_bridge.decoder.feature_lines import LANGUAGE_MODELS

    ini = moses_ini.read(system.ini_path(args.model))
    table, reordering = system.table_lines(ini)
    paths = [system.feature_path(ini, line) for line in (table, *([reordering] if reordering else []))]
    lms = [line for line in ini.features if line.kind in LANGUAGE_MODELS]
    lm_paths = [system.feature_path(ini, line) for line in lms]
    check_separate([("MODEL", path) for path in (ini.path, *paths, *lm_paths)], [("--output", args.output)])
    with new_folder(args.output, "smt-compile"):
        folder = Path(args.output) / TABLE
        folder.mkdir()
        compile_tables(args, folder, table.scores, *paths)
        ini = moses_ini.with_absolute_paths(ini, ini.roots())
        for line in (table, *([reordering] if reordering else [])):
            ini = moses_ini.set_path(ini, line.name, TABLE)
        for number, (line, path) in enumerate(zip(lms, lm_paths, strict=True)):
            if Path(path).is_file() and count_models.is_arpa(path):
                compile_lm(args, Path(args.output) / f"{LM}{number}", path)
                ini = moses_ini.set_path(ini, line.name, f"{LM}{number}")
        moses_ini.write(Path(args.output) / "moses.ini", ini)


def compile_tables(
    args: argparse.Namespace, folder: Path, columns: int, table: str, reordering: str | None = None
) -> None:
    """Write a phrase table, and its reordering table if there is one, to an empty folder. `columns`: number
    of scores in a row. ConfigError for a table that is compiled already, DataError for a malformed one,
    UserError if the disk is full."""
    from smt_bridge.decoder.table import quantize
    from smt_bridge.decoder.text_tables import read_table

    if mapped.is_mapped(table):
        raise ConfigError(f"{table}: compiled already; give the text table")
    tables = [table, *([reordering] if reordering else [])]
    with files.naming_full_disk(args.output):
        storage = mapped.choose_storage(folder, tables)
        with options.line_progress(args, table, unit="pairs", title="reading") as progress:
            content = read_table(table, columns, reordering, storage, progress.add)
        if args.quantize:
            log.info("choosing %d values for each score", 1 << args.quantize)
            content = quantize(content, args.quantize, storage)
    mapped.write_record(folder, content, tables)
    size = sum(path.stat().st_size for path in folder.iterdir())
    log.info(
        "%s: %s phrase pairs of %s sources, %.1f bytes a pair",
        folder,
        f"{content.rows:,}",
        f"{content.source_count:,}",
        size / content.rows,
    )


def compile_lm(args: argparse.Namespace, folder: Path, path: str) -> None:
    """Write the n-gram model of the ARPA file `path` to the new folder `folder`. DataError for a malformed
    file, UserError if the disk is full."""
    from nmt.ngram import count_models, trie_build

    folder.mkdir()
    with files.naming_full_disk(args.output):
        storage = mapped.choose_storage(folder, [path])
        model = count_models.read_arpa(path, storage)
        compiled = trie_build.compile_model(model, args.quantize_lm, storage)
    mapped.write_record(folder, compiled, [path])
    size = sum(file.stat().st_size for file in folder.iterdir())
    log.info("%s: %s n-grams, %.1f bytes each", folder, f"{model.size:,}", size / model.size)


if __name__ == "__main__":
    sys.exit(main())
