"""Settings of the decoder and of compiled models, and the sections of a moses.ini that set them. The defaults
of SearchSettings are those of Moses."""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from nmt.config import settings
from nmt.config.settings import ALLOWED, HELP, choice, number, setting
from nmt.errors import ConfigError, DataError
from nmt.io.numbers import integer, real, shown
from nmt.text.sentences import MAX_LINE_WORDS
from smt_bridge.decoder.xml_input import brackets
from smt_bridge.moses.ini import FALSE, WEIGHT_FILE, Ini, parse_truth

WIDEST = 63  # number of words after the first untranslated one that a coverage can represent
STACK, CUBE = "stack", "cube"  # 0 and 1 in an ini


@dataclass(frozen=True)
class SearchSettings:
    """Search settings that a moses.ini can contain."""

    stack: int = number(200, least=0, help="hypotheses kept for each number of translated words; 0: all")
    table_limit: int = number(20, least=0, help="best options of a source phrase; 0: all")
    distortion_limit: int = number(-1, least=-1, help="longest jump in words; -1: any")
    beam_threshold: float = number(
        1e-5, least=0, most=1, help="drop hypotheses with less than this share of the best one's probability"
    )
    max_phrase_length: int = number(20, least=1, help="source words of an option")
    max_options: int = number(
        5000, least=0, help="options of a source phrase, whatever the table limit; 0: any number"
    )
    nbest_factor: int = number(
        20, least=0, help="derivations examined, at most, for each distinct one listed; 0: as in Moses, 1000"
    )
    search: str = choice(STACK, CUBE, help="stack search, or cube pruning (Chiang 2007)")
    pop_limit: int = number(1000, least=1, help="hypotheses that cube pruning makes for a stack")
    diversity: int = number(
        0, least=0, help="hypotheses that cube pruning makes at least for each set of translated words"
    )
    early_distortion_cost: bool = setting(
        False, help="charge for a jump when it leaves a gap (Moore and Quirk 2007)"
    )
    drop_unknown: bool = setting(False, help="leave unknown words out, except those with digits")
    mark_unknown: bool = setting(False, help="put UNK, or what the ini has for it, before unknown words")
    unknown_prefix: str = setting("UNK", help="written before unknown words that are marked")
    unknown_suffix: str = setting("", help="written after them")
    xml_input: str = choice(
        "pass-through",
        "exclusive",
        "inclusive",
        "constraint",
        "ignore",
        help="what tags in the input do, as in Moses",
    )
    xml_brackets: tuple[str, str] = setting(("<", ">"), help="what encloses tags")


SEARCH_FIELDS: dict[str, "Field[object]"] = {item.name: item for item in fields(SearchSettings)}  # by name


def override(name: str) -> Any:
    """Make the field of DecoderConfig that overrides the field `name` of SearchSettings. None, its default,
    keeps the ini's value or else Moses' default."""
    item = SEARCH_FIELDS[name]
    words = " ".join(item.default) if isinstance(item.default, tuple) else str(item.default).lower()
    text = f"{item.metadata[HELP]}; default: the ini's, or {words}"
    return field(default=None, metadata={**item.metadata, HELP: text})


@dataclass(frozen=True)
class DecoderConfig:
    """The user's options for a decoder. Those that are None are taken from the moses.ini, or else from the
    defaults of SearchSettings."""

    stack: int | None = override("stack")
    table_limit: int | None = override("table_limit")
    distortion_limit: int | None = override("distortion_limit")
    beam_threshold: float | None = override("beam_threshold")
    max_phrase_length: int | None = override("max_phrase_length")
    nbest_factor: int | None = override("nbest_factor")
    search: str | None = override("search")
    pop_limit: int | None = override("pop_limit")
    diversity: int | None = override("diversity")
    early_distortion_cost: bool | None = override("early_distortion_cost")
    drop_unknown: bool | None = override("drop_unknown")
    mark_unknown: bool | None = override("mark_unknown")
    xml_input: str | None = override("xml_input")
    xml_brackets: tuple[str, str] | None = override("xml_brackets")
    max_line_words: int = number(
        MAX_LINE_WORDS, least=1, help="longer lines are translated in parts, or refused for an n-best list"
    )
    nbest: int = number(0, least=0, help="derivations listed; 0: only the best")
    distinct: bool = setting(False, help="list different texts only")
    explain: bool = setting(False, help="compute what each phrase of the best derivation adds to the total")
    neural_beam: int = number(
        500, least=0, help="candidates of a stack that neural features of the ini score; 0: all"
    )
    buffer: int = number(8192, least=1, help="n-grams that a neural LM scores at a time")

    def check(self) -> None:
        """ConfigError, which names the option, for the first value that is out of range."""
        for problem in settings.problems(self):
            name, _, wrong = problem.partition(":")
            raise ConfigError(f"--{name.replace('_', '-')}:{wrong}")


def search_settings(config: DecoderConfig, ini: Mapping[str, object]) -> SearchSettings:
    """Merge the search settings: the user's options come first, then the ini's, then Moses' defaults. `ini`:
    field of SearchSettings -> value."""
    options = {
        name: getattr(config, name) for name in SEARCH_FIELDS if getattr(config, name, None) is not None
    }
    return replace(SearchSettings(), **{**ini, **options})


# ---- sections of a moses.ini -------------------------------------------------------------------------------
# Which sections the engine honors, which change no result, and which it refuses.
#
# Every parameter of Moses (see its Parameter.cpp) is in exactly one of these tables; a section in none of
# them is unknown to Moses too. Nothing is ignored silently: a section that is neither honored nor harmless is
# refused, and the error names its line.

RENAMED = {  # fields of SearchSettings whose sections have other names
    "search": "search-algorithm",
    "pop_limit": "cube-pruning-pop-limit",
    "diversity": "cube-pruning-diversity",
    "max_options": "max-trans-opt-per-coverage",
    "nbest_factor": "n-best-factor",
    "unknown_prefix": "unknown-word-prefix",
    "unknown_suffix": "unknown-word-suffix",
}
# Section -> field of SearchSettings. There is no section for the table limit, which is an option of the
# table's line in [feature]; [ttable-limit] belongs to the old format.
HONORED_SECTIONS = {
    RENAMED.get(name, name.replace("_", "-")): name for name in SEARCH_FIELDS if name != "table_limit"
}
MODEL_SECTIONS = {"feature", "weight", WEIGHT_FILE}  # read elsewhere

# Sections for which the engine supports only some of Moses' values: these values, and the reason why any
# other is refused.
RESTRICTED_SECTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "input-factors": (("0",), "the engine reads one factor, 0"),
    "output-factors": (("0",), "the engine writes one factor, 0"),
    "mapping": (("0 T 0", "T 0"), "the engine has one translation step, 0 T 0"),
    "inputtype": (("0",), "the engine reads plain text, 0"),
    "factor-delimiter": (("|",), "the engine reads one factor"),
    "decoding-graph-backoff": (("0",), "the engine has one translation step"),
    "cube-pruning-lazy-scoring": (FALSE, "the engine scores hypotheses of cube pruning at once"),
    "stack-diversity": (("0",), "the engine has no stack diversity"),
    "early-discarding-threshold": (("0",), "the engine has no early discarding"),
    "translation-option-threshold": (("0",), "the engine has no threshold of options"),
    "start-translation-id": (("0",), "the engine counts sentences from 0"),
    "sort-word-alignment": (("0",), "the engine writes alignment points by source word"),
    **dict.fromkeys(
        """
        monotone-at-punctuation phrase-drop-allowed disable-discarding always-create-direct-transopt
        """.split(),
        (FALSE, "the engine has no such search"),
    ),
    **dict.fromkeys(
        "minimum-bayes-risk lminimum-bayes-risk consensus-decoding mira continue-partial-translation".split(),
        (FALSE, "the engine decodes for the best derivation"),
    ),
    **dict.fromkeys(
        """
        print-id print-passthrough print-passthrough-in-n-best print-all-derivations print-alignment-info
        report-segmentation report-segmentation-enriched output-hypo-score
        """.split(),
        (FALSE, "the engine writes plain translations"),
    ),
    "lmodel-oov-feature": (FALSE, "write oov-feature=1 in the line of the language model"),
}

# None of these changes a translation, a total or a feature value. Options for n-best lists and logs are set
# on our command line instead; the rest only affects searches, inputs and tables that the engine refuses
# anyway.
HARMLESS_SECTIONS = set(
    """
    config input-file verbose show-weights threads cpu-affinity-offset cpu-affinity-increment description
    no-cache use-persistent-cache persistent-cache-size cache-path clean-lm-cache minphr-memory
    minlexr-memory text-type references server server-port server-log server-maxconn server-maxconn-backlog
    server-keepalive-maxconn server-keepalive-timeout server-timeout serial session-timeout
    session-cache-size n-best-list distinct-nbest labeled-n-best-list include-segmentation-in-n-best
    print-alignment-info-in-n-best report-all-factors report-all-factors-in-n-best recover-input-path
    cube-pruning-deterministic-search mbr-size mbr-scale lmbr-thetas lmbr-pruning-factor lmbr-p lmbr-r
    lmbr-map-weight lattice-hypo-set max-chart-span non-terminals rule-limit source-label-overlap
    unknown-lhs parsing-algorithm s2t-parsing-algorithm default-non-term-for-empty-range-only
    unpruned-search-graph include-lhs-in-search-graph
    """.split()
)

REFUSED_SECTIONS = {
    name: reason
    for reason, names in {
        "write sparse features as lines of [feature], such as WordTranslationFeature": """
            report-sparse-features phrase-length-feature target-word-insertion-feature
            source-word-deletion-feature word-translation-feature
        """,
        "the engine has no such sparse feature": """
            phrase-pair-feature phrase-boundary-source-feature phrase-boundary-target-feature glm-feature
            dlm-model global-lexical-file
        """,
        "write features and weights into [feature] and [weight]": """
            feature-overwrite feature-add feature-name-overwrite weight-overwrite weight-add
            alternate-weight-setting distortion lmodel-dub slmodel-file slmodel-factor slmodel-beam
            translation-systems
        """,
        "the engine does not write this file": """
            output-unknowns alignment-output-file translation-details tree-translation-details
            translation-all-details output-word-graph output-search-graph output-search-graph-extended
            output-search-graph-slf output-search-graph-pb output-search-graph-hypergraph lattice-samples
            n-best-trees spe-src spe-trg spe-aln
        """,
        "the engine has no forced decoding": "constraint",
        "factors are not supported": "placeholder-factor",
        "the engine has one translation step": "max-partial-trans-opt",
        "the engine reads plain text": "link-param-count input-scores",
        "the engine translates each sentence to its end": "time-out segment-time-out",
        "the engine translates each sentence alone": "context-string context-weights context-window",
    }.items()
    for name in names.split()
}

# Short names that Moses accepts only on its command line and ignores in an ini. Its tuning scripts write some
# of them, such as [v], into one.
SHORT_NAMES = dict(
    pair.split("=")
    for pair in """
    b=beam-threshold s=stack dl=distortion-limit du=drop-unknown mu=mark-unknown edc=early-distortion-cost
    xi=xml-input xb=xml-brackets sd=stack-diversity edt=early-discarding-threshold
    tot=translation-option-threshold mp=monotone-at-punctuation da=phrase-drop-allowed dd=disable-discarding
    dpb=decoding-graph-backoff fd=factor-delimiter mbr=minimum-bayes-risk lmbr=lminimum-bayes-risk
    con=consensus-decoding cpt=continue-partial-translation t=report-segmentation
    tt=report-segmentation-enriched T=translation-details Tall=translation-all-details
    Ttree=tree-translation-details owg=output-word-graph osg=output-search-graph
    osgx=output-search-graph-extended slf=output-search-graph-slf pb=output-search-graph-pb wf=weight-file
    aws=alternate-weight-setting gl=global-lexical-file f=config i=input-file v=verbose th=threads
    r=recover-input-path usg=unpruned-search-graph lhssg=include-lhs-in-search-graph
    cbp=cube-pruning-pop-limit cbd=cube-pruning-diversity cbls=cube-pruning-lazy-scoring
    cbds=cube-pruning-deterministic-search
    """.split()
)


def read_search_settings(ini: Ini) -> dict[str, object]:
    """Read the search settings of an ini: field of SearchSettings -> value. DataError, with the line, for a
    section or value that is unknown, out of range, or not supported by the engine."""
    values: dict[str, object] = {}
    for name, section in ini.sections.items():
        location = f"{ini.path}:{section.row + 1}"
        if name in HONORED_SECTIONS:
            item = SEARCH_FIELDS[HONORED_SECTIONS[name]]
            values[item.name] = section_value(ini.path, name, section.row, section.values, item)
        elif name in RESTRICTED_SECTIONS:
            check_restricted(ini.path, name, section.values)
        elif name in REFUSED_SECTIONS:
            raise DataError(
                f"{location}: [{name}]: {REFUSED_SECTIONS[name]}; remove the section, or decode with Moses"
            )
        elif SHORT_NAMES.get(name, name) in HARMLESS_SECTIONS or name in MODEL_SECTIONS:
            continue
        elif name in SHORT_NAMES:
            raise DataError(
                f"{location}: Moses ignores [{name}], which it knows on its command line only; write "
                f"[{SHORT_NAMES[name]}], or remove it"
            )
        else:
            raise DataError(
                f"{location}: section {shown(name)} is unknown, to Moses too; remove it, or correct its name"
            )
    return values


def section_value(
    path: str, name: str, row: int, values: list[tuple[int, str]], item: "Field[object]"
) -> object:
    """Parse the single value of section `name` of the ini at `path`, and check its range. `row`: index of the
    section's line; `values`: index and text of each line below it; `item`: the setting. DataError for an
    empty section, for a second value, which Moses would ignore, and for a value out of range."""
    if not values:
        raise DataError(
            f"{path}:{row + 1}: [{name}] is empty, and Moses ignores it; write a value below, or remove it"
        )
    if len(values) > 1:
        raise DataError(
            f"{path}:{values[1][0] + 1}: [{name}] has a second value, which Moses does not use; leave one"
        )
    ((value_row, text),) = values
    try:
        value = PARSERS[name](text) if name in PARSERS else parse_value(text, item.default)
        wrong = settings.problem(item, value)
    except ValueError as error:
        raise DataError(f"{path}:{value_row + 1}: [{name}]: {error}") from error
    if wrong:
        raise DataError(f"{path}:{value_row + 1}: [{name}]: {wrong}")
    return value


def parse_algorithm(text: str) -> str:
    """Parse a search algorithm. ValueError for one that the engine does not have."""
    if text not in ("0", "1"):
        raise ValueError(f"the engine has stack search, 0, and cube pruning, 1, not {shown(text)}")
    return (STACK, CUBE)[int(text)]


PARSERS: dict[str, Callable[[str], object]] = {"xml-brackets": brackets, "search-algorithm": parse_algorithm}


def parse_value(text: str, default: object) -> object:
    """Parse a value of the type of `default`: bool, int, float or str. ValueError for any other text."""
    if isinstance(default, bool):
        return parse_truth(text)
    if isinstance(default, int):
        return integer(text)
    return real(text) if isinstance(default, float) else text


def check_restricted(path: str, name: str, values: list[tuple[int, str]]) -> None:
    """DataError for a value of section `name` that the engine does not support, and for any second value.
    `values`: index and text of each of its lines."""
    allowed, reason = RESTRICTED_SECTIONS[name]
    for index, (row, text) in enumerate(values):
        if index or " ".join(text.lower().split() if allowed is FALSE else text.split()) not in allowed:
            raise DataError(
                f"{path}:{row + 1}: [{name}] {shown(text)}: {reason}; remove it, or decode with Moses"
            )


# ---- compiled models ---------------------------------------------------------------------------------------


@dataclass
class CompileConfig:
    """How compiled tables and language models store their scores."""

    quantize: int = field(
        default=0,
        metadata={
            ALLOWED: (0, 8, 16),
            HELP: "8 or 16: store each score of the tables as the nearest of 256 or 65,536 values of its "
            "column; 0: exact scores of 32 bits",
        },
    )
    quantize_lm: int = number(
        0,
        least=0,
        most=16,  # as in nmt/ngram/trie_build.py, which loads numpy
        help="bits of each log p and back-off of the language models, such as 12; 0: exact",
    )
