"""What nmt-translate computes: blocks of lines with their prefixes and constraints in, the lines of its
outputs out."""

import argparse
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import options
from nmt.cli.arguments import InputPath, add_setting, parse_settings
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.io import files
from nmt.search.config import BeamConfig, ConstraintConfig, MBRConfig, SamplingConfig
from nmt.text import glossary, pipeline, sentences
from nmt.text.lexicon import Lexicon
from nmt.text.tokenize import escape, unescape
from nmt.work.texts import Lines

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.runs.constraints import LineConstraints
    from nmt.runs.run import BeamTranslation, Run
    from nmt.search.beam import FinishedHypothesis
    from nmt.text.sentences import LineLimit


# ---- constraints -------------------------------------------------------------------------------------------
# What nmt-translate is told of each line: prefixes, and what translations must and must not contain.


LINE_FILES = (
    "prefix",
    "constraints",
    "avoid_lines",
)  # options of files with a line for each line of the input
WHOLE_TEXT = ("terms", "avoid")
CONSTRAINTS = (*LINE_FILES, *WHOLE_TEXT, "no_repeat_ngram")


def add_constraints(parser: "Container") -> None:
    """The options of constraints."""
    for name, what in (
        ("--terms", "terms and the translations that they must have, a tab between them"),
        ("--constraints", "phrases that the translation of each line must contain, tabs between them"),
        ("--avoid", "phrases that no translation may contain, one a line"),
        ("--avoid-lines", "phrases that the translation of each line may not contain, tabs between them"),
    ):
        parser.add_argument(name, type=InputPath, default=None, metavar="FILE", help=what)
    add_setting(parser, BeamConfig, "no_repeat_ngram")
    add_setting(parser, BeamConfig, "allocation")
    add_setting(parser, ConstraintConfig, "unmet")


def given_options(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Those of some options that have a value."""
    return [name for name in names if getattr(args, name)]


def paths_beside(args: argparse.Namespace) -> list[str]:
    """The files with a line for each line of the input."""
    return [getattr(args, name) for name in given_options(args, LINE_FILES)]


def check_line_files(args: argparse.Namespace) -> None:
    """DataError for files that have not a line for each line of the input."""
    if beside := paths_beside(args):
        files.check_parallel(args.input, *beside)


@dataclass
class TranslationBlock:
    """Lines that are translated together, with what belongs to each."""

    first: int  # number of the first line in the input, from 0
    lines: list[str]
    beside: dict[str, list[str]]  # by the name of the option

    @property
    def prefixes(self) -> list[str] | None:
        """The beginnings of the translations."""
        return self.beside.get("prefix")


def read_blocks(args: argparse.Namespace) -> Iterator[TranslationBlock]:
    """The lines of the input with those of the files beside it."""
    beside = given_options(args, LINE_FILES)
    rows = files.parallel(args.input, *paths_beside(args))
    first = 0
    while block := list(islice(rows, args.read_ahead)):
        lines, *others = (
            [unescape_line(line, args.escaped) for line in column] for column in zip(*block, strict=True)
        )
        if args.tag:
            lines = [f"{args.tag} {line}" for line in lines]
        yield TranslationBlock(first, lines, dict(zip(beside, others, strict=True)))
        first += len(lines)


def unescape_line(line: str, escaped: bool) -> str:
    """A line without escapes, its tabs kept."""
    if not escaped:
        return line
    return "\t".join(" ".join(map(unescape, files.split_words(part))) for part in line.split("\t"))


class GivenConstraints:
    """The constraints of one call. DataError for a term that cannot be required, with its line."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        from nmt.runs.constraints import ConstraintMaker, Constraints

        self.args = args
        self.by_line = bool(args.constraints or args.avoid_lines)
        self.maker: ConstraintMaker | None = None
        if not given_options(args, (*WHOLE_TEXT, *LINE_FILES[1:])):
            return
        avoid = [unescape_line(line, args.escaped) for line in read_phrases(args.avoid)] if args.avoid else []
        rows = [
            (where, unescape_line(term, args.escaped), unescape_line(target, args.escaped))
            for where, term, target in (glossary.rows_of(args.terms) if args.terms else ())
        ]
        constraints = Constraints(avoid=avoid, unmet=args.unmet)
        tokenized = args.tokenized or args.escaped
        self.maker = ConstraintMaker(run.members[0], constraints, tokenized, rows)

    def check_required(self) -> None:
        """Read those of single lines through, before the first line is translated. DataError for one that
        cannot be required."""
        if self.args.constraints and self.maker and self.maker.strict:
            for number, line in enumerate(files.preview(self.args.constraints)):
                self.maker.required(
                    split_phrases(unescape_line(line, self.args.escaped)), self.where("constraints", number)
                )

    def where(self, option: str, number: int) -> str:
        """The name of a line in messages: that of an option's file, if it has one, or of the input."""
        return f"{files.name_of(getattr(self.args, option) or self.args.input)}:{number + 1}"

    def of(self, block: TranslationBlock) -> "list[LineConstraints] | None":
        """The constraints of each line."""
        if self.maker is None:
            return None
        nothing = [""] * len(block.lines)
        required, avoided = (block.beside.get(name, nothing) for name in LINE_FILES[1:])
        return [
            self.maker.of(
                line, self.where("constraints", number), split_phrases(wanted), split_phrases(unwanted)
            )
            for number, (line, wanted, unwanted) in enumerate(
                zip(block.lines, required, avoided, strict=True), block.first
            )
        ]


def split_phrases(line: str) -> list[str]:
    """The phrases of a line."""
    return [field for field in line.split("\t") if field.strip(" ")]


def read_phrases(path: str) -> list[str]:
    """The phrases of a file, one a line; empty lines and those that begin with # are skipped."""
    return [line for line in files.read_lines(path) if line.strip() and not line.startswith("#")]


# ---- translator --------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)


def load_translator(args: argparse.Namespace) -> "LineTranslator":
    """The runs that the options name."""
    from nmt.runs.run import Run

    return LineTranslator(args, Run.of(*args.runs, which=args.checkpoint, device=args.device))


def search_settings(args: argparse.Namespace) -> tuple[BeamConfig, SamplingConfig]:
    """The settings of search and sampling."""
    beam = parse_settings(BeamConfig, args, allow_unknown=args.replace_unknown)
    return beam, parse_settings(SamplingConfig, args, samples=args.sample or 1)


class LineTranslator:
    """A run with the options of one call. ConfigError for options that it cannot follow, DataError for terms
    that cannot be required."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        self.args, self.run, self.warned = args, run, set[str]()
        self.constraints = GivenConstraints(args, run)
        # one translation per line, which may be made of parts
        whole = args.n_best or args.mbr or args.sample or args.prefix or args.alignments
        self.plain = not (whole or self.constraints.by_line)
        self.tokenized = args.tokenized or args.escaped
        if (args.replace_unknown or args.alignments) and not run.members[0].model.attends:
            raise ConfigError(
                f"{args.runs[0]}: has no attention, so it cannot tell which source word a word comes from; "
                "train with model.attention"
            )
        if args.tag:
            pipeline.check_tag(args.tag, run.members, args.input)
        self.beam, self.sampling = search_settings(args)
        self.unknown: Lexicon | None = None
        if args.replace_unknown:
            self.unknown = Lexicon.load(args.lexicon) if args.lexicon else Lexicon({})
        self.model = run.model
        if args.shortlist:
            self.model = run.shortlisted(Lexicon.load(args.shortlist), args.shortlist_frequent)
        self.reduced = options.precision_contexts(
            args.precision, [one.model for one in run.members], args.device
        )

    def models(self) -> list[Path]:
        """The files that translations depend on, besides the text."""
        args = self.args
        others = (args.shortlist, args.lexicon, args.terms, args.avoid)
        return self.run.files() + [Path(path) for path in others if path]

    def lines(self, block: TranslationBlock) -> Lines:
        """The lines that a block of the input adds to the output, and to the alignments if they are asked
        for."""
        from nmt.compute.precision import enter_all

        outputs: Lines = [[], []] if self.args.alignments else [[]]
        with enter_all(self.reduced):
            if self.args.split_sentences:
                text = self.run.split(block.lines)
                best = self.best(text.sentences, self.limit(block, text.numbers))
                return [text.join(self.run.text(found) for found in best)]
            for number, translations in enumerate(self.translate(block), block.first):
                outputs[0] += self.output(number, translations)
                if self.args.alignments:
                    outputs[1] += self.alignments(translations)
        return outputs

    def output(self, number: int, translations: "Sequence[BeamTranslation]") -> Iterator[str]:
        """The lines of the output for a line of the input, of which `number` counts from 0."""
        if self.args.n_best or ((self.args.sample or 0) > 1 and not self.args.mbr):
            yield from map(nbest.write, hypotheses(number, translations, self.args.escaped))
            return
        text = self.run.text(translations[0], self.tokenized)
        yield " ".join(map(escape, files.split_words(text))) if self.args.escaped else text

    def alignments(self, translations: "Sequence[BeamTranslation]") -> Iterator[str]:
        """The lines of the alignments for a line of the input."""
        for found in translations if self.args.n_best else translations[:1]:
            points = pipeline.without_tag(found.alignment) if self.args.tag else found.alignment
            yield " ".join(f"{source}-{target}" for source, target in points)

    def translate(self, block: TranslationBlock) -> "Iterator[list[BeamTranslation]]":
        """The translations of each line, best first (of draws: most probable first)."""
        lines, limit = block.lines, self.limit(block)
        if self.plain:
            yield from ([candidate] for candidate in self.best(lines, limit))
            return
        for line, candidates in zip(lines, self.candidates(block, limit), strict=True):
            found = [self.run.translation(line, one, self.tokenized, self.unknown) for one in candidates]
            yield [self.least_risk(found)] if self.args.mbr else found

    def best(self, lines: Sequence[str], limit: "LineLimit") -> "list[BeamTranslation]":
        """The translation of each line, or sentence, which may be made of parts."""
        maker = self.constraints.maker
        return self.run.best(lines, self.beam, self.tokenized, self.model, self.unknown, limit, maker)

    def least_risk(self, found: "Sequence[BeamTranslation]") -> "BeamTranslation":
        """The one of --mbr."""
        from nmt.runs.run import least_risk

        (scale,) = [0.0] if self.args.sample else self.args.mbr_scale or MBRConfig().mbr_scale
        return least_risk(found, self.args.mbr, scale)

    def candidates(self, block: TranslationBlock, limit: "LineLimit") -> "list[list[FinishedHypothesis]]":
        """The hypotheses, or draws, of each line, in the same order."""
        lines, tokenized = block.lines, self.tokenized
        if self.args.sample:
            drawn = self.run.sample(lines, self.sampling, tokenized, block.first, limit)
            return [sorted(candidates, key=lambda candidate: -candidate.log_prob) for candidates in drawn]
        wanted = self.constraints.of(block)
        found = self.run.search(lines, self.beam, tokenized, block.prefixes, self.model, limit, wanted)
        return found if self.args.mbr else [candidates[: self.args.n_best or 1] for candidates in found]

    def limit(self, block: TranslationBlock, numbers: Sequence[int] = ()) -> "LineLimit":
        """How long the lines of a block may be. `numbers`: of sentences, see Limit."""
        name = files.name_of(self.args.input)
        limit = self.run.source_lengths.limit(self.args.max_line_words, name, block.first)
        return replace(limit, numbers=numbers)

    def warn(self, block: TranslationBlock) -> None:
        """Log the first line of several sentences, which may lose some, lines that are translated in parts,
        and lines far longer than those of the training."""
        if self.args.split_sentences:
            text = self.run.split(block.lines)
            self.warn_of_length(text.sentences, self.limit(block, text.numbers))
            return
        limit = self.limit(block)
        self.warn_of_length(block.lines, limit)
        if self.plain and not self.tokenized and "sentences" not in self.warned:
            cut = (index for index, line in enumerate(self.run.split(block.lines).lines) if line.gaps)
            if (index := next(cut, None)) is not None:
                log.warning(
                    "%s: several sentences on a line, translated as one, of which some may be lost; give "
                    "--split-sentences, unless the training text has such lines",
                    limit.where(index),
                )
                self.warned.add("sentences")

    def warn_of_length(self, lines: Sequence[str], limit: "LineLimit") -> None:
        """Log what is too long, see `warn`."""
        seen = self.run.max_length
        for index, line in enumerate(lines):
            if len(line) < 10 * seen:
                continue
            words = self.run.source_lengths.of(line, self.tokenized, replace(limit, words=10 * seen))
            if words > limit.words and self.plain:
                if "parts" not in self.warned:
                    log.warning("%s", sentences.long_line_warning(limit.where(index), words, limit.words))
                self.warned.add("parts")
            elif words > 10 * seen:
                log.warning(
                    "%s: %s words, but the run has seen no more than %d in a sentence; "
                    "expect a poor translation, or split the line",
                    limit.where(index), f"{words:,}", seen,
                )  # fmt: skip


def hypotheses(
    sentence: int, translations: "Sequence[BeamTranslation]", escaped: bool
) -> Iterator[nbest.Hypothesis]:
    """NMT0 is log p, the total what the list is ordered by."""
    for found in translations:
        words = list(map(escape, found.words)) if escaped else found.words
        yield nbest.Hypothesis(
            sentence=sentence, words=words, features={"NMT0": [found.log_prob]}, total=found.score
        )
