"""Named weights as Moses writes them: `Name= v v v` lines, in the [weight] section of moses.ini or in a
separate file."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files, numbers

Weights = dict[str, list[float]]
UNTUNED = "UnknownWordPenalty"  # weight 1, never printed, never tuned
UNTUNEABLE = "UNTUNEABLE"  # what `moses -show-weights` prints instead of a number


def parse(lines: Iterable[tuple[int, str]], name: str) -> Weights:
    """Parse numbered lines of `Name= v v v`, ignoring empty lines and comments. DataError for anything
    else."""
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
            raise DataError(f"{location}: {feature} already has weights above")
        try:
            weights[feature] = numbers.reals(words[1:])
        except ValueError as error:
            raise DataError(f"{location}: a weight of {feature[:40]}: {error}") from error
        if not weights[feature]:
            raise DataError(f"{location}: {feature[:40]} has no weight")
    return weights


def read(path: str | Path) -> Weights:
    """Read a weight file, or the [weight] section of a moses.ini. DataError if it has no weights."""
    lines = list(enumerate(files.read_lines(path), 1))
    headers = [(row, line.strip()) for row, line in lines if line.lstrip().startswith("[")]
    if headers:
        start = next((row for row, line in headers if line == "[weight]"), len(lines))
        end = next((row for row, _ in headers if row > start), len(lines) + 1)
        lines = lines[start : end - 1]
    weights = parse(lines, files.name_of(path))
    if not weights:
        raise DataError(f"{files.name_of(path)}: no weights, expected lines like 'LM0= 0.1'")
    return weights


def tuned(weights: Weights) -> set[str]:
    """Names of the features that a decoder with these weights prints."""
    return {name for name in weights if not name.startswith(UNTUNED)}


def format_line(name: str, values: Iterable[float]) -> str:
    """Format a line of weights: `Name= v v v`."""
    return f"{name}= {' '.join(f'{value:.6g}' for value in values)}"


def write(path: str | Path, weights: Mapping[str, Iterable[float]], header: Iterable[str] = ()) -> None:
    """Write a weight file; `header` lines become comments."""
    files.write_text(
        path, [*(f"# {line}" for line in header), *(format_line(*item) for item in weights.items())]
    )
