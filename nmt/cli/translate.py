"""nmt-translate: raw text in, detokenized text out, line for line, as a filter."""

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import arguments, documents, jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, add_settings, parse_settings
from nmt.cli.jobs import TextJob
from nmt.cli.translation_input import (
    CONSTRAINTS,
    InputConstraints,
    TranslationBlock,
    add_constraints,
    check_line_files,
    given_options,
    read_blocks,
    side_files,
)
from nmt.documents.inline import AlignedTranslation
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.io import files
from nmt.runs.run import FREQUENT, SEARCHED, BeamTranslation, Run, TranslationRequest
from nmt.search import FinishedHypothesis
from nmt.search.config import BEAM_SIZE, MOST_BEAM, BeamConfig, MBRConfig, SamplingConfig
from nmt.text import pipeline, sentences
from nmt.text.lexicon import Lexicon
from nmt.text.sentences import LineLimit
from nmt.text.tokenize import escape
from nmt.work.text_chunks import Lines, TextChunk

if TYPE_CHECKING:
    from nmt.cli.arguments import Container


# ---- translator --------------------------------------------------------------------------------------------
# The translator turns blocks of lines, with their prefixes and constraints, into lines of the outputs.

log = logging.getLogger(__name__)


def load_translator(args: argparse.Namespace) -> "LineTranslator":
    """Load the runs that the options name, as a translator of lines. Also called in worker processes. Errors
    as from `Run.of` and `LineTranslator`."""
    run = Run.of(*args.runs, which=args.checkpoint, device=args.device, threads=args.threads or 0)
    return LineTranslator(args, run.for_text(args.tokenized or args.escaped))


def search_settings(args: argparse.Namespace) -> tuple[BeamConfig, SamplingConfig]:
    return parse_settings(BeamConfig, args), parse_settings(SamplingConfig, args, samples=args.sample or 1)


class LineTranslator:
    """A run with the options of a command. ConfigError for options that the run does not support, DataError
    for terms that cannot be required."""

    def __init__(self, args: argparse.Namespace, run: Run) -> None:
        self.args, self.run = args, run
        self.constraints = InputConstraints(args, run)
        whole_lines = args.n_best or args.mbr or args.sample or args.prefix or args.alignments or args.json
        # whether lines that are too long may be translated in parts
        self.in_parts = not (whole_lines or self.constraints.by_line)
        if (args.replace_unknown or args.alignments) and not run.attends:
            raise ConfigError(
                f"{args.runs[0]}: has no attention, and does not know which source word a word comes from; "
                "train with model.attention"
            )
        if args.tag:
            pipeline.check_tag(args.tag, [(run.name, run.source) for run in run.members], args.input)
        self.beam, self.sampling = search_settings(args)
        if args.replace_unknown:
            lexicon = Lexicon.load(args.lexicon) if args.lexicon else Lexicon({})
            self.run = self.run.replacing_unknown(lexicon)
        if args.shortlist:
            self.run = self.run.shortlisted(Lexicon.load(args.shortlist), args.shortlist_frequent)
        self.precision = options.precision_contexts(args.precision, run.modules, args.device)

    def models(self) -> list[Path]:
        """The files, besides the input, on which translations depend."""
        args = self.args
        paths = (args.shortlist, args.lexicon, args.terms, args.avoid)
        return self.run.files() + [Path(path) for path in paths if path]

    def lines(self, block: TranslationBlock) -> Lines:
        """Translate a block; returns its lines of the output and, with --alignments, of the alignments."""
        outputs: Lines = [[], []] if self.args.alignments else [[]]
        with options.enter_all(self.precision):
            if self.args.split_sentences:
                text = self.run.split(block.lines)
                best = self.best(text.sentences, self.limit(block, text.numbers))
                return [text.join(map(self.run.text, best))]
            for number, translations in enumerate(self.translate(block), block.first):
                outputs[0] += self.output(number, translations)
                if self.args.alignments:
                    outputs[1] += self.alignments(translations)
        return outputs

    def output(self, number: int, translations: Sequence[BeamTranslation]) -> Iterator[str]:
        """Yield the lines of the output for line `number` of the input, counted from 0."""
        several = self.args.n_best or ((self.args.sample or 0) > 1 and not self.args.mbr)
        if self.args.json:
            rows = [self.fields(translation) for translation in translations]
            yield json.dumps(rows if several else rows[0], ensure_ascii=False)
        elif several:
            yield from map(nbest.write, hypotheses(number, translations, self.args.escaped))
        else:
            yield self.text(translations[0])

    def text(self, translation: BeamTranslation) -> str:
        """The line of the output for a translation."""
        text = self.run.text(translation)
        return " ".join(map(escape, files.split_words(text))) if self.args.escaped else text

    def fields(self, translation: BeamTranslation) -> dict[str, object]:
        """The fields of a translation for --json; log p is natural."""
        return {
            "text": self.text(translation), "words": translation.words, "log_prob": translation.log_prob,
            "score": translation.score, "alignment": self.points(translation),
        }  # fmt: skip

    def points(self, translation: BeamTranslation) -> list[tuple[int, int]]:
        """The word alignment of a translation, without the tag that --tag put before the source."""
        return list(pipeline.without_tag(translation.alignment)) if self.args.tag else translation.alignment

    def alignments(self, translations: Sequence[BeamTranslation]) -> Iterator[str]:
        """Yield the lines of --alignments for a line of the input."""
        for translation in translations if self.args.n_best else translations[:1]:
            yield " ".join(f"{source}-{target}" for source, target in self.points(translation))

    def translate(self, block: TranslationBlock) -> Iterator[list[BeamTranslation]]:
        """Yield the translations of each line, best first; samples are ordered by probability."""
        if self.in_parts:
            yield from ([translation] for translation in self.best(block.lines, self.limit(block)))
            return
        prefixes = block.side_lines.get("prefix") or [""] * len(block.lines)
        for line, candidates, prefix in zip(block.lines, self.candidates(block), prefixes, strict=True):
            translations = [self.run.translation(line, candidate, prefix) for candidate in candidates]
            yield [self.least_risk(translations)] if self.args.mbr else translations

    def best(self, lines: Sequence[str], limit: LineLimit) -> list[BeamTranslation]:
        """Compute the best translation of each line or sentence; long ones are translated in parts."""
        return self.run.best(lines, self.beam, limit, self.constraints.maker)

    def least_risk(self, translations: Sequence[BeamTranslation]) -> BeamTranslation:
        """Choose the translation with minimum Bayes risk."""
        from nmt.search.mbr import least_risk

        (scale,) = [0.0] if self.args.sample else self.args.mbr_scale or MBRConfig().mbr_scale
        return least_risk(translations, self.args.mbr, scale)

    def candidates(self, block: TranslationBlock) -> list[list[FinishedHypothesis]]:
        """Search or sample; returns the candidates of each line, best first: for --mbr the whole beam."""
        request = self.request(block)
        if self.args.sample:
            samples = self.run.sample(request, self.sampling)
            return [sorted(candidates, key=lambda candidate: -candidate.log_prob) for candidates in samples]
        lists = self.run.search(request, self.beam)
        return lists if self.args.mbr else [candidates[: self.args.n_best or 1] for candidates in lists]

    def request(self, block: TranslationBlock) -> TranslationRequest:
        """Build the request to translate a block whose lines are not split into parts."""
        attention = self.args.alignments or self.args.replace_unknown or (self.args.json and self.run.attends)
        return TranslationRequest(
            block.lines,
            prefixes=block.side_lines.get("prefix", ()),
            constraints=self.constraints.for_block(block),
            limit=self.limit(block),
            attention=bool(attention),
        )

    def limit(self, block: TranslationBlock, numbers: Sequence[int] = ()) -> LineLimit:
        """The limit on the length of a block's lines, which also names them in messages. `numbers`: the line
        number of each sentence, if lines are split into sentences; see LineLimit."""
        name = files.name_of(self.args.input)
        limit = self.run.source_lengths.limit(self.args.max_line_words, name, block.first)
        return replace(limit, numbers=numbers)


class InputWarnings:
    """Logs warnings about lines that may be translated badly."""

    def __init__(self, work: LineTranslator) -> None:
        self.work, self.warned = work, set[str]()

    def warn(self, block: TranslationBlock) -> None:
        """Warn once about lines of several sentences, some of which may be lost, and once about lines that
        are translated in parts. Warn of every line that is far longer than those in training."""
        work, run = self.work, self.work.run
        if work.args.split_sentences:
            text = run.split(block.lines)
            self.warn_of_length(text.sentences, work.limit(block, text.numbers))
            return
        limit = work.limit(block)
        self.warn_of_length(block.lines, limit)
        if work.in_parts and not run.tokenized and "sentences" not in self.warned:
            split = (index for index, line in enumerate(run.split(block.lines).lines) if line.gaps)
            if (index := next(split, None)) is not None:
                log.warning(
                    "%s: several sentences on a line, translated as one; some of them may be lost. Use "
                    "--split-sentences, unless the training text has such lines",
                    limit.location(index),
                )
                self.warned.add("sentences")

    def warn_of_length(self, lines: Sequence[str], limit: LineLimit) -> None:
        """Warn of lines that are too long; see `warn`."""
        longest_seen = self.work.run.max_length
        for index, line in enumerate(lines):
            if len(line) < 10 * longest_seen:
                continue
            words = self.work.run.source_lengths.count_units(line, replace(limit, words=10 * longest_seen))
            if words > limit.words and self.work.in_parts:
                if "parts" not in self.warned:
                    log.warning("%s", sentences.long_line_warning(limit.location(index), words, limit.words))
                self.warned.add("parts")
            elif words > 10 * longest_seen:
                log.warning(
                    "%s: %s words, but sentences in training had at most %d; expect a poor translation, or "
                    "split the line",
                    limit.location(index), f"{words:,}", longest_seen,
                )  # fmt: skip


def hypotheses(
    sentence: int, translations: Sequence[BeamTranslation], escaped: bool
) -> Iterator[nbest.Hypothesis]:
    """Yield entries of the n-best list of sentence number `sentence`. `escaped`: write Moses' escapes.
    Feature NMT0 is natural log p; the total is the score that orders the list."""
    for translation in translations:
        words = list(map(escape, translation.words)) if escaped else translation.words
        yield nbest.Hypothesis(
            sentence=sentence, words=words, features={"NMT0": [translation.log_prob]}, total=translation.score
        )


# ---- options -----------------------------------------------------------------------------------------------


# Options that apply to whole lines, or to lines that cannot be split into sentences.
WHOLE_LINES = "tokenized escaped n_best mbr sample prefix alignments constraints avoid_lines json".split()
# Documents are always split into sentences.
NOT_OF_DOCUMENTS = (*WHOLE_LINES, "split_sentences", "resume", "cluster")
READ_AHEAD = 200  # lines that are sorted by length and searched together


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-translate",
        "Translate text line by line with a trained run, or with several runs as an ensemble. Translations "
        "come in the order of the input, one line for each.",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=InputPath,
        metavar="RUN_DIR",
        help="run directories made by nmt-train; the runs of an ensemble need the same target vocabulary",
    )
    options.add_compute(parser)
    options.add_precision(parser)
    options.add_input_output(parser, "source text")
    documents.add_options(parser)
    options.add_max_line_words(
        parser,
        "are translated in parts, or refused with n-best lists, alignments and the like",
        ", or what the training allowed if that is more",
    )
    add_text(parser.add_argument_group("text"))
    add_search(parser.add_argument_group("search"))
    add_constraints(parser.add_argument_group("constraints"))
    add_sampling(parser.add_argument_group("sampling"))
    add_attention(parser.add_argument_group("unknown words and alignment (models with attention)"))
    jobs.add_options(parser.add_argument_group("jobs"))
    options.add_quiet(parser)
    return parser


def add_text(parser: "Container") -> None:
    parser.add_argument(
        "--tokenized",
        action="store_true",
        help="the input is tokenized like the training text; the output is left tokenized",
    )
    parser.add_argument(
        "--escaped",
        action="store_true",
        help="as --tokenized, for text with Moses' escapes (&apos; ...), which the output gets too",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="write a JSON object for each line: text, words, log_prob, score, alignment (of models with "
        "attention); for lists and samples, an array of them",
    )
    options.add_split_sentences(parser, options.flags(WHOLE_LINES))
    parser.add_argument("--tag", help="put a tag of the training corpora, such as <2fr>, before each line")
    parser.add_argument(
        "--read-ahead",
        type=arguments.positive,
        default=READ_AHEAD,
        metavar="LINES",
        help="lines that are sorted by length and translated together; 1 answers each line at once",
    )


def add_search(parser: "Container") -> None:
    add_setting(
        parser,
        BeamConfig,
        "beam_size",
        "-b",
        default=None,
        help=f"hypotheses kept after each word; default: {BEAM_SIZE}, or K of --n-best if that is more",
    )
    parser.add_argument(
        "--n-best",
        type=arguments.positive,
        metavar="K",
        help="write the K best translations in Moses' n-best format, as tokenized words",
    )
    add_setting(parser, MBRConfig, "mbr", default=None)
    add_setting(parser, MBRConfig, "mbr_scale", nargs=1, default=None, metavar="A")
    add_settings(parser, BeamConfig, "normalize", "ended")
    add_setting(parser, BeamConfig, "max_length_factor", metavar="F")
    add_setting(parser, BeamConfig, "min_length_factor", metavar="F")
    add_settings(parser, BeamConfig, "max_length", "min_length")
    parser.add_argument(
        "--prefix",
        type=InputPath,
        metavar="FILE",
        help="text with which the translation of each line has to begin, line by line",
    )
    parser.add_argument(
        "--shortlist",
        type=InputPath,
        metavar="LEX",
        help="search only among words that this lexical table (Moses' lex.f2e) gives for a sentence: faster, "
        "but results change",
    )
    parser.add_argument(
        "--shortlist-frequent",
        type=arguments.positive,
        default=FREQUENT,
        metavar="N",
        help="with --shortlist: and among the N most frequent words",
    )


def add_sampling(parser: "Container") -> None:
    parser.add_argument(
        "--sample",
        type=arguments.positive,
        metavar="N",
        help="draw N random translations instead of searching; in n-best format if N > 1",
    )
    add_setting(parser, SamplingConfig, "temperature", metavar="T")
    add_setting(parser, SamplingConfig, "top_k", metavar="K")
    add_setting(parser, SamplingConfig, "top_p", metavar="P")
    add_setting(parser, SamplingConfig, "seed")


def add_attention(parser: "Container") -> None:
    parser.add_argument(
        "--replace-unknown",
        action="store_true",
        help="allow unknown words in translations, and replace each by the source word with the greatest "
        "attention",
    )
    parser.add_argument(
        "--lexicon",
        type=InputPath,
        metavar="LEX",
        help="with --replace-unknown: translate that source word by this lexical table (Moses' lex.f2e)",
    )
    parser.add_argument(
        "--alignments",
        type=OutputPath,
        metavar="FILE",
        help="write the word alignment of each line, 0-0 1-2 ..., from the greatest attention of each target "
        "word",
    )


# ---- the command -------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    total = check_options(args)
    if args.document:
        translate_document(args)
        return
    job = TextJob(args, "nmt-translate", [args.input, *side_files(args)])
    with job.lock():
        translate(args, job, total)


def translate(args: argparse.Namespace, job: TextJob, total: int) -> None:
    """Load the runs, translate the input, write the translations. `total`: lines, 0 for a stream."""
    set_up = job.set_up_torch(args.runs[0])
    work = load_translator(args)
    work.constraints.check_required()
    if not work.in_parts:  # before the first line is translated
        lengths = work.run.source_lengths
        limit = lengths.limit(args.max_line_words, args.input)
        lengths.refuse(files.preview(args.input), limit, SEARCHED)
    paths = [args.output, *([args.alignments] if args.alignments else [])]
    with (
        job.run(load_translator, work) as compute,
        job.open_outputs(paths) as write,
        options.progress(args, "lines", total, set_up) as progress,
    ):
        for done in compute(chunks(args, work)):
            write(done)
            jobs.advance(progress, done)


def translate_document(args: argparse.Namespace) -> None:
    """Load the runs, translate the document and write it. ConfigError for several workers."""
    job = TextJob(args, "nmt-translate", [args.document])
    if job.is_remote:
        raise ConfigError("--document is translated by one process; leave out --workers and --executor")
    document = documents.read_document(args)
    set_up = job.set_up_torch(args.runs[0])
    work = load_translator(args)
    document.set_languages(*work.run.members[0].languages)
    warnings = InputWarnings(work)
    words = work.run.source_lengths.limit(args.max_line_words).words
    limit = documents.SentenceLimit(words, files.name_of(args.document))

    def translate(lines: Sequence[str], first: int) -> Sequence[AlignedTranslation]:
        located = replace(limit, first=first)
        warnings.warn_of_length(lines, located)
        with options.enter_all(work.precision):
            return work.run.best_aligned(lines, work.beam, located, work.constraints.maker, args.tag or "")

    documents.translate_document(args, document, work.run.split, translate, args.read_ahead, set_up)


def chunks(args: argparse.Namespace, work: LineTranslator) -> Iterator[TextChunk[TranslationBlock]]:
    """Cut the input into blocks that are translated together."""
    warnings = InputWarnings(work)
    for block in read_blocks(args):
        warnings.warn(block)
        yield TextChunk(block.first, len(block.lines), block)


def check_options(args: argparse.Namespace) -> int:
    """Check options and texts before any work, and set `args.beam_size` if it is missing; returns the number
    of lines, 0 for a stream. ConfigError for options that exclude each other, DataError for text that cannot
    be read."""
    args.beam_size = args.beam_size or min(max(BEAM_SIZE, args.n_best or 1), MOST_BEAM)
    if args.n_best and args.n_best > args.beam_size:
        raise ConfigError(
            f"--n-best {args.n_best} is more than --beam-size {args.beam_size}; increase the beam size"
        )
    names = ("n_best", "shortlist", "replace_unknown", *CONSTRAINTS)
    if args.sample and given_options(args, names):
        raise ConfigError(f"--sample cannot be combined with any of {options.flags(names)}")
    if args.split_sentences and (wrong := given_options(args, WHOLE_LINES)):
        raise ConfigError(
            f"--split-sentences cannot be combined with {options.flags(wrong)}, which apply to whole lines; "
            "split the text beforehand"
        )
    if args.mbr and args.n_best:
        raise ConfigError("--mbr writes one translation, chosen from the whole beam; leave --n-best out")
    if args.mbr_scale and (args.sample or not args.mbr):
        raise ConfigError("--mbr-scale requires --mbr, and excludes --sample: samples have equal weights")
    if args.lexicon and not args.replace_unknown:
        raise ConfigError("--lexicon requires --replace-unknown; to restrict the search use --shortlist LEX")
    documents.check_options(args, NOT_OF_DOCUMENTS)
    options.refuse_exported(args, args.runs, ("shortlist", "terms", "constraints", "avoid", "avoid_lines"))
    for config in search_settings(args):
        config.check()
    if args.document:
        files.existing([args.document])
        return 0
    lines = files.count_lines(args.input)
    check_line_files(args)
    return lines


if __name__ == "__main__":
    sys.exit(main())
