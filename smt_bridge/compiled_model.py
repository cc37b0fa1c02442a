"""Compiled models: the tables and language models of a phrase-based system as folders of mapped arrays, which
open at once and share their memory, and a moses.ini that names them.

    moses.ini   mapped-table/   mapped-lm0/ ...   mapped-words0.txt ... lists of words, and word classes
    mapped-moses.sparse-weights   if the model has sparse features with weights
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.errors import ConfigError
from nmt.io import files, mapped
from nmt.io.progress import Progress
from nmt.ngram import count_models, trie_build
from smt_bridge.decoder import system
from smt_bridge.decoder.config import CompileConfig
from smt_bridge.decoder.feature_lines import NGRAM_MODELS, is_sparse
from smt_bridge.decoder.table import join_columns, quantize
from smt_bridge.decoder.text_tables import read_table
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import sparse_weights
from smt_bridge.moses.ini import PATH_KEYS, FeatureLine, Ini

log = logging.getLogger(__name__)

# Beside the new moses.ini; names that no file in the working directory has.
INI, TABLE, LM, WORDS = "moses.ini", "mapped-table", "mapped-lm", "mapped-words"


@dataclass(frozen=True)
class TextModel:
    """A model whose tables are text."""

    ini: Ini
    table: str  # path of the phrase table
    columns: int  # scores in a row of it
    reordering: str | None  # path of the reordering table
    lms: list[str]  # paths of the language models, in the order of their lines
    words: list[str]  # paths of lists of words and of word classes, likewise
    weights: str  # path of the sparse weights; empty without any

    def paths(self) -> list[str]:
        """The paths of all these files."""
        tables = [self.table, *([self.reordering] if self.reordering else [])]
        return [self.ini.path, *tables, *self.lms, *self.words, *filter(None, [self.weights])]


def read_model(model: str) -> TextModel:
    """Find the files of a model: a folder or a moses.ini. ConfigError for features that the engine does not
    support; DataError for a malformed ini, and for a file that does not exist."""
    ini = moses_ini.read(system.ini_path(model))
    table, reordering = system.table_lines(ini)

    def path(line: FeatureLine, key: str = "path") -> str:
        return system.feature_path(ini, line, key)

    return TextModel(
        ini=ini,
        table=path(table),
        columns=table.scores,
        reordering=path(reordering) if reordering else None,
        lms=[path(line) for line in ini.features if line.kind in NGRAM_MODELS],
        words=[path(line, key) for line in ini.features for key in word_keys(line)],
        weights=system.weight_file(ini),
    )


def word_keys(line: FeatureLine) -> list[str]:
    """The arguments of a feature that name a list of words, or word classes."""
    return [key for key in PATH_KEYS if line.options.get(key) and (key != "path" or is_sparse(line.kind))]


def compile_model(
    model: TextModel, folder: Path, config: CompileConfig, visible: bool = False
) -> dict[str, str]:
    """Write the tables and language models of a model to an existing folder, as folders of mapped arrays, and
    copy its lists of words and word classes. Returns the name there of each file, by the file's real path. A
    language model that is not an ARPA file stays where it is, and so do networks. `visible`: show progress on
    stderr. Errors as from `compile_tables`, `compile_lm` and `read_lines`, but UserError if the disk is
    full."""
    names = {model.table: TABLE} | ({model.reordering: TABLE} if model.reordering else {})
    with files.naming_unwritten(folder):
        (folder / TABLE).mkdir()
        compile_tables(model.table, model.columns, model.reordering, folder / TABLE, config, visible)
        for number, path in enumerate(model.lms):
            if path not in names and Path(path).is_file() and count_models.is_arpa(path):
                names[path] = f"{LM}{number}"
                (folder / names[path]).mkdir()
                compile_lm(path, folder / names[path], config)
        for number, path in enumerate(dict.fromkeys(model.words)):
            names[path] = f"{WORDS}{number}.txt"
            files.write_text(folder / names[path], files.read_lines(path))
    return {os.path.realpath(path): name for path, name in names.items()}


def write_ini(path: Path, ini: Ini, names: Mapping[str, str]) -> None:
    """Write an ini to the file `path` in the folder of a compiled model, naming what is compiled there, and
    copy the sparse weights that the ini names. `names`: see `compile_model`; other paths become absolute.
    UserError if a file cannot be written; ConfigError for a path with a blank."""
    compiled, changed = ini, []
    for line in ini.features:
        for key in filter(line.options.get, PATH_KEYS):
            file = os.path.realpath(system.feature_path(ini, line, key))
            if file in names:
                compiled = moses_ini.set_path(compiled, line.name, names[file], key)
                changed.append((line.name, key))
    compiled = moses_ini.with_absolute_paths(compiled, ini.roots, changed)
    if weights := system.weight_file(ini):
        copy = path.with_name(f"mapped-{path.stem}{sparse_weights.SUFFIX}")
        files.write_text(copy, files.read_lines(weights))
        compiled = moses_ini.with_weight_file(compiled, copy.name)
    moses_ini.write(path, compiled)


def compile_tables(
    table: str,
    columns: int,
    reordering: str | None,
    folder: Path,
    config: CompileConfig,
    visible: bool = False,
) -> None:
    """Write a phrase table, and its reordering table if there is one, to an empty folder. `columns`: number
    of scores in a row; `visible`: show progress on stderr. ConfigError for a table that is compiled already,
    DataError for a malformed one; OSError or UserError if the disk is full."""
    if mapped.is_mapped(table):
        raise ConfigError(f"{table}: compiled already; give the text table")
    tables = [table, *([reordering] if reordering else [])]
    storage = mapped.choose_storage(folder, tables)
    total = partial(files.number_of_lines, table)
    with Progress(total, "pairs", visible, title="reading") as progress:
        content = join_columns(read_table(table, columns, reordering, storage, progress.add), storage)
    if config.quantize:
        log.info("choosing %d values for each score", 1 << config.quantize)
        content = quantize(content, config.quantize, storage)
    mapped.write_record(folder, content, tables)
    log.info(
        "%s: %s phrase pairs of %s sources, %.1f bytes a pair",
        folder,
        f"{content.rows:,}",
        f"{content.source_count:,}",
        folder_bytes(folder) / content.rows,
    )


def compile_lm(path: str, folder: Path, config: CompileConfig) -> None:
    """Write the n-gram model of the ARPA file `path` to an empty folder. DataError for a malformed file;
    OSError or UserError if the disk is full."""
    storage = mapped.choose_storage(folder, [path])
    model = count_models.read_arpa(path, storage)
    compiled = trie_build.compile_model(model, config.quantize_lm, storage)
    mapped.write_record(folder, compiled, [path])
    log.info("%s: %s n-grams, %.1f bytes each", folder, f"{model.size:,}", folder_bytes(folder) / model.size)


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
