"""What nmt-translate computes: blocks of lines in, the lines of its outputs out."""

import argparse
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import constraints, options
from nmt.cli.arguments import settings_of
from nmt.cli.constraints import Block
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.jobs.texts import Lines
from nmt.search.config import BeamConfig, MBRConfig, SamplingConfig
from nmt.text import long_lines, tags
from nmt.text.escapes import escape
from nmt.text.lexicon import Lexicon

if TYPE_CHECKING:
    from nmt.runs.run import Run
    from nmt.runs.translation import BeamTranslation
    from nmt.search.beam import Candidate
    from nmt.text.long_lines import Limit

log = logging.getLogger(__name__)


def load(args: argparse.Namespace) -> "Translator":
    """The runs that the options name."""
    from nmt.runs.run import Run

    return Translator(args, Run.of(*args.runs, which=args.checkpoint, device=args.device))


def searching(args: argparse.Namespace) -> tuple[BeamConfig, SamplingConfig]:
    """The settings of search and sampling."""
    beam = settings_of(BeamConfig, args, allow_unknown=args.replace_unknown)
    return beam, settings_of(SamplingConfig, args, samples=args.sample or 1)


class Translator:
    """A run with the options of one call. ConfigError for options that it cannot follow, DataError for terms
    that cannot be required."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        self.args, self.run, self.warned = args, run, set[str]()
        self.constraints = constraints.GivenConstraints(args, run)
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
            tags.check(args.tag, run.members, args.input)
        self.beam, self.sampling = searching(args)
        self.unknown: Lexicon | None = None
        if args.replace_unknown:
            self.unknown = Lexicon.load(args.lexicon) if args.lexicon else Lexicon({})
        self.model = run.model
        if args.shortlist:
            self.model = run.shortlisted(Lexicon.load(args.shortlist), args.shortlist_frequent)
        self.reduced = options.reduced(args.precision, [one.model for one in run.members], args.device)

    def models(self) -> list[Path]:
        """The files that translations depend on, besides the text."""
        args = self.args
        others = (args.shortlist, args.lexicon, args.terms, args.avoid)
        return self.run.files() + [Path(path) for path in others if path]

    def lines(self, block: Block) -> Lines:
        """The lines that a block of the input adds to the output, and to the alignments if they are asked
        for."""
        from nmt.compute.reduced import entered

        outputs: Lines = [[], []] if self.args.alignments else [[]]
        with entered(self.reduced):
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
            points = tags.of_line(found.alignment) if self.args.tag else found.alignment
            yield " ".join(f"{source}-{target}" for source, target in points)

    def translate(self, block: Block) -> "Iterator[list[BeamTranslation]]":
        """The translations of each line, best first (of draws: most probable first)."""
        lines, limit = block.lines, self.limit(block)
        if self.plain:
            yield from ([translation] for translation in self.best(lines, limit))
            return
        for line, candidates in zip(lines, self.candidates(block, limit), strict=True):
            found = [self.run.translation(line, one, self.tokenized, self.unknown) for one in candidates]
            yield [self.least_risk(found)] if self.args.mbr else found

    def best(self, lines: Sequence[str], limit: "Limit") -> "list[BeamTranslation]":
        """The translation of each line, or sentence, which may be made of parts."""
        maker = self.constraints.maker
        return self.run.best(lines, self.beam, self.tokenized, self.model, self.unknown, limit, maker)

    def least_risk(self, found: "Sequence[BeamTranslation]") -> "BeamTranslation":
        """The one of --mbr."""
        from nmt.runs import translation

        (scale,) = [0.0] if self.args.sample else self.args.mbr_scale or MBRConfig().mbr_scale
        return translation.least_risk(found, self.args.mbr, scale)

    def candidates(self, block: Block, limit: "Limit") -> "list[list[Candidate]]":
        """The hypotheses, or draws, of each line, in the same order."""
        lines, tokenized = block.lines, self.tokenized
        if self.args.sample:
            drawn = self.run.sample(lines, self.sampling, tokenized, block.first, limit)
            return [sorted(candidates, key=lambda candidate: -candidate.log_prob) for candidates in drawn]
        wanted = self.constraints.of(block)
        found = self.run.search(lines, self.beam, tokenized, block.prefixes, self.model, limit, wanted)
        return found if self.args.mbr else [candidates[: self.args.n_best or 1] for candidates in found]

    def limit(self, block: Block, numbers: Sequence[int] = ()) -> "Limit":
        """How long the lines of a block may be. `numbers`: of sentences, see Limit."""
        name = files.name_of(self.args.input)
        limit = self.run.source_lengths.limit(self.args.max_line_words, name, block.first)
        return replace(limit, numbers=numbers)

    def warn(self, block: Block) -> None:
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

    def warn_of_length(self, lines: Sequence[str], limit: "Limit") -> None:
        """Log what is too long, see `warn`."""
        seen = self.run.max_length
        for index, line in enumerate(lines):
            if len(line) < 10 * seen:
                continue
            words = self.run.source_lengths.of(line, self.tokenized, replace(limit, words=10 * seen))
            if words > limit.words and self.plain:
                if "parts" not in self.warned:
                    log.warning("%s", long_lines.warning(limit.where(index), words, limit.words))
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
