"""A model as a moses.ini tells it: tables, language models, weights. Relative paths are tried from here, then beside the ini."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.errors import ConfigError, DataError
from nmt.lm import arpa, count
from smt_bridge import moses_ini
from smt_bridge.decoder import automaton
from smt_bridge.decoder.automaton import Automaton
from smt_bridge.decoder.table import Table, cached
from smt_bridge.decoder.table import read as read_table
from smt_bridge.moses_ini import FeatureLine, Ini, find_table
from smt_bridge.weights import Weights

TABLES = ("PhraseDictionaryMemory",)
LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM")  # whatever reads ARPA
NEURAL = "CSLM"  # ours: CSLM name=CSLM0 factor=0 path=RUN_DIR [normalized=true]
REORDERING = "wbe-msd-bidirectional-fe"
PENALTIES = ("Distortion", "WordPenalty", "PhrasePenalty", "UnknownWordPenalty")
STATEFUL = ("LexicalReordering", "Distortion", *LANGUAGE_MODELS, NEURAL)  # these stand first in n-best lists
KNOWN = (*TABLES, *LANGUAGE_MODELS, NEURAL, "LexicalReordering", *PENALTIES)


class CountLM(NamedTuple):
    """An n-gram model that searching understands, as it is cached: the words, then the fields of Automaton."""

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
    """What searching needs. `sizes`: features in the order of n-best lists and how many scores each has."""

    ini: Ini
    sizes: dict[str, int]
    weights: Weights
    table_name: str
    table: Table
    reordering_name: str  # empty without
    lm_names: list[str]
    lms: list[Any]  # CountLM, or a KenLM binary
    neural: list[NeuralLine] = field(default_factory=list)
    table_limit: int | None = None
    distortion_limit: int | None = None

    def name(self, kind: str) -> str:
        """The one feature of a kind, empty where there is none."""
        return next((feature.name for feature in self.ini.features if feature.kind == kind), "")

    def weight(self, name: str) -> list[float]:
        return self.weights[name] if name else [0.0]


def ini_of(model: str) -> str:
    """MODEL_DIR or moses.ini -> moses.ini"""
    path = Path(model)
    if path.is_dir():
        path = path / "moses.ini"
        if not path.exists():
            raise DataError(f"{model}: no moses.ini in this folder; give a model directory of smt-train, or a moses.ini")
    return str(path)


def load(model: str, use_cache: bool = True) -> System:
    """ConfigError or DataError, in one line, for what we cannot decode with: unknown features, tables that do not fit the ini."""
    ini = moses_ini.read(ini_of(model))
    by_kind = check_features(ini)
    weights = {feature.name: moses_ini.weights_of(ini, feature) for feature in ini.features if feature.kind != "UnknownWordPenalty"}
    table_line = by_kind["PhraseDictionaryMemory"][0]
    reordering_line = by_kind.get("LexicalReordering", [None])[0]
    places = {feature.name: place(ini, feature) for feature in ini.features if "path" in feature.options}
    paths = [places[line.name] for line in (table_line, reordering_line) if line]
    lm_lines = [feature for feature in ini.features if feature.kind in LANGUAGE_MODELS]
    neural = [NeuralLine(line.name, places[line.name], line.options.get("normalized", "").lower() == "true") for line in by_kind.get(NEURAL, [])]

    def table() -> Table:
        return read_table(paths[0], table_line.scores, paths[1] if reordering_line else None)

    loaded = cached(paths[0], paths, table, Table) if use_cache else table()
    if loaded.scores.shape[1] != table_line.scores:
        raise DataError(f"{ini.path}: {table_line.name} has num-features={table_line.scores}, but {paths[0]} has {loaded.scores.shape[1]} scores")
    limit = table_line.options.get("table-limit")
    return System(
        ini, sizes(ini), weights, table_line.name, loaded, reordering_line.name if reordering_line else "",
        [line.name for line in lm_lines], [load_lm(places[line.name], use_cache) for line in lm_lines], neural,
        int(limit) if limit else None, section_number(ini, "distortion-limit"),
    )  # fmt: skip


def sizes(ini: Ini) -> dict[str, int]:
    """Features as n-best lists print them: stateful ones first, UnknownWordPenalty never."""
    printed = [feature for feature in ini.features if feature.kind != "UnknownWordPenalty"]
    ordered = sorted(printed, key=lambda feature: feature.kind not in STATEFUL)  # stable
    return {feature.name: feature.scores for feature in ordered}


def check_features(ini: Ini) -> dict[str, list[FeatureLine]]:
    """The features by kind. ConfigError for one that the engine does not have, or cannot have twice."""
    found: dict[str, list[FeatureLine]] = {}
    for feature in ini.features:
        if feature.kind not in KNOWN:
            advice = "give the text table as PhraseDictionaryMemory" if "PhraseDictionary" in feature.kind else "remove the line, or decode with Moses"
            raise ConfigError(f"{ini.path}:{feature.row + 1}: the embedded engine has no feature {feature.kind}; it has {', '.join(KNOWN)}; {advice}")
        found.setdefault(feature.kind, []).append(feature)
    for kind in (*TABLES, "LexicalReordering", *PENALTIES):
        if len(found.get(kind, [])) > 1:
            raise ConfigError(f"{ini.path}:{found[kind][1].row + 1}: a second {kind}; the embedded engine takes one")
    if not found.get("PhraseDictionaryMemory"):
        raise ConfigError(f"{ini.path}: no feature PhraseDictionaryMemory, nothing to translate with")
    for line in [line for kind in (*TABLES, "LexicalReordering", *LANGUAGE_MODELS, NEURAL) for line in found.get(kind, [])]:
        if not line.options.get("path"):
            raise ConfigError(f"{ini.path}:{line.row + 1}: {line.name} has no path=, expected the file that it reads")
    for line in found.get("LexicalReordering", []):
        if not line.options.get("type", "").startswith(REORDERING) or line.scores != 6:
            raise ConfigError(f"{ini.path}:{line.row + 1}: the embedded engine takes reordering of type={REORDERING}-allff with num-features=6 only")
    for feature in ini.features:
        if any(feature.options.get(key, "0") != "0" for key in ("factor", "input-factor", "output-factor")):
            raise ConfigError(f"{ini.path}:{feature.row + 1}: factors are not supported; use a model of one factor")
    return found


def place(ini: Ini, feature: FeatureLine) -> str:
    """The file of a feature: as given, then beside the ini."""
    given = feature.options["path"]
    for root in (".", str(Path(ini.path).parent)):
        found = find_table(given, root)
        if found:
            return str(found)
    raise DataError(f"{ini.path}:{feature.row + 1}: {given} is there neither from here nor beside the ini")


def load_lm(path: str, use_cache: bool = True) -> Any:
    """An ARPA file as an automaton, or a binary file of KenLM, which only the plain decoder reads."""
    if not Path(path).is_file() or not arpa.is_arpa(path):
        return count.load(path)

    def make() -> CountLM:
        model = arpa.read(path)
        return CountLM(model.words, *automaton.build(model))

    return cached(path, [path], make, CountLM) if use_cache else make()


def section_number(ini: Ini, name: str) -> int | None:
    """The number of a section such as [distortion-limit]."""
    inside = False
    for row, line in enumerate(ini.lines, 1):
        text = line.strip()
        if header := re.fullmatch(r"\[(.+)\]", text):
            inside = header[1] == name
        elif inside and text and not text.startswith("#"):
            try:
                return int(text)
            except ValueError as error:
                raise DataError(f"{ini.path}:{row}: [{name}] {text!r} is not a number") from error
    return None


def nothing() -> CountLM:
    """A language model that says nothing, for systems without one."""
    zero, none = np.zeros(3), np.zeros(4, np.int32)
    return CountLM(["<unk>", "<s>", "</s>"], 3, 0, 3, 2, 3, np.full(2, -1, np.int64), np.zeros(2, np.int32), zero, np.zeros(4), none + 3, none + 3, zero)
