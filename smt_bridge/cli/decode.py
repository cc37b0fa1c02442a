"""smt-decode: translate with a phrase-based model in Moses' files, without Moses."""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output, positive
from nmt.progress import rate_of
from smt_bridge.cli import decoding
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import weights as weight_files

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-decode", args)
    sentences = files.check_text(args.input)
    from smt_bridge.decoder.system import ini_of

    ini = moses_ini.read(ini_of(args.model))
    decoding.check_tables(ini, [("--output", args.output), ("--n-best-list", args.n_best_list or "")])
    weights = weight_files.read(args.weights) if args.weights else None
    decoder = decoding.load(args, ini, args.n_best if args.n_best_list else 0, args.distinct, weights)
    check_markup(decoder, args.input)
    translate(decoder, args, sentences)


def parser() -> options.Parser:
    made = options.Parser(
        "smt-decode",
        "Translate tokenized text with a phrase-based model: a folder of smt-train, or a moses.ini with its "
        "tables. A line in, a line out.",
    )
    made.add_argument(
        "model",
        type=Input,
        metavar="MODEL_DIR|INI",
        help="a model folder, or a moses.ini; relative paths in it are tried from here, then beside it",
    )
    options.add_input_output(made, "tokenized (and escaped) text")
    made.add_argument(
        "--n-best-list",
        type=Output,
        metavar="FILE",
        default=None,
        help="Moses-format list with segmentation and alignment; .gz compresses",
    )
    made.add_argument(
        "--n-best", type=positive, default=100, metavar="K", help="entries of a sentence in the list"
    )
    made.add_argument(
        "--distinct", action="store_true", help="list different texts only, of the best 20 x K derivations"
    )
    made.add_argument(
        "--weights",
        "-w",
        type=Input,
        metavar="FILE",
        default=None,
        help="lines 'Name= v v' or another ini, instead of the ini's weights",
    )
    decoding.add_search(made)
    options.add_quiet(made)
    return made


def check_markup(decoder: "Decoder", path: str) -> None:
    """Read a regular file through once, so that a mistake in its markup is reported before hours of work."""
    for number, line in enumerate(files.preview(path), 1):
        decoder.marked(line, f"{path}:{number}")


def translate(decoder: "Decoder", args: argparse.Namespace, sentences: int) -> None:
    """Translate the input of so many lines (0: unknown); write translations and lists."""
    with ExitStack() as stack:
        out = stack.enter_context(files.Writing(args.output))
        listed = stack.enter_context(files.Writing(args.n_best_list)) if args.n_best_list else None
        lines = files.read_lines(args.input)
        translations = stack.enter_context(
            closing(decoder.translate_all(lines, args.workers, files.name_of(args.input)))
        )
        with options.progress(args, "sentences", sentences) as progress:
            for number, found in enumerate(translations):
                out.write(" ".join(found.text) + "\n")
                if args.input == "-":
                    out.flush()  # somebody may be waiting for this line
                if listed:
                    listed.write_lines(
                        decoder.entry(number, found, derivation) for derivation in found.derivations
                    )
                progress.add(1)
    log.info("%s sentences, %s", f"{progress.done:,}", rate_of(progress.rate))


if __name__ == "__main__":
    sys.exit(main())
