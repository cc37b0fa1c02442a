"""Byte-pair encoding through subword-nmt: learn, apply, undo. `lower@@ case` -> `lowercase`."""

import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from nmt import files
from nmt.errors import DataError

SEPARATOR = "@@"


def count_words(lines: Iterable[list[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for words in lines:
        counts.update(words)
    return counts


def learn(counts: Counter[str], merges: int, min_frequency: int = 2) -> list[str]:
    """The lines of a code file (`#version: 0.2` first), from word counts. For joint codes add the counts of both sides."""
    from subword_nmt import learn_bpe

    learn_bpe.tqdm = lambda merges, *args, **kwargs: merges  # its bar would be drawn on a pipe or file too
    dictionary = io.StringIO("".join(f"{word} {count}\n" for word, count in sorted(counts.items())), newline="\n")
    codes = io.StringIO()
    learn_bpe.learn_bpe(dictionary, codes, merges, min_frequency, is_dict=True)
    return codes.getvalue().rstrip("\n").split("\n")


class Subwords:
    """Codes as learned by `learn` or by subword-nmt. DataError for a line that is not two symbols."""

    def __init__(self, lines: list[str], name: str = "codes") -> None:
        from subword_nmt.apply_bpe import BPE

        for number, line in enumerate(lines, 1):
            if line.startswith("#version") and number == 1:
                continue
            if len(files.split_words(line)) != 2:  # subword-nmt itself would leave the process here
                raise DataError(f"{name}:{number}: {line[:60]!r} is not two symbols; is this a file of BPE codes?")
        self.lines = lines
        self.bpe = BPE(io.StringIO("\n".join(lines) + "\n", newline="\n"), separator=SEPARATOR)

    def apply(self, words: list[str]) -> list[str]:
        return self.bpe.segment_tokens(words)


def undo(units: list[str]) -> list[str]:
    """Join `lo@@ wer` to `lower`. A separator at the very end of a sentence is dropped."""
    words, start = [], ""
    for unit in units:
        if unit.endswith(SEPARATOR):
            start += unit[: -len(SEPARATOR)]
        else:
            words.append(start + unit)
            start = ""
    return [*words, start] if start else words


def load(path: str | Path) -> Subwords:
    lines = list(files.read_lines(path))
    if not lines:
        raise DataError(f"{path}:1: empty file, expected BPE codes")
    return Subwords(lines, str(path))
