"""nmt-import: make a run of a translation model that another toolkit has trained."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath, new_folder

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-import",
        "Make a run of a translation model that another toolkit has trained. It translates, scores and is "
        "trained further like any other run. Nothing is downloaded.",
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=options.ActionParser)
    about = (
        "Import a Marian model from a folder of Hugging Face's transformers, such as those of OPUS-MT: "
        "config.json, vocab.json, source.spm, target.spm, and model.safetensors or pytorch_model.bin."
    )
    marian = actions.add_parser("marian", description=about, help="a Marian model, as OPUS-MT has them")
    marian.add_argument("folder", type=InputPath, metavar="DIR", help="the folder of the model")
    marian.add_argument(
        "--output", "-o", type=OutputPath, required=True, metavar="RUN_DIR", help="the run to create"
    )
    marian.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="language codes, instead of those that the model's tokenizer_config.json names",
    )
    options.add_quiet(marian)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-import", args)
    output = Path(args.output)
    with new_folder(output, "nmt-import"):
        from nmt.training import marian

        languages = (args.languages[0], args.languages[1]) if args.languages else None
        summary = marian.import_model(Path(args.folder), output, languages)
    log.info("%s: %s", output, summary)


if __name__ == "__main__":
    sys.exit(main())
