"""smt-decode: translate with a hybrid system, or with a phrase-based model in the file formats of Moses."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice, tee
from typing import TYPE_CHECKING

from nmt.cli import jobs, options
from nmt.cli.arguments import InputPath, OutputPath, check_separate, positive
from nmt.cli.jobs import TextJob
from nmt.errors import ConfigError
from nmt.io import files
from nmt.io.progress import rate_of
from nmt.text.sentences import SplitLine
from nmt.work.executors import ExecutorConfig
from nmt.work.texts import FinishedChunk, TextChunk
from smt_bridge.cli import decoding
from smt_bridge.cli.decoding import LineBlock, PhraseTranslator, load_hybrid, make_decoder, split_lines
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.moses import ini as moses_ini

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.xml_input import MarkedLine

log = logging.getLogger(__name__)

BLOCK = 50  # lines of a job that are translated together

# Options of outputs besides the translations.
OUTPUTS = {
    "n_best_list": "write an n-best list in Moses' format, with segmentation and alignment; its words are "
    "those of the model, even for raw text; .gz compresses",
    "alignments": "write the alignment of each translation: points source-target between words of the model",
    "explain": "write a table (TSV) of what each phrase adds to the total: value x weight of each feature",
    "source_words": "write the source side as words of the model, to which lists, alignments and "
    "explanations refer",
    "target_words": "write the target side as words of the model",
}


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-decode", args)
    if args.resume and decoding.uses_threads(args):
        raise ConfigError("--resume: not possible with threads; give --executor processes or --cluster")
    sentences = files.check_text(args.input)
    hybrid = load_hybrid(args)
    if hybrid:
        args = parse_with_defaults(hybrid, argv)
        if args.verify:
            folder.verify(hybrid)
    elif args.verify:
        raise ConfigError(
            f"--verify: {args.model} has no {folder.FILE} with checksums; --verify is for the folder of a "
            "hybrid system"
        )
    if args.split_sentences:
        check_split(args)
    decoder = open_decoder(args, hybrid)
    check_markup(decoder, args, hybrid)
    translate(decoder, args, sentences)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-decode",
        "Translate line by line with a phrase-based model or a hybrid system. A phrase-based model is a "
        "folder made by smt-train, or a moses.ini with its tables; it translates tokenized text. A hybrid "
        "system is a folder with a system.json; it translates raw text.",
    )
    parser.add_argument(
        "model",
        type=InputPath,
        metavar="SYSTEM_DIR|MODEL_DIR|INI",
        help="folder, or moses.ini; relative paths in a moses.ini are looked up in the current folder, then "
        "beside it (in a hybrid system only beside it)",
    )
    options.add_input_output(parser, "raw text for a system, tokenized (and escaped) text for a model")
    options.add_split_sentences(parser, options.flags(tuple(OUTPUTS)))
    for name, what in OUTPUTS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=OutputPath, metavar="FILE", default=None, help=what)
    parser.add_argument(
        "--n-best", type=positive, default=100, metavar="K", help="size of the n-best list of a sentence"
    )
    parser.add_argument(
        "--distinct", action="store_true", help="list only different texts, from the best 20 x K derivations"
    )
    parser.add_argument(
        "--glossary",
        type=InputPath,
        metavar="FILE",
        default="",
        help="a term, a tab and its required translation on each line; default: the glossary of the hybrid "
        "system",
    )
    parser.add_argument(
        "--weights",
        "-w",
        type=InputPath,
        metavar="FILE",
        default=None,
        help="weights that replace those of the ini: lines 'Name= v v', or another moses.ini",
    )
    parser.add_argument(
        "--verify", action="store_true", help="first verify the checksums of all files of a hybrid system"
    )
    decoding.add_search(parser)
    jobs.add_resume(parser)
    options.add_quiet(parser)
    return parser


def check_split(args: argparse.Namespace) -> None:
    """ConfigError for a model or options that do not go with --split-sentences."""
    if wrong := [name for name in OUTPUTS if getattr(args, name)]:
        raise ConfigError(
            f"--split-sentences does not go with {options.flags(wrong)}, which apply to whole lines; split "
            "the text beforehand"
        )
    if not folder.is_hybrid(args.model):
        raise ConfigError(
            f"--split-sentences: {args.model} reads tokenized text; give the folder of a hybrid system, "
            "which reads raw text"
        )


def parse_with_defaults(hybrid: Hybrid, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options again, with the hybrid system's own settings as defaults of the search options."""
    own_parser = parser()
    own_parser.set_defaults(**hybrid.config.search)
    return own_parser.parse_args(argv)


def open_decoder(args: argparse.Namespace, hybrid: Hybrid | None) -> "Decoder":
    """Load the decoder that the options describe. ConfigError for an output that is part of the model."""
    from smt_bridge.decoder.system import ini_of

    outputs = [(f"--{name.replace('_', '-')}", getattr(args, name) or "") for name in ("output", *OUTPUTS)]
    if hybrid:
        parts = [("MODEL", str(hybrid.folder / name)) for name in (folder.FILE, *hybrid.parts)]
        check_separate(parts, outputs)
    ini = moses_ini.read(hybrid.ini if hybrid else ini_of(args.model))
    decoding.check_tables(ini, outputs, beside=bool(hybrid))
    return make_decoder(args, ini, hybrid)


def check_markup(decoder: "Decoder", args: argparse.Namespace, hybrid: Hybrid | None) -> None:
    """Check the markup of the input, unless it is a stream, before hours of work. ConfigError for
    --split-sentences with markup, whose tags may span sentences."""
    policy = decoder.markup.policy
    if args.split_sentences and policy != "pass-through":
        raise ConfigError(
            f"--split-sentences does not go with --xml-input {policy}, whose tags may span sentences"
        )
    for number, line in enumerate(split_lines(args, hybrid, files.preview(args.input)), 1):
        for sentence in line.sentences:
            decoder.marked(sentence, f"{args.input}:{number}")


def translate(decoder: "Decoder", args: argparse.Namespace, sentences: int) -> None:
    """Translate the input, which has `sentences` lines (0: unknown), and write all outputs."""
    args.cache = args.cache and os.path.abspath(args.cache)  # for other processes
    work = PhraseTranslator(args, decoder, load_hybrid(args))
    threads = decoding.uses_threads(args)
    job = TextJob(args, "smt-decode", [args.input], ExecutorConfig() if threads else None)
    paths = [args.output, *(getattr(args, name) for name in OUTPUTS if getattr(args, name))]
    with (
        job.lock(),
        translate_input(work, args, job if not threads else None) as chunks,
        job.open_outputs(paths, flush=args.input == "-") as write,
        options.progress(args, "sentences", sentences) as progress,
    ):
        for done in chunks:
            write(done)
            jobs.advance(progress, done)
    log.info("%s sentences, %s", f"{progress.done:,}", rate_of(progress.rate))


@contextmanager
def translate_input(
    work: PhraseTranslator, args: argparse.Namespace, job: TextJob | None
) -> Iterator[Iterator[FinishedChunk]]:
    """Yield the translated chunks of the input in order: single lines translated by threads, or with `job`
    blocks of lines."""
    name = files.name_of(args.input)
    lines, texts, numbered = tee(split_lines(args, work.hybrid, files.read_lines(args.input)), 3)
    sentences = (sentence for line in texts for sentence in line.sentences)
    numbers = (number for number, line in enumerate(numbered, 1) for _ in line.sentences)
    if job is None:
        with closing(work.decoder.translate_all(sentences, args.workers, name, numbers)) as results:
            yield (
                FinishedChunk(1, work.outputs(number, line, results), earlier=False)
                for number, line in enumerate(lines)
            )
        return
    ini = decoding.absolute_ini(work.decoder.system.ini, bool(work.hybrid))
    with job.run(partial(decoding.load_translator, ini=ini), work) as compute:
        yield compute(cut_chunks(lines, work.decoder.all_marked(sentences, name, numbers)))


def cut_chunks(lines: Iterator[SplitLine], marked: "Iterator[MarkedLine]") -> Iterator[TextChunk[LineBlock]]:
    """Cut lines into chunks. `marked`: the parsed sentences of all lines."""
    first = 0
    while block := list(islice(lines, BLOCK)):
        size = sum(len(line.sentences) for line in block)
        yield TextChunk(first, len(block), LineBlock(first, block, list(islice(marked, size))))
        first += len(block)


if __name__ == "__main__":
    sys.exit(main())
