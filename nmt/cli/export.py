"""nmt-export: write a trained Transformer for another engine, which translates faster and without torch."""

import importlib.util
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath, new_folder
from nmt.errors import ConfigError
from nmt.runs import directory as run_directory
from nmt.runs.exported import QUANTIZATIONS
from nmt.runs.framed import NO_ENGINE

log = logging.getLogger(__name__)

FORMATS = ("ctranslate2",)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-export",
        "Write a trained Transformer for CTranslate2: a folder that nmt-translate, nmt-score, "
        "nmt-serve and smt-rescore read like a run, faster and without torch.",
    )
    parser.add_argument("run", type=InputPath, metavar="RUN_DIR", help="a Transformer trained by nmt-train")
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="the engine that reads the folder"
    )
    parser.add_argument(
        "--output", "-o", type=OutputPath, required=True, metavar="DIR", help="the folder to create"
    )
    parser.add_argument(
        "--quantization",
        choices=QUANTIZATIONS,
        default=QUANTIZATIONS[0],
        help="precision of the weight matrices: float32 translates like the run, apart from differences "
        "between the two searches; int8 is fastest, and a third of the size",
    )
    options.add_checkpoint(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    run, output = run_directory.resolve(args.run), Path(args.output)
    run_directory.check_version(run)
    if importlib.util.find_spec("ctranslate2") is None:
        raise ConfigError(f"--format ctranslate2: {NO_ENGINE}")
    with new_folder(output, "nmt-export"):
        from nmt.runs import export

        name = export.export(run, output, args.checkpoint, args.quantization)
    log.info("%s: %s in %s", output, name, args.quantization)


if __name__ == "__main__":
    sys.exit(main())
