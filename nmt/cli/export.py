"""nmt-export: write a trained Transformer for another engine, which translates faster and without torch."""

import importlib.util
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath, checkpoint
from nmt.errors import ConfigError
from nmt.io import locks
from nmt.runs import directory as run_directory
from nmt.runs.exported import NO_ENGINE, QUANTIZATIONS

log = logging.getLogger(__name__)

FORMATS = ("ctranslate2",)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-export",
        "Write a trained Transformer for CTranslate2: a folder that nmt-translate and nmt-score read like a "
        "run, faster and without torch.",
    )
    parser.add_argument("run", type=InputPath, metavar="RUN_DIR", help="a Transformer trained by nmt-train")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="the engine")
    parser.add_argument(
        "--output", "-o", type=OutputPath, required=True, metavar="DIR", help="the folder to make"
    )
    parser.add_argument(
        "--quantization",
        choices=QUANTIZATIONS,
        default=QUANTIZATIONS[0],
        help="numbers of the matrices: float32 translates as the run does, up to what the two searches "
        "differ in; int8 is a quarter of the size and the fastest",
    )
    parser.add_argument(
        "--checkpoint",
        type=checkpoint,
        default="best",
        metavar="STEP",
        help="best, last or the number of an update",
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-export", args)
    run, output = run_directory.resolve(args.run), Path(args.output)
    run_directory.check_version(run)
    if importlib.util.find_spec("ctranslate2") is None:
        raise ConfigError(f"--format ctranslate2: {NO_ENGINE}")
    check_new(output)
    from nmt.runs import export

    with locks.locked(output, "nmt-export"):
        check_new(output)
        name = export.export(run, output, args.checkpoint, args.quantization)
    log.info("%s: %s in %s", output, name, args.quantization)


def check_new(output: Path) -> None:
    """ConfigError unless the folder is missing or empty."""
    if not locks.is_empty(output):
        raise ConfigError(f"{output}: exists already; choose another name")


if __name__ == "__main__":
    sys.exit(main())
