"""nmt-import: make a run of a model that another toolkit has trained, or that nmt-export has written."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, new_folder, parse_settings

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-import",
        "Make a run of a translation model that another toolkit has trained, or of a file of nmt-export. It "
        "translates and scores like any other run. Nothing is downloaded.",
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=options.ActionParser)
    add_marian(actions)
    add_ctranslate2(actions)
    add_safetensors(actions)
    return parser


def add_marian(actions: "argparse._SubParsersAction[options.ActionParser]") -> None:
    about = (
        "Import a Marian model from a folder of Hugging Face's transformers, such as those of OPUS-MT: "
        "config.json, vocab.json, source.spm, target.spm, and model.safetensors or pytorch_model.bin. The "
        "run is trained further like any other."
    )
    marian = actions.add_parser("marian", description=about, help="a Marian model, as OPUS-MT has them")
    add_folders(marian)
    marian.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="language codes, instead of those that the model's tokenizer_config.json names",
    )
    options.add_quiet(marian)


def add_ctranslate2(actions: "argparse._SubParsersAction[options.ActionParser]") -> None:
    about = (
        "Import a model that another tool has converted to CTranslate2 (NLLB, M2M-100, Marian, OpenNMT ...): "
        "model.bin, config.json, vocabularies, and the model's SentencePiece models. The run is a copy like "
        "that of nmt-export: it translates and scores without torch, and cannot be trained further."
    )
    converted = actions.add_parser(
        "ctranslate2", description=about, help="a CTranslate2 model of another toolkit, such as NLLB"
    )
    add_folders(converted)
    for side in ("source", "target"):
        converted.add_argument(
            f"--{side}-spm",
            type=InputPath,
            default="",
            metavar="FILE",
            help=f"SentencePiece model; default: {side}.spm of the folder, or its only one",
        )
    converted.add_argument(
        "--source-token", default="", metavar="TOKEN", help="of the source language: eng_Latn, __en__"
    )
    converted.add_argument(
        "--target-token",
        default="",
        metavar="TOKEN",
        help="of the target language: fra_Latn, __fr__, or '>>fra<<', which begins the source",
    )
    for name, what in (
        ("--source-prefix", "before the source"),
        ("--source-suffix", "after the source, such as </s>"),
        ("--target-prefix", "before the target"),
    ):
        converted.add_argument(
            name,
            nargs="*",
            metavar="TOKEN",
            help=f"tokens {what}, instead of those that follow from the languages' tokens and config.json",
        )
    converted.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="language codes for text and server; default: the languages in the two tokens",
    )
    options.add_quiet(converted)


def add_safetensors(actions: "argparse._SubParsersAction[options.ActionParser]") -> None:
    about = (
        "Make a run of a file that nmt-export --format safetensors has written: a translator or a language "
        "model with its texts. It is the exported run, without what resuming its training needs."
    )
    shared = actions.add_parser(
        "safetensors", description=about, help="a file of nmt-export --format safetensors"
    )
    add_folders(shared, "FILE", "the file")
    options.add_quiet(shared)


def add_folders(
    parser: options.ActionParser, metavar: str = "DIR", what: str = "the folder of the model"
) -> None:
    """Add the model, and the run to create."""
    parser.add_argument("folder", type=InputPath, metavar=metavar, help=what)
    options.add_required_output(parser, "RUN_DIR", "the run to create")


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    path, output = Path(args.folder), Path(args.output)
    with new_folder(output, "nmt-import"):
        if args.action == "safetensors":
            from nmt.runs import safetensors  # imports torch

            summary = safetensors.import_file(path, output)
        elif args.action == "marian":
            from nmt.training import marian  # imports torch

            summary = marian.import_model(path, output, languages(args))
        else:
            from nmt.runs import ctranslate2_import

            settings = parse_settings(ctranslate2_import.ImportSettings, args, languages=languages(args))
            summary = ctranslate2_import.import_model(path, output, settings)
    log.info("%s: %s", output, summary)


def languages(args: argparse.Namespace) -> tuple[str, str] | None:
    """The two codes of --languages; None without the option."""
    return (args.languages[0], args.languages[1]) if args.languages else None


if __name__ == "__main__":
    sys.exit(main())
