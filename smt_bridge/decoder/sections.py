"""The sections of a moses.ini: those the engine honors, those that change no result, and those it refuses.

Every parameter of Moses (its Parameter.cpp) is in exactly one of these tables; a section in none of them is
unknown to Moses too. Nothing is ignored silently: what is neither honored nor harmless is refused with its
line."""

from dataclasses import Field, fields

from nmt.config import settings
from nmt.errors import DataError
from nmt.io.numbers import integer, real, shown
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.xml_input import brackets
from smt_bridge.moses.ini import FALSE, TRUE, Ini

HONORED = {  # section: field of SearchSettings
    "stack": "stack", "beam-threshold": "beam_threshold", "distortion-limit": "distortion_limit",
    "max-phrase-length": "max_phrase_length",
    "max-trans-opt-per-coverage": "max_options", "n-best-factor": "nbest_factor",
    "early-distortion-cost": "early_distortion_cost",
    "drop-unknown": "drop_unknown", "mark-unknown": "mark_unknown", "unknown-word-prefix": "unknown_prefix",
    "unknown-word-suffix": "unknown_suffix",
    "xml-input": "xml_input", "xml-brackets": "xml_brackets",
}  # fmt: skip

# Read elsewhere.
MODEL = {"feature", "weight"}

# Where the engine's only way is one of Moses' ways: the values that ask for it. Anything else is refused for
# the reason given.
ONLY: dict[str, tuple[tuple[str, ...], str]] = {
    "input-factors": (("0",), "the engine reads one factor, 0"),
    "output-factors": (("0",), "the engine writes one factor, 0"),
    "mapping": (("0 T 0", "T 0"), "the engine has one translation step, 0 T 0"),
    "inputtype": (("0",), "the engine reads plain text, 0"),
    "factor-delimiter": (("|",), "the engine reads one factor"),
    "decoding-graph-backoff": (("0",), "the engine has one translation step"),
    "search-algorithm": (("0",), "the engine has stack search, 0"),
    "stack-diversity": (("0",), "the engine has no stack diversity"),
    "early-discarding-threshold": (("0",), "the engine has no early discarding"),
    "translation-option-threshold": (("0",), "the engine has no threshold of options"),
    "start-translation-id": (("0",), "the engine counts sentences from 0"),
    "sort-word-alignment": (("0",), "the engine writes alignment points by source word"),
    **dict.fromkeys(("monotone-at-punctuation", "phrase-drop-allowed", "disable-discarding",
    "always-create-direct-transopt"),
                    (FALSE, "the engine has no such search")),
    **dict.fromkeys(("minimum-bayes-risk", "lminimum-bayes-risk", "consensus-decoding", "mira",
    "continue-partial-translation"),
                    (FALSE, "the engine decodes for the best derivation")),
    **dict.fromkeys(("print-id", "print-passthrough", "print-passthrough-in-n-best", "print-all-derivations",
    "print-alignment-info",
                     "report-segmentation", "report-segmentation-enriched", "output-hypo-score"),
                    (FALSE, "the engine writes plain translations")),
    "lmodel-oov-feature": (FALSE, "write oov-feature=1 in the line of the language model"),
}  # fmt: skip

# Nothing of this changes a translation, a total or a feature value. Options of n-best lists and logs are
# those of our command line; the rest belongs to searches, inputs and tables that the engine refuses where
# they are asked for.
HARMLESS = {
    "config", "input-file", "verbose", "show-weights", "threads", "cpu-affinity-offset",
    "cpu-affinity-increment", "description", "no-cache",
    "use-persistent-cache", "persistent-cache-size", "cache-path", "clean-lm-cache", "minphr-memory",
    "minlexr-memory", "text-type", "references",
    "server", "server-port", "server-log", "server-maxconn", "server-maxconn-backlog",
    "server-keepalive-maxconn", "server-keepalive-timeout",
    "server-timeout", "serial", "session-timeout", "session-cache-size",
    "n-best-list", "distinct-nbest", "labeled-n-best-list", "include-segmentation-in-n-best",
    "print-alignment-info-in-n-best",
    "report-all-factors", "report-all-factors-in-n-best", "recover-input-path",
    "cube-pruning-pop-limit", "cube-pruning-diversity", "cube-pruning-lazy-scoring",
    "cube-pruning-deterministic-search",
    "mbr-size", "mbr-scale", "lmbr-thetas", "lmbr-pruning-factor", "lmbr-p", "lmbr-r", "lmbr-map-weight",
    "lattice-hypo-set",
    "max-chart-span", "non-terminals", "rule-limit", "source-label-overlap", "unknown-lhs",
    "parsing-algorithm", "s2t-parsing-algorithm",
    "default-non-term-for-empty-range-only", "unpruned-search-graph", "include-lhs-in-search-graph",
}  # fmt: skip

SPARSE = "sparse features are not supported"
FILES = "the engine does not write this file"
FEATURES = "write features and weights into [feature] and [weight]"
REFUSED = {
    "weight-file": SPARSE, "report-sparse-features": SPARSE, "phrase-pair-feature": SPARSE,
    "phrase-boundary-source-feature": SPARSE,
    "phrase-boundary-target-feature": SPARSE, "phrase-length-feature": SPARSE,
    "target-word-insertion-feature": SPARSE,
    "source-word-deletion-feature": SPARSE, "word-translation-feature": SPARSE, "glm-feature": SPARSE,
    "dlm-model": SPARSE, "global-lexical-file": SPARSE,
    "feature-overwrite": FEATURES, "feature-add": FEATURES, "feature-name-overwrite": FEATURES,
    "weight-overwrite": FEATURES, "weight-add": FEATURES,
    "alternate-weight-setting": FEATURES, "distortion": FEATURES, "lmodel-dub": FEATURES,
    "slmodel-file": FEATURES, "slmodel-factor": FEATURES,
    "slmodel-beam": FEATURES, "translation-systems": FEATURES,
    "output-unknowns": FILES, "alignment-output-file": FILES, "translation-details": FILES,
    "tree-translation-details": FILES,
    "translation-all-details": FILES, "output-word-graph": FILES, "output-search-graph": FILES,
    "output-search-graph-extended": FILES,
    "output-search-graph-slf": FILES, "output-search-graph-pb": FILES,
    "output-search-graph-hypergraph": FILES, "lattice-samples": FILES,
    "n-best-trees": FILES, "spe-src": FILES, "spe-trg": FILES, "spe-aln": FILES,
    "constraint": "the engine has no forced decoding", "placeholder-factor": "factors are not supported",
    "max-partial-trans-opt": "the engine has one translation step",
    "link-param-count": "the engine reads plain text",
    "input-scores": "the engine reads plain text",
    "time-out": "the engine translates each sentence to its end",
    "segment-time-out": "the engine translates each sentence to its end",
    "context-string": "the engine translates each sentence alone",
    "context-weights": "the engine translates each sentence alone",
    "context-window": "the engine translates each sentence alone",
}  # fmt: skip

# Moses knows these names too, but on its command line only: in an ini it passes over them. Its tuning scripts
# write some there, such as [v].
SHORT = {
    "b": "beam-threshold", "s": "stack", "dl": "distortion-limit", "du": "drop-unknown", "mu": "mark-unknown",
    "edc": "early-distortion-cost",
    "xi": "xml-input", "xb": "xml-brackets", "sd": "stack-diversity", "edt": "early-discarding-threshold",
    "tot": "translation-option-threshold",
    "mp": "monotone-at-punctuation", "da": "phrase-drop-allowed", "dd": "disable-discarding",
    "dpb": "decoding-graph-backoff", "fd": "factor-delimiter",
    "mbr": "minimum-bayes-risk", "lmbr": "lminimum-bayes-risk", "con": "consensus-decoding",
    "cpt": "continue-partial-translation",
    "t": "report-segmentation", "tt": "report-segmentation-enriched", "T": "translation-details",
    "Tall": "translation-all-details",
    "Ttree": "tree-translation-details", "owg": "output-word-graph", "osg": "output-search-graph",
    "osgx": "output-search-graph-extended",
    "slf": "output-search-graph-slf", "pb": "output-search-graph-pb", "wf": "weight-file",
    "aws": "alternate-weight-setting", "gl": "global-lexical-file",
    "f": "config", "i": "input-file", "v": "verbose", "th": "threads", "r": "recover-input-path",
    "usg": "unpruned-search-graph",
    "lhssg": "include-lhs-in-search-graph", "cbp": "cube-pruning-pop-limit", "cbd": "cube-pruning-diversity",
    "cbls": "cube-pruning-lazy-scoring",
    "cbds": "cube-pruning-deterministic-search",
}  # fmt: skip


def read_search_settings(ini: Ini) -> dict[str, object]:
    """Search settings of an ini, as fields of SearchSettings. DataError, with the line, for anything that the
    engine does not support."""
    values: dict[str, object] = {}
    for name, section in ini.sections.items():
        where = f"{ini.path}:{section.row + 1}"
        if name in HONORED:
            item = next(item for item in fields(SearchSettings) if item.name == HONORED[name])
            values[item.name] = value_of(ini.path, name, section.row, section.values, item)
        elif name in ONLY:
            check_only(ini.path, name, section.values)
        elif name in REFUSED:
            raise DataError(f"{where}: [{name}]: {REFUSED[name]}; remove the section, or decode with Moses")
        elif SHORT.get(name, name) in HARMLESS or name in MODEL:
            continue
        elif name in SHORT:
            raise DataError(
                f"{where}: Moses passes over [{name}], which it knows on its command line only; write "
                f"[{SHORT[name]}], or remove it"
            )
        else:
            raise DataError(
                f"{where}: section {shown(name)} is unknown, to Moses too; remove it, or mend its name"
            )
    return values


def value_of(path: str, name: str, row: int, values: list[tuple[int, str]], item: "Field[object]") -> object:
    """The single value of a section, within the range of its field. Moses ignores empty sections and further
    lines; both are refused here."""
    if not values:
        raise DataError(
            f"{path}:{row + 1}: [{name}] is empty, and Moses passes over it; "
            "write a value below, or remove it"
        )
    if len(values) > 1:
        raise DataError(
            f"{path}:{values[1][0] + 1}: [{name}] has a second value, which Moses does not use; leave one"
        )
    row, text = values[0]
    try:
        value = brackets(text) if name == "xml-brackets" else parse_value(text, item.default)
        wrong = settings.problem(item, value)
    except ValueError as error:
        raise DataError(f"{path}:{row + 1}: [{name}]: {error}") from error
    if wrong:
        raise DataError(f"{path}:{row + 1}: [{name}]: {wrong}")
    return value


def parse_value(text: str, default: object) -> object:
    """Parse a value of the same type as `default`. ValueError for any other text."""
    if isinstance(default, bool):
        return truth(text)
    if isinstance(default, int):
        return integer(text)
    return real(text) if isinstance(default, float) else text


def truth(text: str) -> bool:
    """Parse a boolean like Moses. ValueError for any other text."""
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise ValueError(f"{shown(text)} is neither true nor false")


def check_only(path: str, name: str, values: list[tuple[int, str]]) -> None:
    """DataError for a value other than the one that the engine supports."""
    allowed, reason = ONLY[name]
    for number, (row, text) in enumerate(values):
        if number or " ".join(text.lower().split() if allowed is FALSE else text.split()) not in allowed:
            raise DataError(
                f"{path}:{row + 1}: [{name}] {shown(text)}: {reason}; remove it, or decode with Moses"
            )
