"""smt-decode: translate with a phrase-based model in Moses' files, without Moses, or with a hybrid system."""

import argparse
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output, check_separate, positive
from nmt.errors import ConfigError
from nmt.progress import rate_of
from nmt.text import glossary
from smt_bridge.cli import decoding
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import weights as weight_files

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.lines import Lines
    from smt_bridge.decoder.translation import PhraseTranslation

    Writer = Callable[[int, PhraseTranslation], Iterable[str]]  # number of a line, from 0 -> lines of a file

log = logging.getLogger(__name__)

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
    sentences = files.check_text(args.input)
    hybrid = folder.read(Path(args.model)) if folder.is_hybrid(args.model) else None
    if hybrid:
        args = with_defaults(hybrid, argv)
        if args.verify:
            folder.verify(hybrid)
    elif args.verify:
        raise ConfigError(
            f"--verify: {args.model} has no {folder.FILE} with checksums; it is for the folder of a hybrid "
            "system"
        )
    decoder = load(args, hybrid)
    check_markup(decoder, args.input)
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
        type=Input,
        metavar="SYSTEM_DIR|MODEL_DIR|INI",
        help="a folder, or a moses.ini; relative paths in it are tried from here, then beside it; those of a "
        "system only beside it",
    )
    options.add_input_output(made, "raw text for a system, tokenized (and escaped) text for a model")
    for name, what in OUTPUTS.items():
        flag = f"--{name.replace('_', '-')}"
        made.add_argument(flag, type=Output, metavar="FILE", default=None, help=what)
    made.add_argument(
        "--n-best", type=positive, default=100, metavar="K", help="entries of a sentence in the list"
    )
    made.add_argument(
        "--distinct", action="store_true", help="list different texts only, of the best 20 x K derivations"
    )
    made.add_argument(
        "--glossary",
        type=Input,
        metavar="FILE",
        default="",
        help="terms and the translations they must have, a tab between them; default: the system's, if it "
        "has one",
    )
    made.add_argument(
        "--weights",
        "-w",
        type=Input,
        metavar="FILE",
        default=None,
        help="lines 'Name= v v' or another ini, instead of the ini's weights",
    )
    made.add_argument(
        "--verify", action="store_true", help="compare the checksums of all files of a system first"
    )
    decoding.add_search(made)
    options.add_quiet(made)
    return made


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
    return decoding.load(
        args,
        ini,
        args.n_best if args.n_best_list else 0,
        args.distinct,
        weight_files.read(args.weights) if args.weights else None,
        explain=bool(args.explain),
        lines=lines_of(args, hybrid),
        beside=bool(hybrid),
    )


def lines_of(args: argparse.Namespace, hybrid: Hybrid | None) -> "Lines | None":
    """How lines are read and written; None for tokenized ones without a glossary."""
    from smt_bridge.hybrid import decoder as hybrids
    from smt_bridge.hybrid.lines import GlossaryLines

    if hybrid:
        return hybrids.lines_of(hybrid, decoding.longest_line(args), args.glossary)
    return GlossaryLines(glossary.of_words(args.glossary)) if args.glossary else None


def check_markup(decoder: "Decoder", path: str) -> None:
    """Read a regular file through once, so that a mistake in its markup is reported before hours of work."""
    for number, line in enumerate(files.preview(path), 1):
        decoder.marked(line, f"{path}:{number}")


def translate(decoder: "Decoder", args: argparse.Namespace, sentences: int) -> None:
    """Translate the input of so many lines (0: unknown); write translations, lists and tables."""
    with ExitStack() as stack:
        out = stack.enter_context(files.Writing(args.output))
        others = [
            (stack.enter_context(files.Writing(getattr(args, name))), writer)
            for name, writer in writers(decoder).items()
            if getattr(args, name)
        ]
        lines = files.read_lines(args.input)
        translations = stack.enter_context(
            closing(decoder.translate_all(lines, args.workers, files.name_of(args.input)))
        )
        with options.progress(args, "sentences", sentences) as progress:
            for number, found in enumerate(translations):
                out.write(decoder.lines.text(found) + "\n")
                if args.input == "-":
                    out.flush()  # somebody may be waiting for this line
                for other, writer in others:
                    other.write_lines(writer(number, found))
                progress.add(1)
    log.info("%s sentences, %s", f"{progress.done:,}", rate_of(progress.rate))


def writers(decoder: "Decoder") -> "dict[str, Writer]":
    """What is written besides a translation, by the name of its option."""
    from smt_bridge.decoder import explain, translation

    def explained(number: int, found: "PhraseTranslation") -> Iterable[str]:
        rows = [] if number else explain.header(decoder.weights)
        return map("\t".join, [*rows, *explain.rows(number + 1, found)])

    return {
        "n_best_list": lambda number, found: (
            decoder.entry(number, found, derivation) for derivation in found.derivations
        ),
        "alignments": lambda number, found: [
            " ".join(f"{source}-{target}" for source, target in translation.alignment(found))
        ],
        "explain": explained,
        "source_words": lambda number, found: [" ".join(found.source)],
        "target_words": lambda number, found: [" ".join(found.text)],
    }


if __name__ == "__main__":
    sys.exit(main())
