"""The output of any translation system, plain text or n-best list, with its statistics sentence by
sentence."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError
from nmt.formats import nbest
from nmt.io import files
from nmt.io.files import check_lines
from nmt.metrics import BleuScore, BleuStatistics, ChrfScore, ChrfStatistics, bleu_splitter, check_tokenizer


@dataclass
class TestSet:
    """Source lines, and one list of lines per reference translation."""

    __test__ = False  # pytest: not a class of tests

    sources: list[str]
    references: list[list[str]]
    tokenize: str = "13a"  # sacreBLEU's tokenizer
    lowercase: bool = False  # score without regard to case

    @cached_property
    def split(self) -> Callable[[str], list[str]]:
        """A function from a line to its words as BLEU counts them."""
        return bleu_splitter(self.tokenize, self.lowercase)

    @cached_property
    def source_words(self) -> list[list[str]]:
        """The words of the source lines, as BLEU would count them."""
        return list(map(self.split, self.sources))

    @cached_property
    def reference_words(self) -> list[list[list[str]]]:
        """For each reference translation the words of its lines, as BLEU counts them."""
        return [list(map(self.split, reference)) for reference in self.references]


@dataclass
class System:
    """The output of one system: a translation of each source line of a test set."""

    name: str
    hypotheses: list[str]
    test: TestSet

    @cached_property
    def bleu_statistics(self) -> BleuStatistics:
        """The statistics of BLEU, one row per sentence."""
        test = self.test
        return BleuStatistics(self.hypotheses, test.references, test.tokenize, test.lowercase)

    @cached_property
    def chrf_statistics(self) -> ChrfStatistics:
        """The statistics of chrF, one row per sentence."""
        return ChrfStatistics(self.hypotheses, self.test.references, self.test.lowercase)

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each translation as BLEU counts them."""
        return list(map(self.test.split, self.hypotheses))

    def bleu(self, mask: NDArray[np.bool_] | None = None) -> BleuScore:
        """Corpus BLEU of all sentences, or of those where `mask` is true."""
        return self.bleu_statistics.bleu(mask)

    def chrf(self, mask: NDArray[np.bool_] | None = None) -> ChrfScore:
        """Corpus chrF2 of all sentences, or of those where `mask` is true."""
        return self.chrf_statistics.chrf(mask)

    def ratio(self, mask: NDArray[np.bool_] | None = None) -> float:
        """Words of the hypotheses over words of the references, as BLEU counts them."""
        return self.bleu_statistics.ratio(mask)


def read_systems(
    source: str,
    references: Sequence[str],
    hypotheses: Sequence[str],
    names: Sequence[str] | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[System]:
    """Read a test set and the outputs of systems, text or n-best lists, from files.

    With an empty `source` the first reference stands for it. `names` are the files' own unless given;
    `tokenize` is sacreBLEU's tokenizer; `lowercase` scores without regard to case. DataError names a file
    that is empty or of another length; ConfigError for an unknown tokenizer comes before anything is read;
    TypeError for a str instead of a list.
    """
    for given, what in ((references, "references"), (hypotheses, "hypotheses"), (names, "names")):
        check_lines(given, what)
    check_tokenizer(tokenize)
    paths = [source, *references] if source else list(references)
    lines = list(files.parallel(*paths))
    if not lines:
        raise DataError(f"{files.name_of(paths[0])}: empty file, expected one sentence a line")
    sources, *others = map(list, zip(*lines, strict=True))
    test = TestSet(
        sources=sources,
        references=others if source else [sources, *others],
        tokenize=tokenize,
        lowercase=lowercase,
    )
    if names and len(names) != len(hypotheses):
        raise ConfigError(
            f"--names: {len(names)} names for {len(hypotheses)} systems; give one for each --hypothesis"
        )
    return [
        System(name=name, hypotheses=read_hypotheses(path, len(sources), paths[0]), test=test)
        for name, path in zip(names or unique_names(hypotheses), hypotheses, strict=True)
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
    """The file names without their folders if all differ, else the whole paths."""
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)
