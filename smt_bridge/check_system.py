"""What Moses would silently get wrong about a system, found before anyone starts a decoder: moses.ini, its tables, its weights."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from nmt import phrase_table
from nmt.errors import DataError
from smt_bridge.features.spec import NAME, NOT_A_NAME
from smt_bridge.filter_table import differ
from smt_bridge.moses_ini import FeatureLine, Ini, find_table
from smt_bridge.weights import UNTUNED, tuned


def problems(ini: Ini, root: str, thorough: bool = True) -> Iterator[str]:
    """One line for each thing that is wrong. `root` is the folder in which Moses will be started: paths are relative to it.

    `thorough` reads the phrase and the reordering table whole, side by side.
    """
    yield from weight_problems(ini)
    tables: dict[str, list[tuple[FeatureLine, Path]]] = {}
    for feature in ini.features:
        path = feature.options.get("path")
        if path is None:
            continue
        where = f"{ini.path}:{feature.row + 1}"
        ending = {"PhraseDictionaryCompact": ".minphr", "LexicalReordering": ".minlexr"}.get(feature.kind, "")
        place = find_table(path, root) or find_table(path + ending, root)
        if place is None:
            nearby = find_table(path, str(Path(ini.path).parent))
            hint = f"; it is there relative to {Path(ini.path).parent}: start Moses in that folder, or write the whole path" if nearby else ""
            yield f"{where}: path={path} of {feature.name} is not there{hint}"
        elif place.is_file() and place.suffix not in (".minphr", ".minlexr") and feature.kind in ("PhraseDictionaryMemory", "LexicalReordering"):
            tables.setdefault(feature.kind, []).append((feature, place))
    for feature, place in [entry for entries in tables.values() for entry in entries]:
        found = columns(place)
        if found != feature.scores:
            where = f"{ini.path}:{feature.row + 1}"
            yield f"{where}: {feature.name} has num-features={feature.scores}, but {place} has {found} scores a line; Moses stops at it"
    if thorough:
        yield from row_problems(tables)


def weight_problems(ini: Ini) -> Iterator[str]:
    names = [feature.name for feature in ini.features]
    for feature in ini.features:
        where = f"{ini.path}:{feature.row + 1}"
        if not NAME.fullmatch(feature.name):
            yield f"{where}: name {feature.name!r}: {NOT_A_NAME}"
        if names.count(feature.name) > 1:
            yield f"{where}: the name {feature.name} is given twice"
        values = ini.weights.get(feature.name)
        if values is None:
            if feature.kind != UNTUNED:
                yield f"{where}: {feature.name} has no line in [weight]; Moses silently uses 1 for each of its scores"
        elif len(values) != feature.scores:
            where = f"{ini.path}:{ini.weight_rows[feature.name] + 1}"
            yield f"{where}: {feature.name} has {len(values)} weights, but num-features={feature.scores}; Moses stops at it"
        elif not any(values) and feature.kind != UNTUNED:
            yield f"{ini.path}:{ini.weight_rows[feature.name] + 1}: all weights of {feature.name} are 0; Moses ignores the feature (remove it, or tune)"
    for name, row in ini.weight_rows.items():
        if name not in names:
            yield f"{ini.path}:{row + 1}: weights of {name}, but there is no such feature"
    if ini.weights and not any(any(ini.weights[name]) for name in tuned(ini.weights)):
        yield f"{ini.path}: all weights are 0: a tuner found no hypothesis with any BLEU"


def columns(path: str | Path) -> int:
    """Scores in the first line of a table."""
    return len(next(iter(phrase_table.checked(path, unsorted=True))).scores.split())


def row_problems(tables: dict[str, list[tuple[FeatureLine, Path]]]) -> Iterator[str]:
    """The reordering table has to have the rows of the phrase table: to a missing one Moses gives probability 1, a bonus."""
    for _, phrases in tables.get("PhraseDictionaryMemory", []):
        try:
            for feature, path in tables.get("LexicalReordering", []):
                found = first_difference(phrases, path)
                if found:
                    hint = "filter or sort both alike (smt-filter-table)"
                    yield f"{path}:{found}: another phrase pair than in line {found} of {phrases}, for {feature.name}; {hint}"
            if not tables.get("LexicalReordering"):
                for _ in phrase_table.checked(phrases):
                    pass
        except DataError as error:
            yield str(error)


def first_difference(phrases: Path, reordering: Path) -> int:
    """The number of the first line in which two tables hold different pairs; 0: none."""
    for number, (one, other) in enumerate(zip_longest(phrase_table.checked(phrases), phrase_table.read(reordering)), 1):
        if one is None or other is None or differ(one, other):
            return number
    return 0
