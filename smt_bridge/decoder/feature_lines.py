"""The [feature] section of a moses.ini: which features the engine supports, and with which arguments.

Every argument is either honored as in Moses, or changes no result, or is refused with its line.
"""

import math
from collections.abc import Set

from nmt.errors import ConfigError
from nmt.io.numbers import real, shown
from smt_bridge.decoder.features.protocol import SearchFeature, SparseFeature, StatefulFeature
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import FALSE, FeatureLine, Ini, Weights, parse_truth
from smt_bridge.moses.reordering import ReorderingType

TABLES = ("PhraseDictionaryMemory",)
CLASS_LM = "ClassLM"  # a language model of word classes; Moses has no such line
LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM", CLASS_LM)  # all kinds that read ARPA files
NGRAM_MODELS = (*LANGUAGE_MODELS, "OpSequenceModel")  # kinds whose path= names an ARPA file
REORDERING = "LexicalReordering"
UNKNOWN = "UnknownWordPenalty"
PENALTIES = ("Distortion", "WordPenalty", "PhrasePenalty", UNKNOWN)
STATEFUL = (REORDERING, "Distortion", *LANGUAGE_MODELS)  # these come first in n-best lists

# Arguments that a line of any kind may have, and those of all kinds but reordering.
EVERY = {"name", "num-features"}
COMMON = {
    *EVERY,
    "tuneable",
    "tuneable-components",
    "filterable",
    "verbosity",
    "require-sorting-after-source-context",
}
LM = {*COMMON, "factor", "path", "order", "oov-feature"}
ARGUMENTS = {
    "PhraseDictionaryMemory": {*COMMON, "path", "input-factor", "output-factor", "table-limit", "cache-size"},
    REORDERING: {*EVERY, "path", "input-factor", "output-factor", "type", "default-scores"},
    "KENLM": {*LM, "lazyken", "load"}, "SRILM": LM, "IRSTLM": LM, CLASS_LM: {*LM, "classes"},
    "PhrasePenalty": {*COMMON, "per-dictionary"},
}  # fmt: skip
TEXT_TABLE = "give the text table that it was made from as PhraseDictionaryMemory"
COMBINED = "decode with Moses, or with one of the tables that it combines"
ADVICE = {
    "PhraseDictionaryCompact": TEXT_TABLE, "PhraseDictionaryOnDisk": TEXT_TABLE,
    "PhraseDictionaryBinary": TEXT_TABLE, "ProbingPT": TEXT_TABLE,
    "PhraseDictionaryMultiModel": COMBINED, "PhraseDictionaryMultiModelCounts": COMBINED,
    "PhraseDictionaryGroup": COMBINED,
}  # fmt: skip
FACTORS = ("factor", "input-factor", "output-factor")
FILES = ("path", "classes")  # arguments that a line must have if its kind has them
# the only values that the engine supports
ONLY = {"per-dictionary": FALSE, "require-sorting-after-source-context": FALSE}


def feature_kinds() -> tuple[str, ...]:
    """Kinds of features that the engine supports, including those of plugins."""
    return (*TABLES, *LANGUAGE_MODELS, *SEARCH_FEATURES, REORDERING, *PENALTIES)


def is_stateful(kind: str) -> bool:
    """Whether a kind of feature depends on what was translated before."""
    return kind in STATEFUL or issubclass(SEARCH_FEATURES.get(kind, SearchFeature), StatefulFeature)


def is_sparse(kind: str) -> bool:
    """Whether a kind of feature has sparse values, with weights of their own."""
    return issubclass(SEARCH_FEATURES.get(kind, SearchFeature), SparseFeature)


def needs_torch(ini: Ini) -> bool:
    """Whether a feature of the search computes with torch."""
    kinds = {line.kind for line in ini.features}
    return any(SEARCH_FEATURES[kind].needs_torch for kind in kinds & SEARCH_FEATURES.keys())


def arguments(kind: str) -> Set[str]:
    """Arguments allowed in the line of a kind of feature."""
    if kind in SEARCH_FEATURES:
        return COMMON | SEARCH_FEATURES[kind].arguments
    return ARGUMENTS.get(kind, COMMON)


def features_by_kind(ini: Ini) -> dict[str, list[FeatureLine]]:
    """Group the lines of an ini's features by kind. ConfigError for a feature or argument that the engine
    does not support, for a second feature of the same name, for a second table, reordering model or penalty
    of the same kind, and for a missing phrase table or unknown word penalty."""
    by_kind: dict[str, list[FeatureLine]] = {}
    names: set[str] = set()
    for line in ini.features:
        if line.kind not in feature_kinds():
            advice = ADVICE.get(line.kind, "remove the line, or decode with Moses")
            raise line.error(
                f"the embedded engine has no feature {line.kind}; it has {', '.join(feature_kinds())}; "
                f"{advice}"
            )
        registered: object = SEARCH_FEATURES.get(line.kind, SearchFeature)
        if not (isinstance(registered, type) and issubclass(registered, SearchFeature)):
            raise line.error(
                f"the class of {line.kind} derives neither from SearchFeature nor from StatefulFeature; give "
                "it one of them as its base class"
            )
        if line.name in names:
            raise line.error(f"a second feature of name {shown(line.name)}; give another name=")
        names.add(line.name)
        by_kind.setdefault(line.kind, []).append(line)
        check_arguments(line)
    for kind in (*TABLES, REORDERING, *PENALTIES):
        if len(by_kind.get(kind, [])) > 1:
            raise by_kind[kind][1].error(f"a second {kind}; the embedded engine takes one")
    if not by_kind.get("PhraseDictionaryMemory"):
        raise ConfigError(
            f"{ini.path}: no feature PhraseDictionaryMemory, so there is nothing to translate with"
        )
    if not by_kind.get(UNKNOWN):
        raise ConfigError(
            f"{ini.path}: no line {UNKNOWN} in [feature]; Moses crashes at the first unknown word. Add the "
            "line"
        )
    return by_kind


def check_arguments(line: FeatureLine) -> None:
    """ConfigError for an unknown or missing argument of a feature, and for a value out of range."""
    allowed = arguments(line.kind)
    for key, value in line.options.items():
        if key not in allowed:
            hint = "its sparse features are not supported; " if key.startswith("sparse-") else ""
            raise line.error(
                f"{line.kind} has no argument {shown(key)} here; {hint}it has {', '.join(sorted(allowed))}"
            )
        if key in FACTORS and value != "0":
            raise line.error(f"{key}={shown(value)}: factors are not supported; use a model of one factor")
        if key in ONLY and value.lower() not in ONLY[key]:
            raise line.error(
                f"{key}={shown(value)}: not supported by the engine; remove it, or decode with Moses"
            )
        if key in ("table-limit", "cache-size"):
            line.count(key)
        if key in ("oov-feature", "tuneable", "normalized"):
            line.truth(key)
    for key in FILES:
        if key in allowed and not line.options.get(key) and not is_sparse(line.kind):
            raise line.error(f"{line.name} has no {key}=, expected the file that it reads")
    if line.kind == REORDERING:
        check_reordering(line)
    if line.kind in LANGUAGE_MODELS:
        scores = 1 + line.truth("oov-feature")
        if int(line.options.get("num-features", scores)) != scores:
            raise line.error(
                f"num-features={line.options['num-features']}, but Moses gives this language model {scores}; "
                "2 go with oov-feature=1"
            )
    elif line.kind in (*PENALTIES, *SEARCH_FEATURES):
        scores = SEARCH_FEATURES[line.kind].count_scores(line) if line.kind in SEARCH_FEATURES else 1
        if line.scores != scores:
            has = "one score" if scores == 1 else f"{scores or 'no'} scores"
            raise line.error(
                f"num-features={line.scores}: {line.kind} has {has}; write num-features={scores}"
            )


def check_reordering(line: FeatureLine) -> None:
    """ConfigError for a type, a number of scores or default scores that the engine does not support."""
    kind = reordering_type(line)
    if line.scores != kind.scores:
        raise line.error(
            f"num-features={line.scores}: a model of type={line.options['type']} has {kind.scores} scores"
        )
    default_reordering(line)


def reordering_type(line: FeatureLine) -> ReorderingType:
    """The type of a reordering model. ConfigError for one that the engine does not support."""
    try:
        return ReorderingType.parse(line.options.get("type", ""))
    except ValueError as error:
        raise line.error(f"type={error}") from error


def default_reordering(line: FeatureLine) -> list[float]:
    """Natural logarithms of the probabilities of phrase pairs that the reordering table lacks: those of
    default-scores=, or zeros. ConfigError for values that are not probabilities above 0, one for each of a
    row, and beside -collapseff, for which Moses has no default scores."""
    kind = reordering_type(line)
    if "default-scores" not in line.options:
        return [0.0] * kind.probabilities
    if kind.collapsed:
        raise line.error("default-scores does not go with -collapseff; remove it, or use -allff")
    words = line.options["default-scores"].split(",")
    try:
        values = [real(word) for word in words]
    except ValueError as error:
        raise line.error(f"default-scores: {error}") from error
    if len(values) != kind.probabilities or min(values) <= 0:
        raise line.error(
            f"default-scores={shown(line.options['default-scores'])}: expected {kind.probabilities} "
            "probabilities above 0, with commas"
        )
    return [math.log(value) for value in values]


def tuneable_scores(line: FeatureLine) -> list[int]:
    """Indices of the feature's scores that n-best lists print for tuners: all of them, those selected by
    tuneable-components=, or none with tuneable=false. ConfigError for tuneable-components= that does not fit
    the feature."""
    tuneable = line.truth("tuneable", line.kind != UNKNOWN)
    if "tuneable-components" not in line.options:
        return list(range(line.scores)) if tuneable else []
    words = line.options["tuneable-components"].split(",")
    if line.kind in LANGUAGE_MODELS or not tuneable:
        raise line.error(
            f"tuneable-components of {line.kind}: Moses does not do what this says; use tuneable=false, or "
            "remove it"
        )
    try:
        chosen = [parse_truth(word) for word in words]
    except ValueError as error:
        raise line.error(f"tuneable-components: {error}") from error
    if len(chosen) != line.scores:
        raise line.error(
            f"tuneable-components: {len(chosen)} values, but {line.name} has {line.scores} scores"
        )
    return [score for score in range(line.scores) if chosen[score]]


def printed_scores(ini: Ini) -> dict[str, list[int]]:
    """Indices of the scores of each feature that n-best lists print, in their order: stateful features first,
    otherwise as in the ini. Features without such scores are left out."""
    ordered = sorted(ini.features, key=lambda line: not is_stateful(line.kind))  # stable
    components = {line.name: tuneable_scores(line) for line in ordered}
    return {name: scores for name, scores in components.items() if scores}


def weights(ini: Ini) -> Weights:
    """Weights of all scores of all features; 1 for the unknown word penalty if the ini has none, and for the
    weighted sum of a sparse feature. ConfigError for weights without a feature, and for a feature without
    weights other than these."""
    names = {line.name for line in ini.features}
    for name, row in ini.weight_rows.items():
        if name not in names:
            raise ConfigError(
                f"{ini.path}:{row + 1}: weights of {shown(name)}, but there is no such feature; remove the "
                "line, or add the feature"
            )
    return {
        line.name: [1.0]
        if is_sparse(line.kind) or (line.kind == UNKNOWN and line.name not in ini.weights)
        else moses_ini.feature_weights(ini, line)
        for line in ini.features
    }
