"""A phrase-based system loaded from a moses.ini: tables, language models and weights. Relative paths are
looked up in the working directory, then in the ini's folder."""

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from nmt.errors import ConfigError, DataError
from nmt.io import files, mapped
from nmt.io.numbers import shown
from nmt.ngram import count_models, word_classes
from nmt.runs.directory import model_files
from smt_bridge.decoder import feature_lines
from smt_bridge.decoder.automaton import null_model
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig, read_search_settings
from smt_bridge.decoder.feature_lines import CLASS_LM, LANGUAGE_MODELS, REORDERING
from smt_bridge.decoder.features.protocol import SearchFeature, SparseFeature
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.decoder.model import AnyWordLM, AutomatonLM, ClassLM, load_lm, load_trie
from smt_bridge.decoder.table import PhraseTable
from smt_bridge.decoder.text_tables import read_table
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import sparse_weights
from smt_bridge.moses.ini import PATH_KEYS, WEIGHT_FILE, FeatureLine, Ini, Weights, find_table
from smt_bridge.moses.reordering import ReorderingType
from smt_bridge.moses.sparse_weights import SparseWeights


@dataclass
class PhraseBasedSystem:
    """The tables, models and weights that an ini names."""

    ini: Ini
    printed: dict[str, list[int]]  # features in n-best lists, in order: indices of their printed scores
    weights: Weights  # of all scores of all features
    table_name: str
    table: PhraseTable
    reordering_name: str  # empty if there is no reordering table
    reordering: ReorderingType  # of the reordering table; without one it has no meaning
    default_reordering: list[float]  # log scores of pairs that the reordering table lacks
    lm_names: list[str]
    lms: Sequence[AnyWordLM]
    feature_lines: list[tuple[type[SearchFeature], FeatureLine]]  # of features in SEARCH_FEATURES
    search: dict[str, object]  # search settings in the ini: fields of SearchSettings
    cache: Cache | None = None  # of parsed tables and models; None for none
    sparse_weights: SparseWeights = field(default_factory=dict)  # of the values of sparse features

    @property
    def word_lms(self) -> Sequence[AnyWordLM]:
        """The language models; if the system has none, one that scores nothing."""
        return self.lms or [AutomatonLM(null_model())]

    def load_features(self, config: DecoderConfig) -> list[SearchFeature]:
        """Load the system's features in SEARCH_FEATURES. UserError for one that cannot be used."""
        features = [kind.load_cached(line, config, self.cache) for kind, line in self.feature_lines]
        for (_, line), feature in zip(self.feature_lines, features, strict=True):
            if not isinstance(cast(object, feature), SearchFeature):
                raise line.error(f"its load returned {type(feature).__name__}, expected a SearchFeature")
        return features

    @property
    def sparse(self) -> list[str]:
        """The names of the sparse features whose values n-best lists print, and tuners see."""
        return [
            line.name
            for kind, line in self.feature_lines
            if issubclass(kind, SparseFeature) and line.truth("tuneable", True)
        ]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of scores that n-best lists print, and tuners see, for each feature."""
        return {name: len(scores) for name, scores in self.printed.items()}

    def tuneable_weights(self) -> Weights:
        """The weights of the scores that n-best lists print."""
        return {
            name: [self.weights[name][score] for score in scores] for name, scores in self.printed.items()
        }

    def with_weights(self, weights: Weights) -> Weights:
        """The weights of all scores, with those of `weights` in place of the ini's. A feature's new weights
        are for all its scores or for the printed ones.

        ConfigError if a printed feature has no new weights, for too many or too few of them, and for those of
        a feature that the system lacks."""
        merged = dict(self.weights)
        for name, values in moses_ini.split_weights(self.ini, weights)[0].items():
            if name not in merged:
                raise ConfigError(
                    f"weights of {shown(name)}, but the model has no such feature; it has {', '.join(merged)}"
                )
            columns = self.printed.get(name, [])
            if len(values) == len(merged[name]):
                merged[name] = list(values)
            elif len(values) == len(columns):
                replaced = dict(zip(columns, values, strict=True))
                merged[name] = [replaced.get(column, value) for column, value in enumerate(merged[name])]
            else:
                raise ConfigError(
                    f"{name} has {len(merged[name])} scores, but {len(values)} weights; give as many"
                )
        if missing := [name for name in self.printed if name not in weights]:
            raise ConfigError(f"no weights for {missing[0]}, which has {len(merged[missing[0]])} scores")
        return merged

    def with_sparse_weights(self, weights: Weights) -> SparseWeights:
        """The weights of all sparse values, with those of `weights` in place of the ini's; other names in
        `weights` are passed over. ConfigError as in `split_weights`."""
        return self.sparse_weights | moses_ini.split_weights(self.ini, weights)[1]

    def name(self, kind: str) -> str:
        """The name of the first feature of a kind; empty if there is none."""
        return next((feature.name for feature in self.ini.features if feature.kind == kind), "")

    def weight(self, kind: str, weights: Weights) -> float:
        """The weight of the feature of a kind that has one score; 0 if the system lacks it."""
        name = self.name(kind)
        return weights[name][0] if name else 0.0


def ini_path(model: str) -> str:
    """The path of the moses.ini in a model directory; the path of an ini is returned unchanged. DataError for
    a folder without a moses.ini."""
    path = Path(model)
    if path.is_dir():
        path = path / "moses.ini"
        if not path.exists():
            raise DataError(
                f"{model}: no moses.ini in this folder; give a model directory of smt-train, or a moses.ini"
            )
    return str(path)


def load(model: str, use_cache: bool | Cache = True) -> PhraseBasedSystem:
    """Load the system of a model directory or a moses.ini. ConfigError or DataError, in one line, for one
    that the engine cannot use, such as one with unknown features or with tables that do not fit the ini;
    UserError if the disk of the cache is too full to read a large table.

    `use_cache`: where parsed tables and language models are kept, from which they load much faster next time:
    True for the user's cache, False for none, or a cache.
    """
    return load_ini(moses_ini.read(ini_path(model)), use_cache)


def load_ini(ini: Ini, use_cache: bool | Cache = True) -> PhraseBasedSystem:
    """Load a system from a parsed ini; see `load`."""
    cache = Cache() if use_cache is True else use_cache or None
    search = read_search_settings(ini)
    table_line, reordering_line = table_lines(ini)
    printed, weights = feature_lines.printed_scores(ini), feature_lines.weights(ini)
    if "table-limit" in table_line.options:
        search["table_limit"] = table_line.count("table-limit")
    lines = [with_paths(ini, line) for line in ini.features]
    paths = {line.name: line.options.get("path", "") for line in lines}
    # The first language model stands in for networks until they have scored a candidate, and a model of words
    # is closer to them than one of word classes.
    lm_lines = [line for line in lines if line.kind in LANGUAGE_MODELS]
    lm_lines.sort(key=lambda line: line.kind == CLASS_LM)
    for line in lm_lines:
        check_order(line)
    reordering_path = paths[reordering_line.name] if reordering_line else None
    reordering = feature_lines.reordering_type(reordering_line) if reordering_line else ReorderingType()
    table = load_table(ini, table_line, paths[table_line.name], reordering_path, cache)
    if reordering_line and table.reordering.shape[1] != reordering.probabilities:
        raise DataError(
            f"{reordering_line.location}: type={reordering_line.options['type']} has "
            f"{reordering.probabilities} probabilities for a pair, but {reordering_path} has "
            f"{table.reordering.shape[1]}; give the table that belongs to the type"
        )
    return PhraseBasedSystem(
        ini=ini,
        printed=printed,
        weights=weights,
        table_name=table_line.name,
        table=table,
        reordering_name=reordering_line.name if reordering_line else "",
        reordering=reordering,
        default_reordering=(
            feature_lines.default_reordering(reordering_line)
            if reordering_line
            else [0.0] * reordering.probabilities
        ),
        lm_names=[line.name for line in lm_lines],
        lms=[load_line_lm(line, cache) for line in lm_lines],
        feature_lines=[(SEARCH_FEATURES[line.kind], line) for line in lines if line.kind in SEARCH_FEATURES],
        search=search,
        cache=cache,
        sparse_weights=read_sparse_weights(ini),
    )


def table_lines(ini: Ini) -> tuple[FeatureLine, FeatureLine | None]:
    """The lines of the phrase table and of the reordering table, if there is one. ConfigError for features
    that the engine does not support."""
    by_kind = feature_lines.features_by_kind(ini)
    return by_kind["PhraseDictionaryMemory"][0], by_kind[REORDERING][0] if REORDERING in by_kind else None


def with_paths(ini: Ini, line: FeatureLine) -> FeatureLine:
    """The line of a feature with the files that it names, if any, replaced by their resolved paths. DataError
    for a file that does not exist."""
    paths = {key: feature_path(ini, line, key) for key in PATH_KEYS if line.options.get(key)}
    return replace(line, options=line.options | paths) if paths else line


def weight_file(ini: Ini) -> str:
    """Look up the file that [weight-file] names; empty without one. DataError if missing, or for two."""
    section = ini.sections.get(WEIGHT_FILE)
    if section is None:
        return ""
    location = f"{ini.path}:{section.row + 1}"
    if len(section.values) != 1:
        raise DataError(f"{location}: [{WEIGHT_FILE}] names {len(section.values)} files; name one")
    for root in ini.roots:
        if path := find_table(ini.weight_file, root):
            return str(path)
    raise DataError(f"{location}: {ini.weight_file} not found; copy it there, or correct [{WEIGHT_FILE}]")


def read_sparse_weights(ini: Ini) -> SparseWeights:
    """Read the weights of the sparse features of an ini; none without [weight-file]. ConfigError for a sparse
    feature with `_` in its name, which would hide its values, and for weights of a feature that the ini
    lacks; also the errors of `weight_file` and `sparse_weights.read`."""
    names = {line.name: line for line in ini.features if feature_lines.is_sparse(line.kind)}
    for name, line in names.items():
        if sparse_weights.is_sparse(name):
            raise line.error(f"name={name}: a sparse feature has no _ in its name; give another name=")
    path = weight_file(ini)
    weights = sparse_weights.read(path) if path else {}
    for name in weights:
        if sparse_weights.feature_of(name) not in names:
            raise ConfigError(
                f"{path}: a weight of {shown(name)}, but {ini.path} has no such sparse feature; remove the "
                "line, or add the feature"
            )
    return weights


def load_table(
    ini: Ini, line: FeatureLine, path: str, reordering: str | None, cache: Cache | None
) -> PhraseTable:
    """Load the phrase table with its reordering table, or the folder of smt-compile that holds both. `line`:
    of the phrase table; `path`, `reordering`: of the tables; `cache`: None to parse text tables each time.
    DataError for a table that is malformed or damaged, or that does not fit the ini; UserError if the disk
    of the cache is too full to read a large one."""

    sources = [path, reordering] if reordering else [path]

    def make() -> PhraseTable:
        if cache is None:
            return read_table(path, line.scores, reordering)
        with files.naming_unwritten(cache.folder):
            return read_table(path, line.scores, reordering, cache.storage(sources))

    if Path(path).is_dir() or (reordering and Path(reordering).is_dir()):
        loaded = load_compiled(ini, path, reordering, cache)
    else:
        loaded = cache.keep(sources, make, PhraseTable) if cache else make()
    if loaded.columns != line.scores:
        raise DataError(
            f"{ini.path}: {line.name} has num-features={line.scores}, but {path} has "
            f"{loaded.columns} scores; write that number, and as many weights"
        )
    return loaded


def load_compiled(ini: Ini, path: str, reordering: str | None, cache: Cache | None) -> PhraseTable:
    """Map the arrays in a folder of smt-compile. DataError for any other folder, and for one that does not
    fit the ini. `path`, `reordering`: of the phrase table and the reordering table, which have to be the
    same."""
    for folder in filter(None, (path, reordering)):
        if not mapped.is_mapped(folder):
            raise DataError(f"{folder}: expected a text table, or a folder made by smt-compile")
    if reordering and os.path.realpath(reordering) != os.path.realpath(path):
        raise DataError(
            f"{ini.path}: {path} and {reordering}: a folder of smt-compile holds both tables; give the same "
            "path= in both lines"
        )
    loaded = mapped.load_record(path, PhraseTable, "smt-compile", cache.stamp(path) if cache else None)
    if reordering and not loaded.reordering.shape[1]:
        raise DataError(
            f"{path}: holds no reordering table, but {ini.path} names one; give it to smt-compile with "
            "--reordering, or remove the line"
        )
    return loaded


def verify_compiled(ini: Ini) -> bool:
    """Verify the checksums of all folders of mapped arrays that an ini names. Returns whether there are any.
    DataError for the first file that is damaged."""
    paths = [feature_path(ini, feature) for feature in ini.features if "path" in feature.options]
    compiled = [path for path in paths if mapped.is_mapped(path)]
    for path in dict.fromkeys(compiled):
        mapped.load(path, verify=True)
    return bool(compiled)


def feature_path(ini: Ini, feature: FeatureLine, key: str = "path") -> str:
    """Look up the file or folder that argument `key` of a feature names. DataError if it is missing."""
    name = feature.options[key]
    for root in ini.roots:
        path = find_table(name, root)
        if path:
            return str(path)
    raise DataError(
        f"{feature.location}: {name} found neither beside the ini nor in the current folder; copy it there, "
        f"or correct {key}="
    )


def system_files(ini: Ini) -> list[Path]:
    """Paths of all files of a system: its ini, tables and models; of a folder, the files that `model_files`
    lists. DataError for a file or folder that the ini names and that does not exist."""
    paths = [Path(ini.path), *map(Path, filter(None, [weight_file(ini)]))]
    for feature in ini.features:
        for key in filter(feature.options.get, PATH_KEYS):
            paths += model_files(Path(feature_path(ini, feature, key)))
    return paths


def check_order(line: FeatureLine) -> None:
    """ConfigError if order= in the line of a language model, with a resolved path, is below the order of its
    ARPA file. KENLM ignores the option, as this engine does, but SRILM and IRSTLM would drop the longer
    n-grams."""
    path = line.options["path"]
    if (
        line.kind in ("KENLM", CLASS_LM)
        or "order" not in line.options
        or not Path(path).is_file()
        or not count_models.is_arpa(path)
    ):
        return
    header = itertools.takewhile(lambda text: not text.startswith(b"\\1-"), files.read_byte_lines(path))
    order = sum(text.startswith(b"ngram") for text in header)
    if line.count("order") < order:
        raise ConfigError(
            f"{line.location}: order={line.options['order']}, but {path} has n-grams of {order} "
            f"words; write order={order}, or use KENLM"
        )


def load_line_lm(line: FeatureLine, cache: Cache | None) -> AnyWordLM:
    """Load the language model of a line in [feature] with resolved paths, that of a ClassLM with its word
    classes. Errors as in `load_lm` and `read_classes`; ConfigError also for a ClassLM whose model is a binary
    file of KenLM."""
    path = line.options["path"]
    if line.kind != CLASS_LM:
        return load_lm(path, cache)
    classes = word_classes.read_classes(line.options["classes"])
    model = load_trie(path, cache)
    if model is None:
        raise line.error(
            f"path={path}: neither an ARPA file nor a folder of nmt-ngram compile, which a {CLASS_LM} needs"
        )
    return ClassLM(model, classes)
