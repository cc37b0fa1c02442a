"""A model as a moses.ini tells it: tables, language models, weights. Relative paths are tried from here, then
beside the ini."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.lm import arpa, count
from nmt.numbers import shown
from smt_bridge import moses_ini
from smt_bridge.decoder import automaton, feature_lines, sections
from smt_bridge.decoder.automaton import Automaton
from smt_bridge.decoder.cache import Cache, within
from smt_bridge.decoder.feature_lines import LANGUAGE_MODELS, NEURAL, REORDERING
from smt_bridge.decoder.table import Table
from smt_bridge.decoder.table import read as read_table
from smt_bridge.moses_ini import FeatureLine, Ini, find_table
from smt_bridge.weights import Weights


class CountLM(NamedTuple):
    """An n-gram model that searching understands, as it is cached: the words, then the fields of
    Automaton."""

    vocabulary: list[str]
    words: int
    unknown: int
    begin: int
    end: int
    root: int
    keys: Any
    values: Any
    log_prob: Any
    backoff: Any
    shorter: Any
    state: Any
    most: Any

    def is_sound(self) -> bool:
        """Do all sizes fit, and does every index point into its array? Compiled code checks neither."""
        nodes = self.root + 1
        sizes = (
            len(self.log_prob) == self.root
            and len(self.backoff) == len(self.shorter) == len(self.state) == nodes
        )
        words = (
            len(self.vocabulary) == len(self.most) == self.words
            and 0 <= self.unknown < self.words
            and 0 <= self.end < self.words
        )
        table = (
            len(self.keys) == len(self.values)
            and len(self.keys).bit_count() == 1
            and bool((self.keys == -1).any())
        )
        return (
            sizes
            and words
            and table
            and 0 <= self.begin < nodes
            and all(within(part, nodes) for part in (self.values, self.shorter, self.state))
        )

    @property
    def automaton(self) -> Automaton:
        return Automaton(*self[1:])


@dataclass
class NeuralLine:
    """A neural language model of the ini; its network is loaded where it is needed."""

    name: str
    path: str
    normalized: bool


@dataclass
class System:
    """What searching needs."""

    ini: Ini
    printed: dict[
        str, list[int]
    ]  # the features of n-best lists in their order, and which of their scores stand there
    weights: Weights  # of all features and scores
    table_name: str
    table: Table
    reordering_name: str  # empty without
    lm_names: list[str]
    lms: list[Any]  # CountLM, or a KenLM binary
    neural: list[NeuralLine] = field(default_factory=list)
    search: dict[str, Any] = field(
        default_factory=dict
    )  # what the ini says of the search: fields of SearchSettings
    default_reordering: list[float] = field(
        default_factory=lambda: [0.0] * 6
    )  # logarithms, for pairs that the reordering table does not have

    @property
    def sizes(self) -> dict[str, int]:
        """How many scores of each feature n-best lists print; these are what tuning sees."""
        return {name: len(scores) for name, scores in self.printed.items()}

    def tuneable_weights(self) -> Weights:
        """The weights of the scores that n-best lists print."""
        return {
            name: [self.weights[name][score] for score in scores] for name, scores in self.printed.items()
        }

    def with_weights(self, given: Weights) -> Weights:
        """Weights of all features: the ini's with those given, of all scores of a feature or of the printed
        ones.

        ConfigError for weights that do not fit, that belong to no feature, or that are missing.
        """
        made = dict(self.weights)
        for name, values in given.items():
            if name not in made:
                raise ConfigError(
                    f"weights of {shown(name)}, but the model has no such feature; it has {', '.join(made)}"
                )
            places = self.printed.get(name, [])
            if len(values) == len(made[name]):
                made[name] = list(values)
            elif len(values) == len(places):
                replaced = dict(zip(places, values, strict=True))
                made[name] = [replaced.get(place, value) for place, value in enumerate(made[name])]
            else:
                raise ConfigError(f"{name} has {len(made[name])} scores, but {len(values)} weights")
        if missing := [name for name in self.printed if name not in given]:
            raise ConfigError(f"no weights for {missing[0]}, which has {len(made[missing[0]])} scores")
        return made

    def name(self, kind: str) -> str:
        """The one feature of a kind, empty where there is none."""
        return next((feature.name for feature in self.ini.features if feature.kind == kind), "")


def ini_of(model: str) -> str:
    """MODEL_DIR or moses.ini -> moses.ini"""
    path = Path(model)
    if path.is_dir():
        path = path / "moses.ini"
        if not path.exists():
            raise DataError(
                f"{model}: no moses.ini in this folder; give a model directory of smt-train, or a moses.ini"
            )
    return str(path)


def load(model: str, use_cache: bool | Cache = True) -> System:
    """ConfigError or DataError, in one line, for what we cannot decode with: unknown features, tables that do
    not fit the ini.

    `use_cache`: tables and language models are kept in the user's cache, or in the given one, and load much
    faster from there.
    """
    cache = Cache() if use_cache is True else use_cache or None
    ini = moses_ini.read(ini_of(model))
    search = sections.read(ini)
    by_kind = feature_lines.check(ini)
    printed, weights = feature_lines.printed(ini), feature_lines.weights(ini)
    table_line = by_kind["PhraseDictionaryMemory"][0]
    if "table-limit" in table_line.options:
        search["table_limit"] = feature_lines.number(ini, table_line, "table-limit")
    reordering_line = by_kind.get(REORDERING, [None])[0]
    places = {feature.name: place(ini, feature) for feature in ini.features if "path" in feature.options}
    paths = [places[line.name] for line in (table_line, reordering_line) if line]
    lm_lines = [feature for feature in ini.features if feature.kind in LANGUAGE_MODELS]
    neural = [
        NeuralLine(line.name, places[line.name], feature_lines.true(ini, line, "normalized"))
        for line in by_kind.get(NEURAL, [])
    ]
    for line in lm_lines:
        check_order(ini, line, places[line.name])

    def table() -> Table:
        return read_table(paths[0], table_line.scores, paths[1] if reordering_line else None)

    loaded = cache.keep(paths, table, Table) if cache else table()
    if loaded.scores.shape[1] != table_line.scores:
        raise DataError(
            f"{ini.path}: {table_line.name} has num-features={table_line.scores}, but {paths[0]} has "
            f"{loaded.scores.shape[1]} scores"
        )
    return System(
        ini, printed, weights, table_line.name, loaded, reordering_line.name if reordering_line else "",
        [line.name for line in lm_lines], [load_lm(places[line.name], cache) for line in lm_lines], neural,
        search,
        feature_lines.default_reordering(ini, reordering_line) if reordering_line else [0.0] * 6,
    )  # fmt: skip


def place(ini: Ini, feature: FeatureLine) -> str:
    """The file of a feature: as given, then beside the ini."""
    given = feature.options["path"]
    for root in (".", str(Path(ini.path).parent)):
        found = find_table(given, root)
        if found:
            return str(found)
    raise DataError(f"{ini.path}:{feature.row + 1}: {given} is there neither from here nor beside the ini")


def check_order(ini: Ini, line: FeatureLine, path: str) -> None:
    """ConfigError for an order= below that of the file: KENLM takes the file's, as we do, but SRILM and
    IRSTLM would leave n-grams out."""
    if (
        line.kind == "KENLM"
        or "order" not in line.options
        or not Path(path).is_file()
        or not arpa.is_arpa(path)
    ):
        return
    order = sum(
        1
        for text in itertools.takewhile(
            lambda text: not text.startswith(b"\\1-"), files.read_byte_lines(path)
        )
        if text.startswith(b"ngram")
    )
    if feature_lines.number(ini, line, "order") < order:
        raise ConfigError(
            f"{ini.path}:{line.row + 1}: order={line.options['order']}, but {path} has n-grams of {order} "
            f"words; write order={order}, or use KENLM"
        )


def load_lm(path: str, cache: Cache | None = None) -> Any:
    """An ARPA file as an automaton, or a binary file of KenLM, which only the plain decoder reads."""
    if not Path(path).is_file() or not arpa.is_arpa(path):
        return count.load_count_model(path)

    def make() -> CountLM:
        model = arpa.read(path)
        return CountLM(model.words, *automaton.build(model))

    return cache.keep([path], make, CountLM) if cache else make()


def nothing() -> CountLM:
    """A language model that says nothing, for systems without one."""
    zero, none = np.zeros(3), np.zeros(4, np.int32)
    return CountLM(
        ["<unk>", "<s>", "</s>"],
        3,
        0,
        3,
        2,
        3,
        np.full(2, -1, np.int64),
        np.zeros(2, np.int32),
        zero,
        np.zeros(4),
        none + 3,
        none + 3,
        zero,
    )
