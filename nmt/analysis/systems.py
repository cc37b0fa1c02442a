"""The output of translation systems, whoever made it: plain text or an n-best list, with its statistics
sentence by sentence."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt import files, nbest
from nmt.errors import ConfigError, DataError
from nmt.metrics import BLEU, CharacterStatistics, ChrF, SentenceStatistics


@dataclass
class TestSet:
    """Sources, and one list of lines for each reference translation."""

    __test__ = False  # pytest: not a class of tests

    sources: list[str]
    references: list[list[str]]
    tokenize: str = "13a"  # sacreBLEU's tokenizer


@dataclass
class System:
    """One translation a source line."""

    name: str
    hypotheses: list[str]
    test: TestSet

    @cached_property
    def words(self) -> SentenceStatistics:
        return SentenceStatistics(self.hypotheses, self.test.references, self.test.tokenize)

    @cached_property
    def characters(self) -> CharacterStatistics:
        return CharacterStatistics(self.hypotheses, self.test.references)

    def bleu(self, which: NDArray[np.bool_] | None = None) -> BLEU:
        return self.words.bleu(which)

    def chrf(self, which: NDArray[np.bool_] | None = None) -> ChrF:
        return self.characters.chrf(which)

    def ratio(self, which: NDArray[np.bool_] | None = None) -> float:
        """Words of the hypotheses over words of the references, as BLEU counts them."""
        hypothesis, reference = (
            (self.words.rows if which is None else self.words.rows[which])[:, 8:].sum(0).tolist()
        )
        return hypothesis / reference if reference else 0.0


def load(
    source: str,
    references: Sequence[str],
    hypotheses: Sequence[str],
    names: Sequence[str] | None,
    tokenize: str,
) -> list[System]:
    """Read a test set and the output of systems; without a source the first reference stands for it.

    DataError names a file that is empty or of another length.
    """
    paths = [source, *references] if source else list(references)
    rows = list(files.parallel(*paths))
    if not rows:
        raise DataError(f"{files.name_of(paths[0])}: empty file, expected one sentence a line")
    sources, *others = map(list, zip(*rows, strict=True))
    others = others if source else [sources, *others]
    test = TestSet(sources, others, tokenize)
    if names and len(names) != len(hypotheses):
        raise ConfigError(
            f"--names: {len(names)} names for {len(hypotheses)} systems; give one for each --hypothesis"
        )
    names = names or unique_names(hypotheses)
    return [
        System(name, read_hypotheses(path, len(sources), paths[0]), test)
        for name, path in zip(names, hypotheses, strict=True)
    ]


def read_hypotheses(path: str, count: int, source: str) -> list[str]:
    """The lines of a text file, or the first entry of each sentence of an n-best list."""
    lines = list(files.read_lines(path))
    if lines and re.match(r"\d+ \|\|\| ", lines[0]):
        best: dict[int, str] = {}
        for number, line in enumerate(lines, 1):
            found = nbest.parse(line, f"{path}:{number}")
            best.setdefault(found.sentence, " ".join(found.words))
        missing = [number for number in range(count) if number not in best]
        if missing or len(best) != count:
            what = f"sentence {missing[0]} is missing" if missing else f"sentence {max(best)}"
            raise DataError(
                f"{path}: {what}, but {source} has {count} lines; an n-best list needs every sentence once, "
                "numbered from 0"
            )
        return [best[number] for number in range(count)]
    if len(lines) != count:
        raise files.unequal([path, source], [len(lines), count])
    return lines


def unique_names(paths: Sequence[str]) -> list[str]:
    """File names without folders where they differ, else whole paths."""
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)
