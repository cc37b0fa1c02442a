"""The two text files of a pool as Moses' `extractor` writes them, and `mert` and `kbmira` read them: features
and BLEU statistics.

FEATURES_TXT_BEGIN_0 id count dense names ...      SCORES_TXT_BEGIN_0 id count 9 BLEU
one row of numbers per hypothesis                  match total (of 1- to 4-grams) reference-length
FEATURES_TXT_END_0                                 SCORES_TXT_END_0

Rows, and the header of features, end in a blank.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nmt import files, numbers
from nmt.errors import DataError

Floats = NDArray[np.float64]
BEGIN = re.compile(r"(FEATURES|SCORES)_TXT_BEGIN_[0-9]+$")


def read(path: str, kind: str) -> Iterator[tuple[int, list[str], Floats]]:
    """Sentence id, the names in the header, and the rows of each block. `kind`: FEATURES or SCORES. DataError
    for anything that is not such a file."""
    lines = enumerate(files.read_lines(path), 1)
    empty = True
    for number, line in lines:
        words = files.split_words(line)
        if not words:
            continue
        sentence, count, width = header(words, kind, f"{path}:{number}")
        empty = False
        try:
            block = np.array([row(next(lines)[1]) for _ in range(count)], np.float64).reshape(count, width)
            end = next(lines)[1]
        except (StopIteration, ValueError) as error:
            cause = f" ({error})" if "number" in str(error) else ""
            raise DataError(
                f"{path}:{number}: the block of sentence {sentence} is not {count} rows of {width} "
                f"numbers{cause} (sparse features are not tuned here)"
            ) from error
        if not end.startswith(f"{kind}_TXT_END") or not np.isfinite(block).all():
            raise DataError(
                f"{path}:{number}: the block of sentence {sentence} does not end after {count} rows, or "
                "holds nan or inf"
            )
        yield sentence, words[4:], block
    if empty:
        raise DataError(f"{path}: empty file, expected what Moses' extractor writes")


def header(words: Sequence[str], kind: str, where: str) -> tuple[int, int, int]:
    """Sentence id, number of rows, number of columns."""
    match = BEGIN.match(words[0])
    try:
        if not match or match[1] != kind:
            raise ValueError
        sentence, count, width = map(numbers.count, words[1:4])
    except ValueError as error:
        found = numbers.shown(" ".join(words))
        raise DataError(
            f"{where}: {found}, expected '{kind}_TXT_BEGIN_0 id count columns names', as Moses' extractor "
            "writes (text, not binary)"
        ) from error
    return sentence, count, width


def row(line: str) -> list[float]:
    """The numbers of a line. ValueError for anything else."""
    return list(map(float, line.split())) if numbers.plain(line) else numbers.reals(files.split_words(line))


def features_block(sentence: int, names: Sequence[str], values: Floats) -> Iterator[str]:
    """The lines of a sentence in the file of features."""
    yield f"FEATURES_TXT_BEGIN_0 {sentence} {len(values)} {len(names)} {' '.join(names)} "
    yield from (f"{' '.join(f'{value:.6g}' for value in found)} " for found in values.tolist())
    yield "FEATURES_TXT_END_0"


def scores_block(sentence: int, stats: Floats) -> Iterator[str]:
    """The lines of a sentence in the file of statistics."""
    yield f"SCORES_TXT_BEGIN_0 {sentence} {len(stats)} {stats.shape[1]} BLEU"
    yield from (f"{' '.join(map(str, found))} " for found in stats.astype(np.int64).tolist())
    yield "SCORES_TXT_END_0"


def write(
    features: str, scores: str, names: Sequence[str], blocks: Iterable[tuple[int, Floats, Floats]]
) -> None:
    """Write both files, whole or not at all. Each block: sentence, rows of features, rows of statistics."""
    with files.Writing(features) as feature_out, files.Writing(scores) as score_out:
        for sentence, values, stats in blocks:
            feature_out.write_lines(features_block(sentence, names, values))
            score_out.write_lines(scores_block(sentence, stats))
