"""The outputs of translation systems, read from text or n-best lists, and their scores."""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import add_output
from nmt.cli.arguments import InputPath
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError, check_lines
from nmt.formats import nbest
from nmt.io import files
from nmt.io.numbers import counted
from nmt.metrics import (
    DEFAULT_TOKENIZER,
    BleuScore,
    BleuStatistics,
    ChrfScore,
    ChrfStatistics,
    TerStatistics,
    bleu_splitter,
    check_tokenizer,
)


@dataclass
class TestSet:
    """Source lines, and one list of lines per reference translation."""

    __test__ = False  # tells pytest that this is not a class of tests

    sources: list[str]
    references: list[list[str]]
    tokenize: str = DEFAULT_TOKENIZER  # of sacreBLEU
    lowercase: bool = False  # score without regard to case

    @cached_property
    def split(self) -> Callable[[str], list[str]]:
        """A function that splits a line into the words that BLEU counts."""
        return bleu_splitter(self.tokenize, self.lowercase)

    @cached_property
    def source_words(self) -> list[list[str]]:
        """The source lines, split like the references."""
        return list(map(self.split, self.sources))

    @cached_property
    def reference_words(self) -> list[list[list[str]]]:
        """The lines of each reference translation, split into words."""
        return [list(map(self.split, reference)) for reference in self.references]


@dataclass
class SystemOutput:
    """The output of one system: a translation of each source line of a test set."""

    name: str
    hypotheses: list[str]
    test: TestSet
    comet: NDArray[np.float64] | None = None  # COMET of each sentence, where computed: nmt/analysis/comet.py

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
    def ter_statistics(self) -> TerStatistics:
        """The statistics of TER, one row per sentence."""
        return TerStatistics(self.hypotheses, self.test.references)

    def comet_scores(self) -> NDArray[np.float64]:
        """COMET of each sentence. ConfigError if it has not been computed."""
        if self.comet is None:
            raise ConfigError(f"{self.name}: has no scores of COMET; see nmt.analysis.comet.score_systems")
        return self.comet

    @cached_property
    def words(self) -> list[list[str]]:
        """Each translation, split into the words that BLEU counts."""
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
    tokenize: str = DEFAULT_TOKENIZER,
    lowercase: bool = False,
) -> list[SystemOutput]:
    """Read a test set and the outputs of systems, text or n-best lists, from files.

    If `source` is empty, the first reference stands in for it. `names` default to file names; `tokenize` is
    sacreBLEU's tokenizer; `lowercase` scores without regard to case. ConfigError for an unknown tokenizer, a
    wrong number of names or two equal ones, before anything is read; DataError for a file that is empty or of
    another length; TypeError for a str instead of a list.
    """
    for lines, what in ((hypotheses, "hypotheses"), (names, "names")):
        check_lines(lines, what)
    check_names(names, hypotheses, "systems")
    test = read_test(source, references, tokenize, lowercase)
    first = source or references[0]
    return [
        SystemOutput(name=name, hypotheses=read_hypotheses(path, len(test.sources), first), test=test)
        for name, path in zip(names or unique_names(hypotheses), hypotheses, strict=True)
    ]


def read_test(
    source: str, references: Sequence[str], tokenize: str = DEFAULT_TOKENIZER, lowercase: bool = False
) -> TestSet:
    """Read a test set from files. Arguments and errors as in `read_systems`."""
    check_lines(references, "references")
    check_tokenizer(tokenize)
    paths = [source, *references] if source else list(references)
    rows = list(files.parallel(*paths))
    if not rows:
        raise DataError(f"{files.name_of(paths[0])}: empty file, expected one sentence a line")
    sources, *others = map(list, zip(*rows, strict=True))
    return TestSet(
        sources=sources,
        references=others if source else [sources, *others],
        tokenize=tokenize,
        lowercase=lowercase,
    )


def read_hypotheses(path: str, count: int, source: str) -> list[str]:
    """Read the lines of a text file, or the first entry of each sentence of an n-best list.

    DataError for a malformed entry, and unless there are `count` of them, the number of lines of the file
    `source`.
    """
    lines = list(files.read_lines(path))
    if lines and re.match(r"\d+ \|\|\| ", lines[0]):
        best: dict[int, str] = {}
        for number, line in enumerate(lines, 1):
            entry = nbest.parse(line, f"{files.name_of(path)}:{number}")
            best.setdefault(entry.sentence, " ".join(entry.words))
        missing = [number for number in range(count) if number not in best]
        if missing or len(best) != count:
            problem = f"sentence {missing[0]} is missing" if missing else f"sentence {max(best)}"
            raise DataError(
                f"{files.name_of(path)}: {problem}, but {source} has {count} lines; an n-best list needs "
                "entries for every sentence, numbered from 0"
            )
        return [best[number] for number in range(count)]
    if len(lines) != count:
        raise files.unequal([path, source], [len(lines), count])
    return lines


def unique_names(paths: Sequence[str]) -> list[str]:
    """Shorten paths to file names, unless two of these would be equal."""
    short = [Path(path).name or path for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


# ---- options -----------------------------------------------------------------------------------------------


def add_systems(parser: Parser, source: bool = True) -> None:
    """Add the options that `load_systems` reads, and --output. `source`: add --source, too."""
    if source:
        add_source(parser)
    add_references(parser)
    add_hypotheses(parser, "output of one or more systems: text, or an n-best list")
    add_names(parser, "names of the systems; default: file names")
    add_output(parser)


def add_source(parser: Parser, required: bool = True) -> None:
    parser.add_argument(
        "--source", "-s", type=InputPath, required=required, default="", metavar="FILE", help="source text"
    )


def add_references(parser: Parser) -> None:
    """Add --reference, and the options of scoring: --bleu-tokenize and --lowercase."""
    parser.add_argument(
        "--reference",
        "-r",
        type=InputPath,
        required=True,
        nargs="+",
        metavar="FILE",
        help="one or more reference translations",
    )
    parser.add_argument(
        "--bleu-tokenize",
        default=DEFAULT_TOKENIZER,
        metavar="NAME",
        help="sacreBLEU tokenizer; none for tokenized text",
    )
    parser.add_argument(
        "--lowercase", "-lc", action="store_true", help="score without regard to case (case:lc in signatures)"
    )


def add_hypotheses(parser: Parser, help: str) -> None:
    parser.add_argument("--hypothesis", type=InputPath, required=True, nargs="+", metavar="FILE", help=help)


def add_names(parser: Parser, help: str) -> None:
    parser.add_argument("--names", nargs="+", metavar="NAME", help=help)


def load_systems(args: argparse.Namespace, least: int = 1) -> list[SystemOutput]:
    """Read the systems given by the options of `add_systems`. ConfigError for fewer than `least`."""
    source = getattr(args, "source", "")
    systems = read_systems(
        source, args.reference, args.hypothesis, args.names, args.bleu_tokenize, args.lowercase
    )
    if len(systems) < least:
        raise ConfigError(f"--hypothesis: {len(systems)} system; expected {least} to compare")
    return systems


def check_names(names: Sequence[str] | None, values: Sequence[str], what: str) -> None:
    """ConfigError unless --names has as many entries as `values`, which messages call `what`, and if two of
    the names, without --names two of `values`, are equal: results are stored by name."""
    if names and len(names) != len(values):
        raise ConfigError(
            f"--names: {counted(len(names), 'name')}, expected {len(values)}; give one for each of the {what}"
        )
    for name, count in Counter(names or values).items():
        if count > 1:
            raise ConfigError(f"two {what} have the same name, {name}; give different ones with --names")


def score_summary(systems: Sequence[SystemOutput]) -> list[str]:
    """Format BLEU and chrF of each system with their signatures, one line per score."""
    single = len(systems) == 1
    return [
        f"{'' if single else system.name + ': '}{score}"
        for system in systems
        for score in (system.bleu(), system.chrf())
    ]
