"""smt-decode: translate with a hybrid system, or with a phrase-based model in the file formats of Moses."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import documents, jobs, options
from nmt.cli.arguments import InputPath, OutputPath, check_separate, positive
from nmt.cli.jobs import TextJob
from nmt.errors import ConfigError
from nmt.io import files
from nmt.io.progress import format_rate
from nmt.search.config import BeamConfig
from nmt.text import glossary, sentences
from nmt.text.sentences import SplitLine
from nmt.work.executors import ExecutorConfig
from nmt.work.text_chunks import FinishedChunk, TextChunk
from nmt.work.text_chunks import Lines as OutputLines
from smt_bridge.cli import decoding
from smt_bridge.cli.decoding import load_decoder, longest_line
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import Ini, read_weights

if TYPE_CHECKING:
    from nmt.documents.inline import AlignedTranslation
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines, PhraseTranslation
    from smt_bridge.decoder.xml_input import MarkedLine

    Writer = Callable[[int, PhraseTranslation], Iterable[str]]  # number of a line, from 0 -> lines of a file

log = logging.getLogger(__name__)

BEST, FAST = "best", "fast"  # of --quality
WITH_FAST = (  # options that the fast model has, too
    "model", "quality", "input", "output", "max_line_words", "workers", "split_sentences", "verify", "quiet",
    "log", "document", "document_format",
)  # fmt: skip
FAST_BLOCK = 200  # lines that the fast model sorts by length and translates together
NOT_OF_DOCUMENTS = ("split_sentences", "resume", "cluster")
N_BEST = 100  # size of the n-best list of a sentence
BLOCK = 50  # lines of a job that are translated together

# Options of further outputs, besides the translations.
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
    own_parser = parser()
    args = options.parse(own_parser, argv)
    if args.resume and decoding.uses_threads(args):
        raise ConfigError("--resume: not possible with threads; give --executor processes or --cluster")
    if not args.n_best_list:
        options.refuse_alone(own_parser, args, ("n_best", "distinct"), "--n-best-list FILE")
    documents.check_options(args, (*OUTPUTS, *NOT_OF_DOCUMENTS))
    if args.document:
        files.existing([args.document])
    line_count = 0 if args.document else files.count_lines(args.input)
    hybrid = load_hybrid(args)
    if args.quality == FAST:
        translate_fast(args, hybrid, line_count)
        return
    if hybrid:
        own_parser.set_defaults(**hybrid.config.search)
        args = own_parser.parse_args(argv)
        if args.verify:
            folder.verify(hybrid)
    elif args.verify:
        verify_model(args.model)
    if args.split_sentences:
        check_split(args)
    if args.document:
        translate_document(own_parser, args, hybrid)
        return
    decoder = open_decoder(own_parser, args, hybrid)
    check_markup(decoder, args, hybrid)
    translate(decoder, args, line_count)


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
        help="folder, or moses.ini; relative paths in a moses.ini are looked up beside it, then in the "
        "current folder",
    )
    options.add_input_output(parser, "raw text for a system, tokenized (and escaped) text for a model")
    documents.add_options(parser)
    options.add_split_sentences(parser, options.flags(tuple(OUTPUTS)))
    parser.add_argument(
        "--quality",
        choices=(BEST, FAST),
        default=BEST,
        help="fast: translate with the student of a hybrid system (smt-build --student), or else with its "
        "attention model alone, as nmt-translate does; no glossary and no option of the search",
    )
    for name, what in OUTPUTS.items():
        parser.add_argument(options.flags([name]), type=OutputPath, metavar="FILE", default=None, help=what)
    parser.add_argument(
        "--n-best", type=positive, default=None, metavar="K",
        help=f"with --n-best-list: size of the list of a sentence; default: {N_BEST}",
    )  # fmt: skip
    parser.add_argument(
        "--distinct", action="store_true",
        help="with --n-best-list: only different texts, from the best 20 x K derivations, or n-best-factor x "
        "K of the ini",
    )  # fmt: skip
    parser.add_argument(
        "--glossary",
        type=InputPath,
        metavar="FILE",
        default="",
        help="a term, a tab and its required translation on each line; default: that of the hybrid system",
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
        "--verify",
        action="store_true",
        help="first verify the checksums of a hybrid system, or of tables of smt-compile",
    )
    decoding.add_search(parser)
    jobs.add_resume(parser)
    options.add_quiet(parser)
    return parser


def translate_fast(args: argparse.Namespace, hybrid: Hybrid | None, line_count: int) -> None:
    """Translate the input, which has `line_count` lines (0: unknown), with the fast model of a hybrid system.
    ConfigError for a system without one, for options that it does not have, and for an output that is part of
    the system."""
    if hybrid is None:
        raise ConfigError(f"--quality fast: {args.model} is not the folder of a hybrid system")
    path, defaults = folder.fast_run(hybrid), vars(parser().parse_args([args.model]))
    wrong = [name for name, value in vars(args).items() if value != defaults[name] and name not in WITH_FAST]
    if wrong:
        raise ConfigError(f"--quality fast cannot be combined with {options.flags(wrong[:1])}; leave it out")
    check_separate(system_parts(hybrid), [("--output", args.output)])
    if args.verify:
        folder.verify(hybrid)
    if hybrid.glossary:
        log.warning("--quality fast does not use the system's glossary")
    from nmt.runs.run import Run

    if args.document:
        translate_document_fast(args, path)
        return
    run, lines = Run.load(path, threads=args.workers), files.read_lines(args.input)
    with files.Writing(args.output) as out, options.progress(args, "lines", line_count) as progress:
        while block := list(islice(lines, FAST_BLOCK)):
            out.write_lines(
                run.translate(block, max_line_words=args.max_line_words, split_sentences=args.split_sentences)
            )
            progress.add(len(block))
    log.info("%s lines, %s", f"{progress.done:,}", format_rate(progress.rate))


def translate_document_fast(args: argparse.Namespace, path: str) -> None:
    """Translate a document with the fast model of a hybrid system, the run at `path`."""
    document = documents.read_document(args)
    from nmt.runs.run import Run

    run = Run.load(path, threads=args.workers)
    document.set_languages(*run.members[0].languages)
    words = run.source_lengths.limit(args.max_line_words).words
    limit = documents.SentenceLimit(words, files.name_of(args.document))

    def translate(lines: Sequence[str], first: int) -> "list[AlignedTranslation]":
        return run.best_aligned(lines, BeamConfig(), replace(limit, first=first))

    documents.translate_document(args, document, run.split, translate, FAST_BLOCK)


def translate_document(own_parser: options.Parser, args: argparse.Namespace, hybrid: Hybrid | None) -> None:
    """Translate a document with a hybrid system. ConfigError for a phrase-based model, several processes and
    markup in texts."""
    if hybrid is None:
        raise ConfigError(
            f"--document: {args.model} reads tokenized text; give the folder of a hybrid system, which reads "
            "raw text"
        )
    if not decoding.uses_threads(args):
        raise ConfigError("--document is translated by threads; leave out --executor")
    document = documents.read_document(args)
    from smt_bridge.decoder import translation

    document.set_languages(hybrid.config.source.language, hybrid.config.target.language)
    decoder, name = open_decoder(own_parser, args, hybrid), files.name_of(args.document)
    if decoder.markup.policy != "pass-through":
        raise ConfigError(f"--document cannot be combined with --xml-input {decoder.markup.policy}")

    def translate(lines: Sequence[str], first: int) -> "list[AlignedTranslation]":
        numbers = range(first + 1, first + 1 + len(lines))
        return [
            translation.with_alignment(result, decoder.lines)
            for result in decoder.translate_all(lines, args.workers, name, numbers)
        ]

    documents.translate_document(args, document, decoder.lines.sentences, translate, BLOCK)


def system_parts(hybrid: Hybrid) -> list[tuple[str, str]]:
    """The files of a hybrid system, as `check_separate` takes them."""
    return [("MODEL", str(hybrid.folder / name)) for name in (folder.FILE, *hybrid.parts)]


def check_split(args: argparse.Namespace) -> None:
    """ConfigError for a model or options with which --split-sentences cannot be used."""
    if wrong := [name for name in OUTPUTS if getattr(args, name)]:
        raise ConfigError(
            f"--split-sentences cannot be combined with {options.flags(wrong)}, which apply to whole lines; "
            "split the text beforehand"
        )
    if not folder.is_hybrid(args.model):
        raise ConfigError(
            f"--split-sentences: {args.model} reads tokenized text; give the folder of a hybrid system, "
            "which reads raw text"
        )


def verify_model(model: str) -> None:
    """Verify the checksums of compiled tables. ConfigError without any, DataError for a damaged file."""
    from smt_bridge.decoder.system import ini_path, verify_compiled

    if not verify_compiled(moses_ini.read(ini_path(model))):
        raise ConfigError(
            f"--verify: {model} has neither a {folder.FILE} nor tables of smt-compile, which have checksums"
        )


def open_decoder(own_parser: options.Parser, args: argparse.Namespace, hybrid: Hybrid | None) -> "Decoder":
    """Load the decoder that the options describe. `hybrid`: None for a phrase-based model. ConfigError for an
    output that is part of the model, and for options of another search."""
    from smt_bridge.decoder.system import ini_path

    outputs = [(f"--{name.replace('_', '-')}", getattr(args, name) or "") for name in ("output", *OUTPUTS)]
    if hybrid:
        check_separate(system_parts(hybrid), outputs)
    ini = moses_ini.read(hybrid.ini if hybrid else ini_path(args.model))
    if not hybrid:
        decoding.check_tables(ini, outputs)
    decoding.refuse_unused(own_parser, args, ini)
    return make_decoder(args, ini, hybrid)


def check_markup(decoder: "Decoder", args: argparse.Namespace, hybrid: Hybrid | None) -> None:
    """Check the markup of the input, unless it is a stream, before hours of work. ConfigError for
    --split-sentences with markup, whose tags may span sentences; DataError for bad markup, or a line that is
    too long."""
    policy = decoder.markup.policy
    if args.split_sentences and policy != "pass-through":
        raise ConfigError(
            f"--split-sentences cannot be combined with --xml-input {policy}, whose tags may span sentences"
        )
    for number, line in enumerate(split_lines(args, hybrid, files.preview(args.input)), 1):
        for sentence in line.sentences:
            decoder.parse_line(sentence, f"{args.input}:{number}")


def translate(decoder: "Decoder", args: argparse.Namespace, line_count: int) -> None:
    """Translate the input, which has `line_count` lines (0: unknown), and write all outputs. Makes
    `args.cache` absolute."""
    args.cache = args.cache and os.path.abspath(args.cache)  # for other processes
    work = PhraseTranslator(args, decoder, load_hybrid(args))
    threads = decoding.uses_threads(args)
    job = TextJob(args, "smt-decode", [args.input], ExecutorConfig() if threads else None)
    paths = [args.output, *(getattr(args, name) for name in OUTPUTS if getattr(args, name))]
    unit = "lines" if args.split_sentences else "sentences"
    with (
        job.lock(),
        translate_input(work, args, job if not threads else None) as chunks,
        job.open_outputs(paths, flush=args.input == "-") as write,
        options.progress(args, unit, line_count) as progress,
    ):
        for done in chunks:
            write(done)
            jobs.advance(progress, done)
    log.info("%s %s, %s", f"{progress.done:,}", unit, format_rate(progress.rate))


# ---- translation -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineBlock:
    """Lines that are translated together, with parsed markup."""

    first: int  # number of the first line in the input, from 0
    lines: list[SplitLine]
    marked: "list[MarkedLine]"  # all sentences of the lines


def load_hybrid(args: argparse.Namespace) -> Hybrid | None:
    """Read the hybrid system that the options name; None for a phrase-based model."""
    return folder.read(Path(args.model)) if folder.is_hybrid(args.model) else None


def load_translator(args: argparse.Namespace, ini: Ini) -> "PhraseTranslator":
    """In a worker: load the model from an ini with absolute paths."""
    hybrid = load_hybrid(args)
    return PhraseTranslator(args, make_decoder(args, ini, hybrid), hybrid)


def make_decoder(args: argparse.Namespace, ini: Ini, hybrid: Hybrid | None) -> "Decoder":
    """Load the decoder with the options of smt-decode. Errors as from `load_decoder`."""
    return load_decoder(
        args,
        ini,
        (args.n_best or N_BEST) if args.n_best_list else 0,
        args.distinct,
        read_weights(args.weights) if args.weights else None,
        explain=bool(args.explain),
        lines=text_lines(args, hybrid),
    )


def text_lines(args: argparse.Namespace, hybrid: Hybrid | None) -> "Lines | None":
    """Create the converter of lines to words and back; None for tokenized lines without a glossary. DataError
    for a malformed glossary."""
    from smt_bridge.hybrid import decoder as hybrids
    from smt_bridge.hybrid.decoder import GlossaryLines

    if hybrid:
        return hybrids.make_lines(hybrid, longest_line(args), args.glossary)
    return GlossaryLines(glossary.read_tokenized(args.glossary)) if args.glossary else None


def split_lines(args: argparse.Namespace, hybrid: Hybrid | None, lines: Iterable[str]) -> Iterator[SplitLine]:
    """Split lines into sentences with --split-sentences; without it, each line is one sentence."""
    for line in lines:
        if hybrid and args.split_sentences:
            yield sentences.split_line(line, hybrid.config.source.language)
        else:
            yield SplitLine([line], [])


class PhraseTranslator:
    """A decoder with the outputs of smt-decode, which translates blocks of lines."""

    def __init__(self, args: argparse.Namespace, decoder: "Decoder", hybrid: Hybrid | None) -> None:
        self.args, self.decoder, self.hybrid = args, decoder, hybrid
        self.writers = [writer for name, writer in writers(decoder).items() if getattr(args, name)]
        self.blank = sentences.sentence_separator(hybrid.config.target.language) if hybrid else ""

    def models(self) -> list[Path]:
        """The files, besides the input, that translations depend on."""
        from smt_bridge.decoder.system import system_files

        options_files = [Path(path) for path in (self.args.weights, self.args.glossary) if path]
        if self.hybrid:
            names = (folder.FILE, *self.hybrid.parts)
            return [*(self.hybrid.folder / name for name in names), *options_files]
        return [*system_files(self.decoder.system.ini), *options_files]

    def lines(self, block: LineBlock) -> OutputLines:
        """Translate a block; returns the lines that it adds to each output."""
        outputs: OutputLines = [[] for _ in range(1 + len(self.writers))]
        translations = map(self.decoder.translate_line, block.marked)
        for number, line in enumerate(block.lines, block.first):
            for lines, more in zip(outputs, self.outputs(number, line, translations), strict=True):
                lines += more
        return outputs

    def outputs(
        self, number: int, line: SplitLine, translations: "Iterator[PhraseTranslation]"
    ) -> OutputLines:
        """The lines that line `number` of the input, counted from 0, adds to each output. Takes the
        translations of its sentences from `translations`."""
        results = list(islice(translations, len(line.sentences)))
        text = line.join([self.decoder.lines.text(result) for result in results], self.blank)
        return [[text], *(list(writer(number, results[0])) for writer in self.writers)]


def writers(decoder: "Decoder") -> "dict[str, Writer]":
    """The functions that format the lines of each further output, by their names in OUTPUTS."""
    from smt_bridge.decoder import feature_values, translation

    def explain(number: int, result: "PhraseTranslation") -> Iterable[str]:
        rows = [] if number else feature_values.explain_header(decoder.weights)
        return map("\t".join, [*rows, *feature_values.explain_rows(number + 1, result)])

    return {
        "n_best_list": lambda number, translated: (
            decoder.entry(number, translated, derivation) for derivation in translated.derivations
        ),
        "alignments": lambda number, translated: [
            " ".join(f"{source}-{target}" for source, target in translation.alignment(translated))
        ],
        "explain": explain,
        "source_words": lambda number, translated: [" ".join(translated.source)],
        "target_words": lambda number, translated: [" ".join(translated.text)],
    }


@contextmanager
def translate_input(
    work: PhraseTranslator, args: argparse.Namespace, job: TextJob | None
) -> Iterator[Iterator[FinishedChunk]]:
    """Yield the translated chunks of the input in order: lines translated by threads, or blocks by `job`."""
    name = files.name_of(args.input)
    lines, *copies = tee(split_lines(args, work.hybrid, files.read_lines(args.input)), 3)
    texts = (sentence for line in copies[0] for sentence in line.sentences)
    numbers = (number for number, line in enumerate(copies[1], 1) for _ in line.sentences)
    if job is None:
        with closing(work.decoder.translate_all(texts, args.workers, name, numbers)) as results:
            yield (
                FinishedChunk(1, work.outputs(number, line, results), earlier=False)
                for number, line in enumerate(lines)
            )
        return
    ini = decoding.absolute_ini(work.decoder.system.ini)
    with job.run(partial(load_translator, ini=ini), work) as compute:
        yield compute(cut_chunks(lines, work.decoder.parse_lines(texts, name, numbers)))


def cut_chunks(lines: Iterator[SplitLine], marked: "Iterator[MarkedLine]") -> Iterator[TextChunk[LineBlock]]:
    """Cut lines into chunks of BLOCK lines. `marked`: the parsed sentences of all lines, in order."""
    first = 0
    while block := list(islice(lines, BLOCK)):
        size = sum(len(line.sentences) for line in block)
        yield TextChunk(first, len(block), LineBlock(first, block, list(islice(marked, size))))
        first += len(block)


if __name__ == "__main__":
    sys.exit(main())
