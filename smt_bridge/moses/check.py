"""Checks a system for mistakes in its moses.ini, tables or weights with which Moses stops, crashes, or
silently computes wrong scores."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.io import mapped
from nmt.io.manifest import digest64
from nmt.io.numbers import counted, shown
from smt_bridge.decoder import config
from smt_bridge.features.registry import NAME, NOT_A_NAME
from smt_bridge.moses.ini import UNTUNED, WEIGHT_FILE, FeatureLine, Ini, find_table, tuned_names
from smt_bridge.moses.operations import count_scores
from smt_bridge.moses.reordering import ReorderingType
from smt_bridge.tables.filter import is_other_pair

# Options of LexicalReordering, besides those that begin with sparse-
REORDERING_KEYS = set(
    "name num-features type input-factor output-factor path default-scores property-index".split()
)
# Prefix of the kinds that combine other tables: this one and PhraseDictionaryMultiModelCounts
MULTI_MODEL = "PhraseDictionaryMultiModel"
# File name endings that Moses adds to compiled tables
ENDINGS = {"PhraseDictionaryCompact": ".minphr", "LexicalReordering": ".minlexr"}
# Kinds of features that smt-decode has and Moses does not
ENGINE_ONLY = ("ClassLM", "CSLM", "NNJM", "NeuralTranslation")
CLASS_FILES = ("source-classes", "target-classes")  # arguments of our OpSequenceModel
WORD_FILES = ("source-path", "target-path", *CLASS_FILES)  # files of words, beside path=
Tables = dict[str, list[tuple[FeatureLine, Path]]]  # kind -> features and their text tables


def problems(ini: Ini, roots: Sequence[str], thorough: bool = True) -> Iterator[str]:
    """Yield a line for each problem. `roots`: folders in which relative paths are looked up, in order; for
    Moses itself, the folder in which it will be started. `thorough`: compare all rows of phrase and
    reordering tables. DataError for a table whose first line is malformed."""
    yield from weight_problems(ini)
    yield from section_problems(ini)
    yield from feature_problems(ini)
    tables: Tables = {}
    for feature in ini.features:
        for key in ("path", *WORD_FILES):
            if (path := feature.options.get(key)) is not None:
                yield from path_problems(ini, feature, key, roots, tables)
    if (path := ini.weight_file) and not any(find_table(path, root) for root in roots):
        yield f"{ini.path}:{ini.sections[WEIGHT_FILE].row + 1}: {path} does not exist"
    for feature, table in [entry for entries in tables.values() for entry in entries]:
        scores = columns(table)
        if (kind := reordering_type(feature)) is not None and scores != kind.probabilities:
            yield (
                f"{feature.location}: type={feature.options['type']} has {kind.probabilities} probabilities "
                f"for a pair, but {table} has {scores}"
            )
        elif kind is None and scores != feature.scores:
            yield (
                f"{feature.location}: {feature.name} has num-features={feature.scores}, but "
                f"{table} has {scores} scores per line; Moses stops at it; write num-features={scores} and "
                "as many weights"
            )
    if thorough:
        yield from row_problems(tables, components(ini))


def path_problems(
    ini: Ini, feature: FeatureLine, key: str, roots: Sequence[str], tables: Tables
) -> Iterator[str]:
    """Yield a line if the file that an argument, `key`, of a feature names does not exist or is of the wrong
    kind; adds text tables to `tables`. `roots`: see `problems`."""
    path = feature.options[key]
    candidates = (
        find_table(name, root) for root in roots for name in (path, path + ENDINGS.get(feature.kind, ""))
    )
    file = next(filter(None, candidates), None)
    if file is None:
        beside = Path(ini.path).parent
        hint = f"; it exists relative to {beside}: start Moses in that folder, or write an absolute path"
        exists = find_table(path, str(beside))
        yield f"{feature.location}: {key}={path} of {feature.name} does not exist{hint if exists else ''}"
    elif (
        file.is_file()
        and file.suffix not in ENDINGS.values()
        and feature.kind in ("PhraseDictionaryMemory", "LexicalReordering")
    ):
        tables.setdefault(feature.kind, []).append((feature, file))
    elif mapped.is_mapped(file):
        yield (
            f"{feature.location}: {file} is a folder of smt-compile, which Moses cannot read; give Moses the "
            "text table"
        )
    elif feature.kind == "ProbingPT" and not file.is_dir():
        yield (
            f"{feature.location}: ProbingPT reads the folder that Moses' CreateProbingPT2 makes, but {file} "
            "is a file; give a text table as PhraseDictionaryMemory"
        )


def section_problems(ini: Ini) -> Iterator[str]:
    """Yield a line for each section that is unknown to Moses or ignored by it."""
    listed = (
        config.MODEL_SECTIONS,
        config.HONORED_SECTIONS,
        config.RESTRICTED_SECTIONS,
        config.HARMLESS_SECTIONS,
        config.REFUSED_SECTIONS,
    )
    for name, section in ini.sections.items():
        location = f"{ini.path}:{section.row + 1}"
        whole = config.SHORT_NAMES.get(name, name)
        if not any(whole in names for names in listed):
            yield (
                f"{location}: section {shown(name)} is unknown, and Moses stops at it ('Unknown parameter'); "
                "remove it, or correct its name"
            )
        elif whole != name and whole not in config.HARMLESS_SECTIONS:
            yield (
                f"{location}: Moses knows [{name}] on its command line only, and ignores it here; write "
                f"[{whole}]"
            )


def feature_problems(ini: Ini) -> Iterator[str]:
    """Yield a line for each feature with which Moses stops or crashes, whatever the tables contain."""
    names = [feature.name for feature in ini.features]
    if not any(feature.kind == UNTUNED for feature in ini.features):
        yield (
            f"{ini.path}: no feature {UNTUNED}: Moses crashes at the first word that is not in the "
            f"table; add the line {UNTUNED} below [feature]"
        )
    for feature in ini.features:
        location = feature.location
        if feature.kind in ENGINE_ONLY:
            yield (
                f"{location}: Moses has no feature {feature.kind}, and stops at it ('not registered'); "
                "decode with smt-decode, or remove the line"
            )
        if feature.kind == "LexicalReordering":
            for key in feature.options:
                if key not in REORDERING_KEYS and not key.startswith("sparse-"):
                    yield (
                        f"{location}: LexicalReordering has no {key}=, and Moses stops at it ('Unknown "
                        "argument'); remove it"
                    )
            if (kind := reordering_type(feature)) is not None and kind.scores != feature.scores:
                yield (
                    f"{location}: {feature.name} has num-features={feature.scores}, but a model of "
                    f"type={feature.options['type']} has {kind.scores} scores"
                )
        if feature.options.keys() & CLASS_FILES:
            yield (
                f"{location}: Moses' {feature.kind} has no classes, and stops at it ('Unknown argument'); "
                "decode with smt-decode, or make the classes factors"
            )
        if feature.kind == "OpSequenceModel" and feature.scores != (scores := count_scores(feature.options)):
            yield (
                f"{location}: {feature.name} has num-features={feature.scores}, but {scores} scores; Moses "
                "crashes at it. support-features=no goes with num-features=1, and nothing else does"
            )
        if feature.kind.startswith(MULTI_MODEL):
            for name in feature.options.get("components", "").split(","):
                if name not in names:
                    yield (
                        f"{location}: {feature.name} combines {name or 'nothing'}, which is not a feature; "
                        "name tables of this ini in components="
                    )


def reordering_type(feature: FeatureLine) -> ReorderingType | None:
    """The type of a reordering model; None for other features, and for a type that only Moses has."""
    try:
        return ReorderingType.parse(feature.options["type"]) if feature.kind == "LexicalReordering" else None
    except (KeyError, ValueError):
        return None


def components(ini: Ini) -> set[str]:
    """Names of the tables that a PhraseDictionaryMultiModel combines. The combined table has all their pairs,
    and the weights."""
    return {
        name
        for feature in ini.features
        if feature.kind.startswith(MULTI_MODEL)
        for name in feature.options.get("components", "").split(",")
    }


def weight_problems(ini: Ini) -> Iterator[str]:
    """Yield a line for each mismatch between features and weights, for each name that Moses would misread,
    and for weights that are all 0."""
    names = [feature.name for feature in ini.features]
    combined = components(ini)
    for feature in ini.features:
        location = feature.location
        if not NAME.fullmatch(feature.name):
            yield f"{location}: name {feature.name!r}: {NOT_A_NAME}"
        if names.count(feature.name) > 1:
            yield f"{location}: the name {feature.name} is given twice; name one of them otherwise"
        values = ini.weights.get(feature.name)
        if values is None:
            if feature.kind != UNTUNED and feature.scores:
                yield (
                    f"{location}: {feature.name} has no line in [weight]; Moses silently uses 1 for each of "
                    "its scores; add its weights"
                )
        elif len(values) != feature.scores:
            location = f"{ini.path}:{ini.weight_rows[feature.name] + 1}"
            yield (
                f"{location}: {feature.name} has {counted(len(values), 'weight')}, but "
                f"num-features={feature.scores}; Moses stops at it; give {feature.scores}"
            )
        elif not any(values) and feature.kind != UNTUNED and feature.name not in combined:
            yield (
                f"{ini.path}:{ini.weight_rows[feature.name] + 1}: all weights of {feature.name} are 0; "
                "Moses ignores the feature (remove it, or tune)"
            )
    for name, row in ini.weight_rows.items():
        if name not in names:
            yield (
                f"{ini.path}:{row + 1}: weights of {name}, but there is no such feature; remove the line, or "
                "correct the name"
            )
    if ini.weights and not any(any(ini.weights[name]) for name in tuned_names(ini.weights)):
        yield (
            f"{ini.path}: all weights are 0, so all translations score the same; tune again, or take earlier "
            "weights (a tuner writes zeros if no hypothesis has any BLEU)"
        )


def columns(path: str | Path) -> int:
    """The number of scores in the first line of a phrase or reordering table. DataError if it is not one."""
    return len(next(iter(phrase_table.read_strict(path, unsorted=True))).scores.split())


def row_problems(tables: Tables, combined: set[str]) -> Iterator[str]:
    """Yield a line for each reordering table whose rows differ from those of the phrase table, and for a
    malformed table. `combined`: see `components`. Moses would score a missing row as probability 1, better
    than any other.

    The reordering table of a MultiModel has the rows of all tables that it combines, so these are only
    checked on their own.
    """
    for table, phrases in tables.get("PhraseDictionaryMemory", []):
        others = [] if table.name in combined else tables.get("LexicalReordering", [])
        try:
            for feature, path in others:
                number = first_difference(phrases, path)
                if number:
                    hint = "filter or sort both alike (smt-filter-table)"
                    yield (
                        f"{path}:{number}: a different phrase pair than in line {number} of {phrases}, for "
                        f"{feature.name}; {hint}"
                    )
            if not others:
                for _ in phrase_table.read_strict(phrases, unsorted=True):
                    pass
        except DataError as error:
            yield str(error)


def first_difference(phrases: Path, reordering: Path) -> int:
    """The number of the first line, from 1, in which a phrase table and a reordering table have different
    phrase pairs; 0 if both have the same pairs, in any order. DataError for a line of the phrase table that
    Moses would refuse, and for a malformed one of the other."""
    first, balance = 0, 0  # Σ of the digests of one table's pairs less those of the other's
    for number, rows in enumerate(
        zip_longest(phrase_table.read_strict(phrases, unsorted=True), phrase_table.read(reordering)), 1
    ):
        if None in rows or is_other_pair(*rows):
            first = first or number
            for sign, row in zip((1, -1), rows, strict=True):
                if row is not None:
                    key = row.source + b" ||| " + row.target
                    balance += sign * int.from_bytes(digest64(key))
    return first if balance else 0
