"""The sparse features that smt-train writes into moses.ini: those of the most frequent words of each side, as
Moses' build-sparse-features.perl does."""

from collections import Counter
from pathlib import Path

from nmt.io import files


def write_frequent(text: str, path: Path, count: int) -> None:
    """Write the `count` most frequent words of a text, given by its path, one a line: the most frequent
    first, those of the same frequency in the order of their bytes. UserError if that fails."""
    counts = Counter(word for line in files.read_lines(text) for word in files.split_words(line))
    words = sorted(counts, key=lambda word: (-counts[word], word.encode()))
    files.write_text(path, words[:count])


def sparse_lines(source: str, target: str) -> list[str]:
    """The lines of [feature]. `source`, `target`: the files of both sides."""
    return [
        f"TargetWordInsertionFeature name=TWI factor=0 path={target}",
        f"SourceWordDeletionFeature name=SWD factor=0 path={source}",
        "WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-context=0 "
        f"target-context=0 source-path={source} target-path={target}",
        "PhraseLengthFeature name=PL",
    ]
