"""nmt-translate: raw text in, detokenized text out, line for line, as a filter."""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import arguments, constraints, options
from nmt.cli.arguments import Input, Output, add_setting, settings_of
from nmt.cli.constraints import Block
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.search.config import BeamConfig, MBRConfig, SamplingConfig
from nmt.text import long_lines, tags
from nmt.text.escapes import escape
from nmt.text.lexicon import Lexicon

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.runs.run import Run
    from nmt.runs.translation import BeamTranslation
    from nmt.search.beam import Candidate
    from nmt.text.long_lines import Limit

log = logging.getLogger(__name__)

READ_AHEAD = 200  # lines sorted by length and searched together


def main(argv: Sequence[str] | None = None) -> int:
    """The command's exit status."""
    return options.run(command, argv)


# ---- options -----------------------------------------------------------------------------------------------


def parser() -> options.Parser:
    """The options of nmt-translate."""
    parser = options.Parser(
        "nmt-translate",
        "Translate text with a trained run, or with several as an ensemble: one line in, one line out, in "
        "order.",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Input,
        metavar="RUN_DIR",
        help="run directories made by nmt-train; an ensemble shares its target vocabulary",
    )
    options.add_compute(parser)
    options.add_precision(parser)
    options.add_input_output(parser, "source text")
    options.add_max_line_words(
        parser,
        "are translated in parts, or refused for a list or alignments",
        ", or what the training allowed if that is more",
    )
    add_text(parser.add_argument_group("text"))
    add_search(parser.add_argument_group("search"))
    constraints.add_options(parser.add_argument_group("constraints"))
    add_sampling(parser.add_argument_group("sampling"))
    add_attention(parser.add_argument_group("unknown words and alignment (models with attention)"))
    options.add_quiet(parser)
    return parser


def add_text(parser: "Container") -> None:
    """Options of how lines are read."""
    parser.add_argument(
        "--tokenized",
        action="store_true",
        help="input is tokenized as the run's text was; output stays tokenized",
    )
    parser.add_argument(
        "--escaped",
        action="store_true",
        help="as --tokenized, for text with Moses' escapes (&apos; ...), which the output has too",
    )
    parser.add_argument("--tag", help="a tag of the training corpora, such as <2fr>, put before each line")
    parser.add_argument(
        "--read-ahead",
        type=arguments.positive,
        default=READ_AHEAD,
        metavar="LINES",
        help="lines translated together; 1 answers each line at once",
    )


def add_search(parser: "Container") -> None:
    """Options of the beam search."""
    add_setting(parser, BeamConfig, "beam_size", "-b")
    parser.add_argument(
        "--n-best",
        type=arguments.positive,
        default=None,
        metavar="K",
        help="write the K best in Moses' format, as tokenized words",
    )
    add_setting(parser, MBRConfig, "mbr", default=None)
    add_setting(parser, MBRConfig, "mbr_scale", nargs=1, default=None, metavar="A")
    add_setting(parser, BeamConfig, "normalize")
    add_setting(parser, BeamConfig, "max_length_factor", metavar="F")
    add_setting(parser, BeamConfig, "min_length_factor", metavar="F")
    add_setting(parser, BeamConfig, "max_length")
    add_setting(parser, BeamConfig, "min_length")
    parser.add_argument(
        "--prefix",
        type=Input,
        default=None,
        metavar="FILE",
        help="text that the translation of each line has to begin with, line by line",
    )
    parser.add_argument(
        "--shortlist",
        type=Input,
        default=None,
        metavar="LEX",
        help="only words that this table (Moses' lex.f2e) gives for a sentence: faster, but results change",
    )
    parser.add_argument(
        "--shortlist-frequent",
        type=arguments.positive,
        default=100,
        metavar="N",
        help="and the N most frequent words",
    )


def add_sampling(parser: "Container") -> None:
    """Options of sampling."""
    parser.add_argument(
        "--sample",
        type=arguments.positive,
        default=None,
        metavar="N",
        help="draw N translations instead of searching; n-best format where N > 1",
    )
    add_setting(parser, SamplingConfig, "temperature", metavar="T")
    add_setting(parser, SamplingConfig, "seed")


def add_attention(parser: "Container") -> None:
    """Options that need a model with attention."""
    parser.add_argument(
        "--replace-unknown",
        action="store_true",
        help="let UNK be produced, then replace it by the source word that the model attended to",
    )
    parser.add_argument(
        "--lexicon",
        type=Input,
        default=None,
        metavar="LEX",
        help="with --replace-unknown: a translation of that word (Moses' lex.f2e) where there is one",
    )
    parser.add_argument(
        "--alignments",
        type=Output,
        default=None,
        metavar="FILE",
        help="write source-target word pairs of each line, 0-0 1-2 ..., by greatest attention",
    )


# ---- the command -------------------------------------------------------------------------------------------


def command(argv: Sequence[str] | None) -> None:
    """Parse, translate, write."""
    args = parser().parse_args(argv)
    options.start_log("nmt-translate", args)
    total = check(args)
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.runs[0])
    from nmt.runs.run import SEARCHED, Run

    run = Run.of(*args.runs, which=args.checkpoint, device=args.device)
    work = Work(args, run)
    if not work.plain:  # before the first line is translated
        lengths = run.source_lengths
        limit = lengths.limit(args.max_line_words, args.input)
        lengths.refuse(files.preview(args.input), work.tokenized, limit, SEARCHED)
    with options.products(args.precision, [member.model for member in run.members], args.device) as stack:
        out = stack.enter_context(files.Writing(args.output))
        alignments = stack.enter_context(files.Writing(args.alignments)) if args.alignments else None
        progress = stack.enter_context(options.progress(args, "lines", total, set_up))
        for block in constraints.blocks(args):
            for number, translations in enumerate(work.translate(block), block.first):
                out.write_lines(work.output(number, translations))
                if alignments:
                    alignments.write_lines(work.alignments(translations))
            out.flush()
            progress.add(len(block.lines))


def check(args: argparse.Namespace) -> int:
    """Before any work: ConfigError for options that exclude each other, DataError for text that cannot be
    read. Returns the number of lines, 0 for a stream."""
    if args.n_best and args.n_best > args.beam_size:
        raise ConfigError(
            f"--n-best {args.n_best} is more than --beam-size {args.beam_size}; make the beam at least as "
            "large"
        )
    names = ("n_best", "shortlist", "replace_unknown", *constraints.NAMES)
    if args.sample and constraints.given(args, names):
        wrong = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise ConfigError(f"--sample goes with none of {wrong}")
    if args.mbr and args.n_best:
        raise ConfigError("--mbr writes one translation, chosen from the whole beam; leave --n-best out")
    if args.mbr_scale and (args.sample or not args.mbr):
        raise ConfigError("--mbr-scale goes with --mbr, and not with --sample, whose draws count alike")
    if args.lexicon and not args.replace_unknown:
        raise ConfigError("--lexicon goes with --replace-unknown; for a short-list give --shortlist LEX")
    for config in searching(args):
        config.check()
    lines = files.check_text(args.input)
    constraints.check(args)
    return lines


def searching(args: argparse.Namespace) -> tuple[BeamConfig, SamplingConfig]:
    """The settings of search and sampling."""
    beam = settings_of(BeamConfig, args, allow_unknown=args.replace_unknown)
    return beam, settings_of(SamplingConfig, args, samples=args.sample or 1)


class Work:
    """A run with the options of one call."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        self.args, self.run, self.warned = args, run, False
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
        lines, name = block.lines, files.name_of(self.args.input)
        limit = self.run.source_lengths.limit(self.args.max_line_words, name, block.first)
        self.warn_of_long_lines(lines, limit)
        if self.plain:
            maker = self.constraints.maker
            best = self.run.best(lines, self.beam, self.tokenized, self.model, self.unknown, limit, maker)
            yield from ([found] for found in best)
            return
        for line, candidates in zip(lines, self.candidates(block, limit), strict=True):
            found = [self.run.translation(line, one, self.tokenized, self.unknown) for one in candidates]
            yield [self.least_risk(found)] if self.args.mbr else found

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

    def warn_of_long_lines(self, lines: list[str], limit: "Limit") -> None:
        """Log lines that are translated in parts, and lines far longer than those of the training."""
        seen = self.run.max_length
        for index, line in enumerate(lines):
            if len(line) < 10 * seen:
                continue
            words = self.run.source_lengths.of(line, self.tokenized, replace(limit, words=10 * seen))
            if words > limit.words and self.plain:
                if not self.warned:
                    log.warning("%s", long_lines.warning(limit.where(index), words, limit.words))
                self.warned = True
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


if __name__ == "__main__":
    sys.exit(main())
