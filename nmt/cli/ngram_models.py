"""Actions of nmt-ngram on finished models: compile, verify."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath
from nmt.errors import ConfigError
from nmt.io import mapped
from nmt.ngram import count_models, trie_build, trie_files

log = logging.getLogger(__name__)

MOST_BITS = 16


def compile_parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram compile",
        "Write an n-gram model as a folder that is mapped into memory: it opens at once whatever its size, "
        "and all processes share it. Every command that reads an ARPA file reads the folder.",
    )
    add_arpa(parser)
    parser.add_argument("-o", "--output", type=OutputPath, required=True, metavar="DIR", help="new folder")
    parser.add_argument(
        "--quantize",
        type=arguments.integer(0, MOST_BITS),
        default=0,
        metavar="BITS",
        help="bits of each log p and back-off of two words and more, which then are one of 2^BITS values for "
        "each length: 8 halves the size; 0: exact",
    )
    options.add_quiet(parser)
    return parser


def verify_parser() -> options.Parser:
    parser = options.Parser(
        "nmt-ngram verify",
        "Read a folder of nmt-ngram compile whole and verify its checksums, which other commands do once "
        "on a machine.",
    )
    parser.add_argument("folder", type=InputPath, metavar="DIR", help="folder of nmt-ngram compile")
    options.add_quiet(parser)
    return parser


def add_arpa(parser: options.Parser) -> None:
    """Add the argument for a model to read."""
    parser.add_argument("model", type=InputPath, metavar="ARPA", help="ARPA file, also .gz")


def compile_action(argv: Sequence[str]) -> None:
    """Compile an ARPA file into a mapped model."""
    args = compile_parser().parse_args(argv)
    options.start_log("nmt-ngram compile", args)
    clock = time.monotonic()
    with arguments.new_folder(args.output, "nmt-ngram compile"):
        model = count_models.read_arpa(args.model)
        compiled = trie_build.compile_model(model, args.quantize)
        mapped.write_record(Path(args.output), compiled, [str(args.model)])
        trie_files.load_trie(args.output, verify=True)  # on this machine it is verified from now on
    size = sum(path.stat().st_size for path in Path(args.output).iterdir())
    count = sum(len(level.keys) for level in model.levels)
    log.info(
        "%s n-grams, %s bytes, %.1f each, in %.1f s: %s",
        f"{count:,}", f"{size:,}", size / count, time.monotonic() - clock, args.output,
    )  # fmt: skip


def verify_action(argv: Sequence[str]) -> None:
    """Verify all files of a compiled model."""
    args = verify_parser().parse_args(argv)
    options.start_log("nmt-ngram verify", args)
    if not mapped.is_mapped(args.folder):
        raise ConfigError(f"{args.folder}: not a folder of nmt-ngram compile")
    model = trie_files.load_trie(args.folder, verify=True)
    log.info("%s: sound, n-grams of order 1 to %d", args.folder, model.trie.order)


ACTIONS: dict[str, Callable[[Sequence[str]], None]] = {"compile": compile_action, "verify": verify_action}
