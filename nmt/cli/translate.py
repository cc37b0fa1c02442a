"""nmt-translate: raw text in, detokenized text out, line for line, as a filter."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nmt.cli import arguments, jobs, options, translator
from nmt.cli.arguments import InputPath, OutputPath, add_setting
from nmt.cli.jobs import TextJob
from nmt.cli.translator import LineTranslator, TranslationBlock
from nmt.errors import ConfigError
from nmt.io import files
from nmt.search.config import BEAM_SIZE, MOST_BEAM, BeamConfig, MBRConfig, SamplingConfig
from nmt.work.texts import TextChunk

if TYPE_CHECKING:
    from nmt.cli.arguments import Container

# Options that apply to whole lines, or to lines that cannot be split into sentences.
WHOLE_LINES = (
    "tokenized", "escaped", "n_best", "mbr", "sample", "prefix", "alignments", "constraints", "avoid_lines",
)  # fmt: skip
READ_AHEAD = 200  # lines sorted by length and searched together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


# ---- options -----------------------------------------------------------------------------------------------


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
    options.add_max_line_words(
        parser,
        "are translated in parts, or refused with n-best lists, alignments and the like",
        ", or what the training allowed if that is more",
    )
    add_text(parser.add_argument_group("text"))
    add_search(parser.add_argument_group("search"))
    translator.add_constraints(parser.add_argument_group("constraints"))
    add_sampling(parser.add_argument_group("sampling"))
    add_attention(parser.add_argument_group("unknown words and alignment (models with attention)"))
    jobs.add_options(parser.add_argument_group("jobs"))
    options.add_quiet(parser)
    return parser


def add_text(parser: "Container") -> None:
    """Add the options of how lines are read."""
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
    """Add the options of beam search."""
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
        default=None,
        metavar="K",
        help="write the K best translations in Moses' n-best format, as tokenized words",
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
        type=InputPath,
        default=None,
        metavar="FILE",
        help="text with which the translation of each line has to begin, line by line",
    )
    parser.add_argument(
        "--shortlist",
        type=InputPath,
        default=None,
        metavar="LEX",
        help="search only among words that this lexical table (Moses' lex.f2e) gives for a sentence: faster, "
        "but results change",
    )
    parser.add_argument(
        "--shortlist-frequent",
        type=arguments.positive,
        default=100,
        metavar="N",
        help="with --shortlist: and among the N most frequent words",
    )


def add_sampling(parser: "Container") -> None:
    parser.add_argument(
        "--sample",
        type=arguments.positive,
        default=None,
        metavar="N",
        help="draw N random translations instead of searching; in n-best format if N > 1",
    )
    add_setting(parser, SamplingConfig, "temperature", metavar="T")
    add_setting(parser, SamplingConfig, "seed")


def add_attention(parser: "Container") -> None:
    """Add the options that need a model with attention."""
    parser.add_argument(
        "--replace-unknown",
        action="store_true",
        help="allow unknown words in translations, and replace each by the source word with the greatest "
        "attention",
    )
    parser.add_argument(
        "--lexicon",
        type=InputPath,
        default=None,
        metavar="LEX",
        help="with --replace-unknown: translate that source word by this lexical table (Moses' lex.f2e)",
    )
    parser.add_argument(
        "--alignments",
        type=OutputPath,
        default=None,
        metavar="FILE",
        help="write the word alignment of each line, 0-0 1-2 ..., from the greatest attention of each target "
        "word",
    )


# ---- the command -------------------------------------------------------------------------------------------


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-translate", args)
    total = check_options(args)
    job = TextJob(args, "nmt-translate", [args.input, *translator.side_files(args)])
    with job.lock():
        translate(args, job, total)


def translate(args: argparse.Namespace, job: TextJob, total: int) -> None:
    """Load the runs, translate the input and write the translations."""
    set_up = job.set_up_torch(args.runs[0])
    from nmt.runs.run import SEARCHED

    work = translator.load_translator(args)
    work.constraints.check_required()
    if not work.in_parts:  # before the first line is translated
        lengths = work.run.source_lengths
        limit = lengths.limit(args.max_line_words, args.input)
        lengths.refuse(files.preview(args.input), limit, SEARCHED)
    paths = [args.output, *([args.alignments] if args.alignments else [])]
    with (
        job.run(translator.load_translator, work) as compute,
        job.open_outputs(paths) as write,
        options.progress(args, "lines", total, set_up) as progress,
    ):
        for done in compute(chunks(args, work)):
            write(done)
            jobs.advance(progress, done)


def chunks(args: argparse.Namespace, work: LineTranslator) -> Iterator[TextChunk[TranslationBlock]]:
    """Cut the input into blocks that are translated together."""
    for block in translator.read_blocks(args):
        work.warn(block)
        yield TextChunk(block.first, len(block.lines), block)


def check_options(args: argparse.Namespace) -> int:
    """Check options and texts before any work; returns the number of lines, 0 for a stream. ConfigError for
    options that exclude each other, DataError for text that cannot be read."""
    args.beam_size = args.beam_size or min(max(BEAM_SIZE, args.n_best or 1), MOST_BEAM)
    if args.n_best and args.n_best > args.beam_size:
        raise ConfigError(
            f"--n-best {args.n_best} is more than --beam-size {args.beam_size}; increase the beam size"
        )
    names = ("n_best", "shortlist", "replace_unknown", *translator.CONSTRAINTS)
    if args.sample and translator.given_options(args, names):
        raise ConfigError(f"--sample does not go with any of {options.flags(names)}")
    if args.split_sentences and (wrong := translator.given_options(args, WHOLE_LINES)):
        raise ConfigError(
            f"--split-sentences does not go with {options.flags(wrong)}, which apply to whole lines; split "
            "the text beforehand"
        )
    if args.mbr and args.n_best:
        raise ConfigError("--mbr writes one translation, chosen from the whole beam; leave --n-best out")
    if args.mbr_scale and (args.sample or not args.mbr):
        raise ConfigError("--mbr-scale goes with --mbr, and not with --sample: samples have equal weights")
    if args.lexicon and not args.replace_unknown:
        raise ConfigError("--lexicon goes with --replace-unknown; to restrict the search use --shortlist LEX")
    for config in translator.search_settings(args):
        config.check()
    lines = files.check_text(args.input)
    translator.check_line_files(args)
    return lines


if __name__ == "__main__":
    sys.exit(main())
