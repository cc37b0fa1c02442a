"""The translator of nmt-translate: it turns blocks of lines, with their prefixes and constraints, into lines
of the outputs."""

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
    from nmt.runs.run import BeamTranslation, Run, TranslationRequest
    from nmt.search.beam import FinishedHypothesis
    from nmt.text.sentences import LineLimit


# ---- input, with prefixes and constraints ------------------------------------------------------------------


LINE_FILES = ("prefix", "constraints", "avoid_lines")  # options of files parallel to the input
WHOLE_TEXT = ("terms", "avoid")  # options of files for all lines
CONSTRAINTS = (*LINE_FILES, *WHOLE_TEXT, "no_repeat_ngram")


def add_constraints(parser: "Container") -> None:
    for name, help_text in (
        ("--terms", "glossary: a term, a tab and its required translation on each line"),
        ("--constraints", "phrases that the translation of each line must contain, separated by tabs"),
        ("--avoid", "phrases that no translation may contain, one on each line"),
        ("--avoid-lines", "phrases that the translation of each line may not contain, separated by tabs"),
    ):
        parser.add_argument(name, type=InputPath, default=None, metavar="FILE", help=help_text)
    add_setting(parser, BeamConfig, "no_repeat_ngram")
    add_setting(parser, BeamConfig, "allocation")
    add_setting(parser, ConstraintConfig, "unmet")


def given_options(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """The names of those options that have a value."""
    return [name for name in names if getattr(args, name)]


def side_files(args: argparse.Namespace) -> list[str]:
    """Paths of the files parallel to the input."""
    return [getattr(args, name) for name in given_options(args, LINE_FILES)]


def check_line_files(args: argparse.Namespace) -> None:
    """DataError for a file that should be parallel to the input but is not."""
    if paths := side_files(args):
        files.check_parallel(args.input, *paths)


@dataclass
class TranslationBlock:
    """Lines that are translated together, with the corresponding lines of parallel files."""

    first: int  # number of the first line in the input, from 0
    lines: list[str]
    side_lines: dict[str, list[str]]  # by name of the option


def read_blocks(args: argparse.Namespace) -> Iterator[TranslationBlock]:
    """Read the input and the files parallel to it in blocks, unescaped, and with --tag before each line."""
    names = given_options(args, LINE_FILES)
    rows = files.parallel(args.input, *side_files(args))
    first = 0
    while block := list(islice(rows, args.read_ahead)):
        lines, *others = (
            [unescape_line(line, args.escaped) for line in column] for column in zip(*block, strict=True)
        )
        if args.tag:
            lines = [f"{args.tag} {line}" for line in lines]
        yield TranslationBlock(first, lines, dict(zip(names, others, strict=True)))
        first += len(lines)


def unescape_line(line: str, escaped: bool) -> str:
    """Undo Moses' escapes in a line; its tabs stay."""
    if not escaped:
        return line
    return "\t".join(" ".join(map(unescape, files.split_words(part))) for part in line.split("\t"))


class InputConstraints:
    """The constraints of all lines. DataError, with its line, for a term that cannot be required."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        from nmt.runs.constraints import ConstraintMaker, Constraints

        self.args = args
        self.by_line = bool(args.constraints or args.avoid_lines)
        self.maker: ConstraintMaker | None = None
        if not given_options(args, (*WHOLE_TEXT, *LINE_FILES[1:])):
            return
        avoid = [unescape_line(line, args.escaped) for line in read_phrases(args.avoid)] if args.avoid else []
        rows = [
            (location, unescape_line(term, args.escaped), unescape_line(target, args.escaped))
            for location, term, target in (glossary.rows_of(args.terms) if args.terms else ())
        ]
        constraints = Constraints(avoid=avoid, unmet=args.unmet)
        self.maker = ConstraintMaker(run.members[0], constraints, rows)

    def check_required(self) -> None:
        """Check the constraints of single lines before the first one is translated. DataError for a phrase
        that cannot be required."""
        if self.args.constraints and self.maker and self.maker.strict:
            for number, line in enumerate(files.preview(self.args.constraints)):
                self.maker.required(
                    split_phrases(unescape_line(line, self.args.escaped)), self.where("constraints", number)
                )

    def where(self, option: str, number: int) -> str:
        """`file:line` for messages, in the file of an option if there is one, else in the input."""
        return f"{files.name_of(getattr(self.args, option) or self.args.input)}:{number + 1}"

    def for_block(self, block: TranslationBlock) -> "list[LineConstraints]":
        """The constraints of each line; empty without any."""
        if self.maker is None:
            return []
        no_phrases = [""] * len(block.lines)
        required, avoided = (block.side_lines.get(name, no_phrases) for name in LINE_FILES[1:])
        return [
            self.maker.of(
                line,
                self.where("constraints", number),
                split_phrases(required_line),
                split_phrases(avoid_line),
            )
            for number, (line, required_line, avoid_line) in enumerate(
                zip(block.lines, required, avoided, strict=True), block.first
            )
        ]


def split_phrases(line: str) -> list[str]:
    """The phrases between the tabs of a line."""
    return [field for field in line.split("\t") if field.strip(" ")]


def read_phrases(path: str) -> list[str]:
    """Read phrases, one a line; empty lines and lines that begin with # are skipped."""
    return [line for line in files.read_lines(path) if line.strip() and not line.startswith("#")]


# ---- translator --------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)


def load_translator(args: argparse.Namespace) -> "LineTranslator":
    """Load the runs that the options name."""
    from nmt.runs.run import Run

    run = Run.of(*args.runs, which=args.checkpoint, device=args.device)
    return LineTranslator(args, run.for_text(args.tokenized or args.escaped))


def search_settings(args: argparse.Namespace) -> tuple[BeamConfig, SamplingConfig]:
    """The settings of search and of sampling."""
    beam = parse_settings(BeamConfig, args, allow_unknown=args.replace_unknown)
    return beam, parse_settings(SamplingConfig, args, samples=args.sample or 1)


class LineTranslator:
    """A run with the options of a command. ConfigError for options that the run does not support, DataError
    for terms that cannot be required."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        self.args, self.run, self.warned = args, run, set[str]()
        self.constraints = InputConstraints(args, run)
        whole = args.n_best or args.mbr or args.sample or args.prefix or args.alignments
        # whether long lines may be translated in parts
        self.in_parts = not (whole or self.constraints.by_line)
        if (args.replace_unknown or args.alignments) and not run.members[0].model.attends:
            raise ConfigError(
                f"{args.runs[0]}: has no attention, and does not know which source word a word comes from; "
                "train with model.attention"
            )
        if args.tag:
            pipeline.check_tag(args.tag, run.members, args.input)
        self.beam, self.sampling = search_settings(args)
        self.unknown: Lexicon | None = None
        if args.replace_unknown:
            self.unknown = Lexicon.load(args.lexicon) if args.lexicon else Lexicon({})
        if args.shortlist:
            self.run = run.shortlisted(Lexicon.load(args.shortlist), args.shortlist_frequent)
        models = [member.model for member in run.members]
        self.precision = options.precision_contexts(args.precision, models, args.device)

    def models(self) -> list[Path]:
        """The files, besides the input, that translations depend on."""
        args = self.args
        paths = (args.shortlist, args.lexicon, args.terms, args.avoid)
        return self.run.files() + [Path(path) for path in paths if path]

    def lines(self, block: TranslationBlock) -> Lines:
        """Translate a block: the lines that it adds to the output, and with --alignments to these."""
        from nmt.compute.precision import enter_all

        outputs: Lines = [[], []] if self.args.alignments else [[]]
        with enter_all(self.precision):
            if self.args.split_sentences:
                text = self.run.split(block.lines)
                best = self.best(text.sentences, self.limit(block, text.numbers))
                return [text.join(map(self.run.text, best))]
            for number, translations in enumerate(self.translate(block), block.first):
                outputs[0] += self.output(number, translations)
                if self.args.alignments:
                    outputs[1] += self.alignments(translations)
        return outputs

    def output(self, number: int, translations: "Sequence[BeamTranslation]") -> Iterator[str]:
        """Lines of the output for line `number` of the input, counted from 0."""
        if self.args.n_best or ((self.args.sample or 0) > 1 and not self.args.mbr):
            yield from map(nbest.write, hypotheses(number, translations, self.args.escaped))
            return
        text = self.run.text(translations[0])
        yield " ".join(map(escape, files.split_words(text))) if self.args.escaped else text

    def alignments(self, translations: "Sequence[BeamTranslation]") -> Iterator[str]:
        """Lines of --alignments for a line of the input."""
        for translation in translations if self.args.n_best else translations[:1]:
            points = pipeline.without_tag(translation.alignment) if self.args.tag else translation.alignment
            yield " ".join(f"{source}-{target}" for source, target in points)

    def translate(self, block: TranslationBlock) -> "Iterator[list[BeamTranslation]]":
        """The translations of each line, best first; samples most probable first."""
        if self.in_parts:
            yield from ([translation] for translation in self.best(block.lines, self.limit(block)))
            return
        for line, candidates in zip(block.lines, self.candidates(block), strict=True):
            translations = [self.run.translation(line, candidate, self.unknown) for candidate in candidates]
            yield [self.least_risk(translations)] if self.args.mbr else translations

    def best(self, lines: Sequence[str], limit: "LineLimit") -> "list[BeamTranslation]":
        """The best translation of each line or sentence; long ones are translated in parts."""
        return self.run.best(lines, self.beam, self.unknown, limit, self.constraints.maker)

    def least_risk(self, translations: "Sequence[BeamTranslation]") -> "BeamTranslation":
        """The translation of minimum Bayes risk."""
        from nmt.runs.run import least_risk

        (scale,) = [0.0] if self.args.sample else self.args.mbr_scale or MBRConfig().mbr_scale
        return least_risk(translations, self.args.mbr, scale)

    def candidates(self, block: TranslationBlock) -> "list[list[FinishedHypothesis]]":
        """The hypotheses or samples of each line, best first; all hypotheses of the beam for --mbr."""
        request = self.request(block)
        if self.args.sample:
            samples = self.run.sample(request, self.sampling)
            return [sorted(candidates, key=lambda candidate: -candidate.log_prob) for candidates in samples]
        lists = self.run.search(request, self.beam)
        return lists if self.args.mbr else [candidates[: self.args.n_best or 1] for candidates in lists]

    def request(self, block: TranslationBlock) -> "TranslationRequest":
        """What is asked of the translations of a block whose lines are not cut into parts."""
        from nmt.runs.run import TranslationRequest

        return TranslationRequest(
            block.lines,
            prefixes=block.side_lines.get("prefix", ()),
            constraints=self.constraints.for_block(block),
            limit=self.limit(block),
        )

    def limit(self, block: TranslationBlock, numbers: Sequence[int] = ()) -> "LineLimit":
        """The longest line of a block, with the names of its lines. `numbers`: line numbers of sentences, see
        LineLimit."""
        name = files.name_of(self.args.input)
        limit = self.run.source_lengths.limit(self.args.max_line_words, name, block.first)
        return replace(limit, numbers=numbers)

    def warn(self, block: TranslationBlock) -> None:
        """Log once for each kind: a line of several sentences, of which some may be lost; a line translated
        in parts. Log every line that is far longer than those of the training."""
        if self.args.split_sentences:
            text = self.run.split(block.lines)
            self.warn_of_length(text.sentences, self.limit(block, text.numbers))
            return
        limit = self.limit(block)
        self.warn_of_length(block.lines, limit)
        if self.in_parts and not self.run.tokenized and "sentences" not in self.warned:
            split = (index for index, line in enumerate(self.run.split(block.lines).lines) if line.gaps)
            if (index := next(split, None)) is not None:
                log.warning(
                    "%s: several sentences on a line, translated as one; some of them may be lost. Use "
                    "--split-sentences, unless the training text has such lines",
                    limit.location(index),
                )
                self.warned.add("sentences")

    def warn_of_length(self, lines: Sequence[str], limit: "LineLimit") -> None:
        """Log lines that are too long; see `warn`."""
        longest_seen = self.run.max_length
        for index, line in enumerate(lines):
            if len(line) < 10 * longest_seen:
                continue
            words = self.run.source_lengths.of(line, replace(limit, words=10 * longest_seen))
            if words > limit.words and self.in_parts:
                if "parts" not in self.warned:
                    log.warning("%s", sentences.long_line_warning(limit.location(index), words, limit.words))
                self.warned.add("parts")
            elif words > 10 * longest_seen:
                log.warning(
                    "%s: %s words, but the longest sentence of the training had %d; expect a poor "
                    "translation, or split the line",
                    limit.location(index), f"{words:,}", longest_seen,
                )  # fmt: skip


def hypotheses(
    sentence: int, translations: "Sequence[BeamTranslation]", escaped: bool
) -> Iterator[nbest.Hypothesis]:
    """Entries of an n-best list: feature NMT0 is log p, the total is the score that orders the list."""
    for translation in translations:
        words = list(map(escape, translation.words)) if escaped else translation.words
        yield nbest.Hypothesis(
            sentence=sentence, words=words, features={"NMT0": [translation.log_prob]}, total=translation.score
        )
