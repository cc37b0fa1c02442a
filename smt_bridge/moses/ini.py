"""Reads and edits moses.ini: a feature's line and its weights change together, and every other byte is kept.

[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz ...
[weight]
TranslationModel0= 0.2 0.2 0.2 0.2"""

import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt.errors import ConfigError, DataError
from nmt.io import files, numbers
from smt_bridge.moses import sparse_weights
from smt_bridge.moses.reordering import ReorderingType
from smt_bridge.moses.sparse_weights import SparseWeights, feature_of, is_sparse

# ---- weights -----------------------------------------------------------------------------------------------
# Named weights in the form of Moses, lines `Name= v v v`, in the [weight] section of moses.ini or in a file
# of their own.


Weights = dict[str, list[float]]
UNTUNED = "UnknownWordPenalty"  # has weight 1, is never printed and never tuned
UNTUNEABLE = "UNTUNEABLE"  # what `moses -show-weights` prints instead of a number


def parse_weights(lines: Iterable[tuple[int, str]], name: str) -> Weights:
    """Parse numbered lines of `Name= v v v`, ignoring empty lines, comments, and scores that are not
    tuneable. `name`: name of the file, for messages. DataError for any other line, and for a second one of
    the same name."""
    weights: Weights = {}
    for number, line in lines:
        words = files.split_words(line)
        if not words or words[0].startswith("#") or words[-1] == UNTUNEABLE:
            continue
        location = f"{name}:{number}"
        if not words[0].endswith("=") or len(words[0]) < 2:
            raise DataError(
                f"{location}: {line.strip()[:60]!r} is not a weight, expected 'Name= value value ...' (with "
                "a blank after the =)"
            )
        feature = words[0][:-1]
        if feature in weights:
            raise DataError(f"{location}: {feature} already has weights above; remove one of the lines")
        try:
            weights[feature] = numbers.reals(words[1:])
        except ValueError as error:
            raise DataError(f"{location}: a weight of {feature[:40]}: {error}") from error
        if not weights[feature]:
            raise DataError(
                f"{location}: {feature[:40]} has no weight; write a number for each of its scores"
            )
    return weights


def read_weights(path: str | Path) -> Weights:
    """Read a weight file, or the [weight] section of a moses.ini with the sparse weights that its
    [weight-file] names. DataError, with the line, for one that is not a weight, and if there are none."""
    name, lines = files.name_of(path), list(files.read_lines(path))
    numbered, sparse = list(enumerate(lines, 1)), SparseWeights()
    if any(line.lstrip().startswith("[") for line in lines):
        sections = split_sections(name, lines)
        numbered = [(row + 1, text) for row, text in sections.get("weight", Section(-1)).values]
        for _, file in sections.get(WEIGHT_FILE, Section(-1)).values:
            sparse |= sparse_weights.read(search_roots(file, [Path(path).parent, "."]) or file)
    weights = parse_weights(numbered, name)
    if not weights:
        raise DataError(f"{name}: no weights, expected lines like 'LM0= 0.1'")
    return weights | {value: [weight] for value, weight in sparse.items()}


def tuned_names(weights: Weights) -> set[str]:
    """Names of the features that n-best lists print in each entry, and tuners tune: all but the
    UnknownWordPenalty and sparse values, which have `_` in their names."""
    return {name for name in weights if not name.startswith(UNTUNED) and not is_sparse(name)}


def format_weights(name: str, values: Iterable[float]) -> str:
    """Format a weight line, `Name= v v v`, with six digits of each weight."""
    return f"{name}= {' '.join(f'{value:.6g}' for value in values)}"


def write_weights(
    path: str | Path, weights: Mapping[str, Iterable[float]], header: Iterable[str] = ()
) -> None:
    """Write a weight file atomically; `header` lines become comments. UserError if that fails."""
    files.write_text(
        path, [*(f"# {line}" for line in header), *(format_weights(*item) for item in weights.items())]
    )


# ---- ini ---------------------------------------------------------------------------------------------------


# The scores of Moses' kinds of features without num-features=; other kinds have 1. Those with 0 have only
# sparse values, with weights of their own.
DEFAULT_SCORES = {
    "OpSequenceModel": 5, "WordTranslationFeature": 0, "TargetWordInsertionFeature": 0,
    "SourceWordDeletionFeature": 0, "PhraseLengthFeature": 0, "PhrasePairFeature": 0,
    "PhraseBoundaryFeature": 0, "TargetBigramFeature": 0, "TargetNgramFeature": 0,
}  # fmt: skip
WEIGHT_FILE = "weight-file"  # section that names the file of the weights of sparse values
BLANKS = " \t\n\r\f\v"  # as in C++: NBSP is a character like others
TRUE = ("true", "yes", "y", "1")  # as Moses reads booleans
FALSE = ("false", "no", "n", "0")
OLD_SECTIONS = set(
    "ttable-file lmodel-file distortion-file generation-file weight-t weight-l weight-d weight-w weight-lr "
    "ttable-limit".split()
)
CONVERT = "convert it first with Moses' scripts/training/convert-moses-ini-to-v2.perl"
ADVICE = {"ttable-limit": "write table-limit=N in the line of the table"}


@dataclass
class FeatureLine:
    """A parsed line of [feature]."""

    row: int  # index of the line, from 0
    kind: str  # such as PhraseDictionaryMemory
    name: str  # from name=, or else the kind and a number, as in Moses
    options: dict[str, str]
    location: str  # such as moses.ini:12, for messages

    @property
    def scores(self) -> int:
        """The number of scores: 2 with oov-feature=1, else num-features= or its default, which depends on the
        kind, and the type of a reordering model, as in Moses."""
        if self.options.get("oov-feature", "").lower() in TRUE:
            return 2
        return int(self.options["num-features"]) if "num-features" in self.options else self.default_scores

    @property
    def default_scores(self) -> int:
        """The number of scores without num-features=."""
        if self.kind != "LexicalReordering":
            return DEFAULT_SCORES.get(self.kind, 1)
        try:
            return ReorderingType.parse(self.options.get("type", "")).scores
        except ValueError:
            return ReorderingType().scores

    def error(self, problem: str) -> ConfigError:
        return ConfigError(f"{self.location}: {problem}")

    def truth(self, key: str, default: bool = False) -> bool:
        """Parse option `key` as a boolean; `default` without the option. ConfigError for any other value."""
        try:
            return parse_truth(self.options[key]) if key in self.options else default
        except ValueError as error:
            raise self.error(f"{key}={error}") from error

    def count(self, key: str, default: int = 0) -> int:
        """Parse option `key` as an integer of 0 or more; `default` without the option. ConfigError for any
        other value."""
        try:
            return numbers.count(self.options[key]) if key in self.options else default
        except ValueError as error:
            raise self.error(f"{key}={error}, expected 0 or more") from error


def parse_truth(text: str) -> bool:
    """Parse a boolean as Moses does. ValueError for any other text."""
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise ValueError(f"{numbers.shown(text)} is neither true nor false")


@dataclass
class Section:
    """A section [name]: its lines without comments."""

    row: int  # of the header, from 0
    values: list[tuple[int, str]] = field(default_factory=list)  # row and text of each line


@dataclass
class Ini:
    """A parsed moses.ini: its original lines, and where its features and weights are."""

    path: str
    lines: list[str]  # of the whole file; the last one is empty if the file ends in a line end
    features: list[FeatureLine]
    weight_rows: dict[str, int]  # name -> index of its weight line
    weights: Weights
    weight_end: int  # index after the last weight line
    sections: dict[str, Section]

    @property
    def weight_file(self) -> str:
        """The file that [weight-file] names; empty without one."""
        section = self.sections.get(WEIGHT_FILE)
        return section.values[0][1] if section and section.values else ""

    @property
    def paths(self) -> list[str]:
        """The files and folders that the ini names."""
        paths = [feature.options.get(key, "") for feature in self.features for key in PATH_KEYS]
        return [path for path in (*paths, self.weight_file) if path]

    @property
    def roots(self) -> list[str]:
        """Folders in which relative paths are looked up, in order: the ini's own, and the working directory,
        which is the only one that Moses knows."""
        return [str(Path(self.path).parent), "."]

    def feature(self, name: str) -> FeatureLine:
        """The feature of this name. ConfigError if there is none."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise ConfigError(
            f"{self.path}: no feature {name}, expected one of "
            f"{', '.join(feature.name for feature in self.features)}"
        )


def read(path: str) -> Ini:
    """Read a moses.ini. DataError for other files, the old format, and lines that Moses would refuse."""
    with files.open_bytes(path) as stream:
        text = stream.read()
    return parse(path, [files.decode(line, path, number) for number, line in enumerate(text.split(b"\n"), 1)])


def parse(path: str, lines: list[str]) -> Ini:
    """Parse the lines of a moses.ini; `path` is for messages. Raises the errors of `read`."""
    sections = split_sections(path, lines)
    empty = Section(-1)
    counts: Counter[str] = Counter()
    features = [parse_feature(path, row, text, counts) for row, text in sections.get("feature", empty).values]
    if not features:
        raise DataError(f"{path}: no section [feature] with features, expected a moses.ini")
    weights = sections.get("weight", Section(len(lines) - (lines[-1] == "") - 1))
    weight_rows = {files.split_words(text)[0].removesuffix("="): row for row, text in weights.values}
    parsed = parse_weights([(row + 1, text) for row, text in weights.values], path)
    return Ini(
        path=path,
        lines=lines,
        features=features,
        weight_rows=weight_rows,
        weights=parsed,
        weight_end=max([weights.row, *weight_rows.values()]) + 1,
        sections=sections,
    )


def split_sections(path: str, lines: list[str]) -> dict[str, Section]:
    """Split an ini into sections as Moses does: # starts a comment anywhere in a line, and a repeated section
    continues the first one. DataError for lines before the first section, and for the old format."""
    sections: dict[str, Section] = {}
    current: Section | None = None
    for row, line in enumerate(lines):
        text = line.partition("#")[0].strip(BLANKS)
        if text.startswith("["):
            name, bracket, _ = text[1:].partition("]")
            if not bracket:
                raise DataError(
                    f"{path}:{row + 1}: {numbers.shown(text)} has no closing bracket, so Moses skips "
                    "it; write [name]"
                )
            if name in OLD_SECTIONS:
                raise DataError(
                    f"{path}:{row + 1}: section [{name}] belongs to the old moses.ini format; "
                    f"{ADVICE.get(name, CONVERT)}"
                )
            current = sections.setdefault(name, Section(row))
        elif text and current is None:
            raise DataError(
                f"{path}:{row + 1}: {numbers.shown(text)} comes before the first section, expected a "
                "moses.ini that starts with one such as [feature]"
            )
        elif text and current is not None:
            current.values.append((row, text))
    return sections


def parse_feature(path: str, row: int, text: str, counts: Counter[str]) -> FeatureLine:
    """Parse a line of [feature]. `row`: its index, from 0; `counts`: number of previous features of each
    kind, updated. DataError for a line that Moses would refuse."""
    kind, *words = files.split_words(text)
    location = f"{path}:{row + 1}"
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise DataError(
                f"{location}: {word!r} does not have the form key=value; Moses stops at it; correct it"
            )
        if key in options:
            raise DataError(f"{location}: {key} is given twice; Moses stops at it; remove one")
        options[key] = value
    try:
        numbers.count(options.get("num-features", "1"))
    except ValueError as error:
        raise DataError(f"{location}: num-features={error}") from error
    name = options.get("name", f"{kind}{counts[kind]}")
    counts[kind] += 1
    return FeatureLine(row, kind, name, options, location)


def add_columns(ini: Ini, name: str, values: Sequence[float], path: str | None = None) -> Ini:
    """Append scores with the weights `values` to feature `name`, and update `num-features`; returns a new
    ini. `path`: the table with the new columns, if it is another file. ConfigError if there is no such
    feature, or if it lacks weights."""
    return with_columns(ini, name, [*column_weights(ini, ini.feature(name)), *values], path)


def remove_column(ini: Ini, name: str, column: int, path: str | None = None) -> Ini:
    """Remove a score of feature `name`, and update `num-features`; returns a new ini. `column`: counted from
    1; `path`: the table without this column, if it is another file. ConfigError if there is no such feature
    or score, or if it is the only score."""
    feature = ini.feature(name)
    values = column_weights(ini, feature)
    if not 1 <= column <= feature.scores:
        raise ConfigError(
            f"{ini.path}: {name} has {feature.scores} scores, there is no column {column}; name one from 1 "
            f"to {feature.scores}"
        )
    if feature.scores == 1:
        raise ConfigError(
            f"{ini.path}: {name} has only this score; remove the whole feature, without --column"
        )
    return with_columns(ini, name, values[: column - 1] + values[column:], path)


def column_weights(ini: Ini, feature: FeatureLine) -> list[float]:
    """The weights of a feature with columns. ConfigError for a sparse one, and as from `feature_weights`."""
    if not feature.scores:
        raise feature.error(f"{feature.name} has only sparse values; name a feature with a table")
    return feature_weights(ini, feature)


def with_columns(ini: Ini, name: str, values: Sequence[float], path: str | None) -> Ini:
    """Set the weights of feature `name` to `values`, and `num-features` to their number; returns a new ini.
    `path`: the table with these columns, if it is another file."""
    feature, lines = ini.feature(name), list(ini.lines)
    changed = {"num-features": str(len(values))} | ({"path": path} if path else {})
    lines[feature.row] = with_options(lines[feature.row], changed)
    set_line(lines, ini, name, values)
    return parse(ini.path, lines)


def set_path(ini: Ini, name: str, path: str, key: str = "path") -> Ini:
    """Change the path of a feature's file, or of another file, the argument `key`; returns a new ini.
    ConfigError if there is no such feature, or for a path as from `with_options`."""
    feature, lines = ini.feature(name), list(ini.lines)
    lines[feature.row] = with_options(lines[feature.row], {key: path})
    return parse(ini.path, lines)


def add_feature(ini: Ini, line: str, values: Sequence[float]) -> Ini:
    """Add a feature, given by its line in [feature], with its weights; returns a new ini. ConfigError for a
    text that is not one line, for a name that exists already, and for the wrong number of weights; DataError
    for a line that Moses would refuse."""
    if not re.fullmatch(r"[^\S\n]*[^\s#\[][^\n]*", line):
        raise ConfigError(f"{numbers.shown(line)} is not a line of [feature], expected KIND key=value ...")
    new = parse_feature(
        ini.path, ini.features[-1].row + 1, line, Counter(feature.kind for feature in ini.features)
    )
    if any(feature.name == new.name for feature in ini.features):
        raise ConfigError(f"{ini.path}: feature {new.name} exists already; give another name=")
    if new.scores != len(values):
        raise ConfigError(f"{line}: {new.scores} scores, but {len(values)} weights; the numbers must agree")
    lines, feature_end = list(ini.lines), ini.features[-1].row + 1
    if feature_end > ini.weight_end:
        lines.insert(feature_end, line)
    if values:
        lines.insert(ini.weight_end, format_weights(new.name, values))
        if "weight" not in ini.sections:
            lines.insert(ini.weight_end, "[weight]")
    if feature_end <= ini.weight_end:
        lines.insert(feature_end, line)
    return parse(ini.path, lines)


def write(path: str | Path, ini: Ini, *header: str) -> None:
    """Write an ini to a file atomically, with the lines of `header`, such as comments, before its own.
    UserError if that fails."""
    with files.Writing(path) as out:
        out.write("\n".join([*header, *ini.lines]))


def remove_feature(ini: Ini, name: str) -> Ini:
    """Remove a feature and its weights; returns a new ini. ConfigError if there is no such feature. Later
    features of its kind that are named by their number get name=, so that they keep their names."""
    removed, lines = ini.feature(name), list(ini.lines)
    for feature in ini.features:
        if feature.kind == removed.kind and feature.row > removed.row and "name" not in feature.options:
            lines[feature.row] = with_options(lines[feature.row], {"name": feature.name})
    rows = {removed.row, ini.weight_rows.get(name, -1)}
    return parse(ini.path, [line for row, line in enumerate(lines) if row not in rows])


def set_weights(ini: Ini, weights: Weights) -> Ini:
    """Set the weights of the features in `weights`; returns a new ini. ConfigError for a feature that does
    not exist, has another number of scores, or has no line in [weight]."""
    lines = list(ini.lines)
    for name, values in weights.items():
        feature = ini.feature(name)
        if len(values) != feature.scores:
            raise ConfigError(
                f"{ini.path}: {name} has {feature.scores} scores, but {len(values)} weights are given; give "
                "as many"
            )
        if name not in ini.weight_rows:
            raise ConfigError(
                f"{ini.path}: no line '{name}=' in [weight]; Moses would use 1 for it. Add the line first"
            )
        set_line(lines, ini, name, values)
    return parse(ini.path, lines)


def split_weights(ini: Ini, weights: Weights) -> tuple[Weights, SparseWeights]:
    """Split weights into those of features and those of sparse values. ConfigError for a value of a sparse
    feature that the ini lacks, and for one with several weights."""
    names, sparse = {feature.name for feature in ini.features}, SparseWeights()
    sparse_names = {feature.name for feature in ini.features if not feature.scores}
    for name, values in weights.items():
        if name in names or not is_sparse(name):
            continue
        if feature_of(name) not in sparse_names:
            raise ConfigError(
                f"a weight of {numbers.shown(name)}, but the model has no such sparse feature; it has "
                f"{', '.join(sorted(sparse_names)) or 'none'}"
            )
        if len(values) != 1:
            raise ConfigError(f"{name} has {len(values)} weights; give it one")
        sparse[name] = values[0]
    return {name: values for name, values in weights.items() if name not in sparse}, sparse


def feature_weights(ini: Ini, feature: FeatureLine) -> list[float]:
    """The weights of a feature. ConfigError unless there is one for each of its scores."""
    values = ini.weights.get(feature.name)
    if values is None and not feature.scores:
        return []
    if values is None:
        raise ConfigError(
            f"{feature.location}: no line '{feature.name}=' in [weight]; Moses would silently use 1 for each "
            "score. Add the line first"
        )
    if len(values) != feature.scores:
        location = f"{ini.path}:{ini.weight_rows[feature.name] + 1}"
        raise ConfigError(
            f"{location}: {feature.name} has {feature.scores} scores and {len(values)} weights; Moses stops "
            "at it. Fix that first"
        )
    return values


def set_line(lines: list[str], ini: Ini, name: str, values: Sequence[float]) -> None:
    """Replace a feature's weights in the list `lines`, keeping the line's comment and line end."""
    row = ini.weight_rows[name]
    text, end = split_line_end(lines[row])
    _, mark, comment = text.partition("#")
    lines[row] = format_weights(name, values) + (f" #{comment}" if mark else "") + end


def split_line_end(line: str) -> tuple[str, str]:
    """Split a line into its text and what ends it before the line feed, a carriage return or nothing."""
    text = line.removesuffix("\r")
    return text, line[len(text) :]


def with_options(line: str, changed: dict[str, str]) -> str:
    """Set the options `changed` in a feature line, and return the line. New options are appended before its
    comment. ConfigError for a value that is not UTF-8, or has a blank or #."""
    text, end = split_line_end(line)
    text, mark, comment = text.partition("#")
    for key, value in changed.items():
        if not value.isascii() and value != value.encode("utf-8", "ignore").decode("utf-8"):
            raise ConfigError(
                f"{key}={value}: is not UTF-8, as a moses.ini must be; rename the file or its folder"
            )
        check_holds(f"{key}={value}", value)
        if match := re.search(rf"(?<=[ \t]){re.escape(key)}=[^ \t]*", text):
            text = f"{text[: match.start()]}{key}={value}{text[match.end() :]}"
        else:
            text = f"{text.rstrip(BLANKS)} {key}={value}{' ' if mark else ''}"
    return text + mark + comment + end


def check_holds(location: str, path: str, blanks: bool = False) -> None:
    """ConfigError, beginning with `location`, for a path with #, which starts a comment, or unless `blanks`
    is set with a blank, which ends an option."""
    if "#" in path or (set(path) & set(BLANKS) and not blanks):
        raise ConfigError(
            f"{location}: contains {'#' if '#' in path else 'a blank'}, which a moses.ini cannot hold; "
            "rename the file or its folder, or write this output beside the model"
        )


def find_table(path: str, root: str) -> Path | None:
    """Find a table as Moses does: below `root`, by its path or the path with .gz. None if there is none."""
    for name in (path, f"{path}.gz"):
        candidate = Path(root) / name
        if candidate.exists():
            return candidate
    return None


# ---- ini paths ---------------------------------------------------------------------------------------------
# Absolute paths, for a moses.ini that is written into another folder or read by a program that changes its
# working directory.


PATH_KEYS = (
    "path", "classes", "source-path", "target-path", "source-classes", "target-classes", "source_vocab",
    "target_vocab",
)  # fmt: skip
PATH_ENDINGS = ("", ".gz", ".minphr", ".minlexr")  # what Moses adds to a path in search of a file


def with_absolute_paths(ini: Ini, roots: Sequence[str | Path], fixed: Container[tuple[str, str]] = ()) -> Ini:
    """Make all paths of an ini absolute but those in `fixed`, as name of the feature and argument; returns a
    new ini. Relative paths are looked up in the folders `roots` in order; a path that exists in none is
    resolved from the first. ConfigError for a path with a blank or #."""
    return replace_paths(
        ini, lambda path: search_roots(path, roots) or os.path.abspath(os.path.join(roots[0], path)), fixed
    )


def with_moved_paths(ini: Ini, output: str | Path) -> Ini:
    """Adapt the paths of an ini that will be written to the file `output`; returns a new ini. If the file is
    in another folder, paths become absolute, so that they lead to the same files. Paths of missing files are
    kept. ConfigError for a path with a blank or #."""
    if Path(output).parent.resolve() == Path(ini.path).parent.resolve():
        return ini
    return replace_paths(ini, lambda path: search_roots(path, ini.roots) or path)


def folder_beside(ini: Ini) -> str:
    """The ini's folder if one of its paths exists there but not in the working directory, else empty."""
    folder = str(Path(ini.path).parent)
    return folder if path_only_in(ini, folder, ".") else ""


def path_only_in(ini: Ini, folder: str, second: str) -> str:
    """The first of the ini's paths that exists relative to `folder`, but not to `second`, else ""."""
    paths = (path for path in ini.paths if search_roots(path, [folder]) and not search_roots(path, [second]))
    return next(paths, "")


def replace_paths(ini: Ini, resolve: Callable[[str], str], fixed: Container[tuple[str, str]] = ()) -> Ini:
    """Replace each path of an ini by the result of `resolve`, but those in `fixed`, as name of the feature
    and argument; returns a new ini. ConfigError for a path that has a blank or #, or is not UTF-8."""
    if ini.weight_file:
        ini = with_weight_file(ini, resolve(ini.weight_file))
    lines = list(ini.lines)
    for feature in ini.features:
        paths = {
            key: resolve(feature.options[key])
            for key in PATH_KEYS
            if feature.options.get(key) and (feature.name, key) not in fixed
        }
        for path in paths.values():
            check_holds(f"{feature.location}: {path!r}", path)
        lines[feature.row] = with_options(lines[feature.row], paths)
    return parse(ini.path, lines)


def with_weight_file(ini: Ini, path: str) -> Ini:
    """Make [weight-file] name `path`, in place of what it names or as a new last section; returns a new ini.
    ConfigError for a path with #."""
    check_holds(f"{ini.path}: [{WEIGHT_FILE}]: {path!r}", path, blanks=True)
    lines = list(ini.lines)
    if ini.weight_file:
        row = ini.sections[WEIGHT_FILE].values[0][0]
        lines[row] = path + split_line_end(lines[row])[1]
    else:
        while lines and not lines[-1].strip():
            lines.pop()
        lines += ["", f"[{WEIGHT_FILE}]", path, ""]
    return parse(ini.path, lines)


def search_roots(path: str, roots: Sequence[str | Path]) -> str:
    """Look up a path in folders: the absolute path in the first one in which it exists, else ""."""
    for root in roots:
        candidate = os.path.abspath(os.path.join(root, path))
        if any(os.path.exists(candidate + ending) for ending in PATH_ENDINGS):
            return candidate
    return ""
