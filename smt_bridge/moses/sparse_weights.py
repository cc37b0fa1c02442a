"""The weights of sparse features: the file that [weight-file] of a moses.ini names has a line such as
`WT_the~le 0.1` for each value."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files, numbers

SUFFIX = ".sparse-weights"
SparseWeights = dict[str, float]  # by name of a feature, _ and what it counts, such as WT_the~le


def beside(ini: str | Path) -> Path:
    """The file for the sparse weights of a new ini: NAME.sparse-weights beside NAME.ini, or beside NAME."""
    return Path(f"{str(ini).removesuffix('.ini')}{SUFFIX}")


def feature_of(name: str) -> str:
    """The feature of the value `name`: WT of WT_the~le."""
    return name.partition("_")[0]


def is_sparse(name: str) -> bool:
    """Whether a name is that of a sparse value. Names of other features have no `_` (Moses' tuners)."""
    return "_" in name


def read(path: str | Path) -> SparseWeights:
    """Read a file of sparse weights. DataError, with the line, for a line that is not a name and a number,
    and for a second one of the same name. Empty lines and comments are ignored."""
    weights: SparseWeights = {}
    for number, line in enumerate(files.read_lines(path), 1):
        words = files.split_words(line)
        if not words or line.startswith("#"):
            continue
        location = f"{files.name_of(path)}:{number}"
        try:
            name, text = words
            value = numbers.real(text)
        except ValueError as error:
            raise DataError(
                f"{location}: {numbers.shown(line.strip())} is not a sparse weight, expected 'NAME_WORD "
                "number'; correct the line, or remove it"
            ) from error
        if name in weights:
            raise DataError(f"{location}: {name} already has a weight above; remove one of the lines")
        weights[name] = value
    return weights


def write(path: str | Path, weights: Mapping[str, float], header: Iterable[str] = ()) -> None:
    """Write sparse weights that are not 0 atomically, sorted by name; `header` lines become comments.
    UserError if that fails."""
    lines = (f"{name} {value:.6g}" for name, value in sorted(weights.items()) if value)
    files.write_text(path, [*(f"# {line}" for line in header), *lines])
