"""smt-decode: translate with a phrase-based model in Moses' files, without Moses, or with a hybrid system."""

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
from nmt.work.config import ExecutorConfig
from nmt.work.texts import FinishedChunk, TextChunk
from smt_bridge.cli import decoding
from smt_bridge.cli.decoding import LineBlock, PhraseTranslator, decoder_of, hybrid_of, split_lines
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.moses import ini as moses_ini

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.xml_input import Marked

log = logging.getLogger(__name__)

BLOCK = 50  # lines of a job that are translated together

# Options of files that are written besides the translations.
OUTPUTS = {
    "n_best_list": "Moses-format list with segmentation and alignment; of raw text, too, it has the words of "
    "the model; .gz compresses",
    "alignments": "alignment of each translation: points source-target between the words of the model",
    "explain": "table of what each phrase adds to the total: value x weight of every feature; tabs between "
    "columns",
    "source_words": "the words of the model on the source side: what lists, alignments and explanations "
    "count",
    "target_words": "the same on the target side",
}


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-decode", args)
    if args.resume and decoding.in_threads(args):
        raise ConfigError("--resume: threads keep no finished lines; give --cluster, or --executor processes")
    sentences = files.check_text(args.input)
    hybrid = hybrid_of(args)
    if hybrid:
        args = with_defaults(hybrid, argv)
        if args.verify:
            folder.verify(hybrid)
    elif args.verify:
        raise ConfigError(
            f"--verify: {args.model} has no {folder.FILE} with checksums; it is for the folder of a hybrid "
            "system"
        )
    if args.split_sentences:
        check_split(args)
    decoder = load(args, hybrid)
    check_markup(decoder, args, hybrid)
    translate(decoder, args, sentences)


def parser() -> options.Parser:
    made = options.Parser(
        "smt-decode",
        "Translate with a phrase-based model or a hybrid system. A model is a folder of smt-train, or a "
        "moses.ini with its tables; it reads and writes tokenized text. A hybrid system is a folder with a "
        "system.json; it reads and writes raw text. A line in, a line out.",
    )
    made.add_argument(
        "model",
        type=InputPath,
        metavar="SYSTEM_DIR|MODEL_DIR|INI",
        help="a folder, or a moses.ini; relative paths in it are tried from here, then beside it; those of a "
        "system only beside it",
    )
    options.add_input_output(made, "raw text for a system, tokenized (and escaped) text for a model")
    options.add_split_sentences(made, options.flags(tuple(OUTPUTS)))
    for name, what in OUTPUTS.items():
        flag = f"--{name.replace('_', '-')}"
        made.add_argument(flag, type=OutputPath, metavar="FILE", default=None, help=what)
    made.add_argument(
        "--n-best", type=positive, default=100, metavar="K", help="entries of a sentence in the list"
    )
    made.add_argument(
        "--distinct", action="store_true", help="list different texts only, of the best 20 x K derivations"
    )
    made.add_argument(
        "--glossary",
        type=InputPath,
        metavar="FILE",
        default="",
        help="terms and the translations they must have, a tab between them; default: the system's, if it "
        "has one",
    )
    made.add_argument(
        "--weights",
        "-w",
        type=InputPath,
        metavar="FILE",
        default=None,
        help="lines 'Name= v v' or another ini, instead of the ini's weights",
    )
    made.add_argument(
        "--verify", action="store_true", help="compare the checksums of all files of a system first"
    )
    decoding.add_search(made)
    jobs.add_resume(made)
    options.add_quiet(made)
    return made


def check_split(args: argparse.Namespace) -> None:
    """ConfigError for a model or options that cannot do with sentences."""
    if wrong := [name for name in OUTPUTS if getattr(args, name)]:
        raise ConfigError(
            f"--split-sentences does not go with {options.flags(wrong)}, which speak of a whole line; split "
            "the text beforehand"
        )
    if not folder.is_hybrid(args.model):
        raise ConfigError(
            f"--split-sentences: {args.model} reads tokenized text; give the folder of a hybrid system, "
            "which reads raw text"
        )


def with_defaults(hybrid: Hybrid, argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, those of the search by default as the system has them."""
    made = parser()
    made.set_defaults(**hybrid.config.search)
    return made.parse_args(argv)


def load(args: argparse.Namespace, hybrid: Hybrid | None) -> "Decoder":
    """The decoder that the options ask for. ConfigError for an output that is a part of the model."""
    from smt_bridge.decoder.system import ini_of

    given = [(f"--{name.replace('_', '-')}", getattr(args, name) or "") for name in ("output", *OUTPUTS)]
    if hybrid:
        parts = [("MODEL", str(hybrid.folder / name)) for name in (folder.FILE, *hybrid.parts)]
        check_separate(parts, given)
    ini = moses_ini.read(hybrid.ini if hybrid else ini_of(args.model))
    decoding.check_tables(ini, given, beside=bool(hybrid))
    return decoder_of(args, ini, hybrid)


def check_markup(decoder: "Decoder", args: argparse.Namespace, hybrid: Hybrid | None) -> None:
    """Read a regular file through once, so that a mistake in its markup is reported before hours of work.
    ConfigError where tags are no words, but may span sentences."""
    policy = decoder.markup.policy
    if args.split_sentences and policy != "pass-through":
        raise ConfigError(
            f"--split-sentences does not go with --xml-input {policy}, whose tags may span sentences"
        )
    for number, line in enumerate(split_lines(args, hybrid, files.preview(args.input)), 1):
        for sentence in line.sentences:
            decoder.marked(sentence, f"{args.input}:{number}")


def translate(decoder: "Decoder", args: argparse.Namespace, sentences: int) -> None:
    """Translate the input of so many lines (0: unknown); write translations, lists and tables."""
    args.cache = args.cache and os.path.abspath(args.cache)  # for other processes
    work = PhraseTranslator(args, decoder, hybrid_of(args))
    threads = decoding.in_threads(args)
    job = TextJob(args, "smt-decode", [args.input], ExecutorConfig() if threads else None)
    paths = [args.output, *(getattr(args, name) for name in OUTPUTS if getattr(args, name))]
    with (
        job.lock(),
        translated(work, args, job if not threads else None) as chunks,
        job.open_outputs(paths, flush=args.input == "-") as write,
        options.progress(args, "sentences", sentences) as progress,
    ):
        for done in chunks:
            write(done)
            jobs.advance(progress, done)
    log.info("%s sentences, %s", f"{progress.done:,}", rate_of(progress.rate))


@contextmanager
def translated(
    work: PhraseTranslator, args: argparse.Namespace, job: TextJob | None
) -> Iterator[Iterator[FinishedChunk]]:
    """What becomes of the input, in order: line by line by threads, or in blocks by a job."""
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
    ini = decoding.elsewhere(work.decoder.system.ini, bool(work.hybrid))
    with job.run(partial(decoding.load_translator, ini=ini), work) as compute:
        yield compute(blocks(lines, work.decoder.all_marked(sentences, name, numbers)))


def blocks(lines: Iterator[SplitLine], marked: "Iterator[Marked]") -> Iterator[TextChunk[LineBlock]]:
    """Lines that are translated together, with the next sentences of `marked`."""
    first = 0
    while block := list(islice(lines, BLOCK)):
        size = sum(len(line.sentences) for line in block)
        yield TextChunk(first, len(block), LineBlock(first, block, list(islice(marked, size))))
        first += len(block)


if __name__ == "__main__":
    sys.exit(main())
