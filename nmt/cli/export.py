"""nmt-export: write a trained Transformer for another engine, or any run as one file to share."""

import importlib.util
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, new_folder
from nmt.errors import ConfigError
from nmt.runs import directory as run_directory
from nmt.runs.exported import QUANTIZATIONS
from nmt.runs.framed import NO_ENGINE

log = logging.getLogger(__name__)

CTRANSLATE2, SAFETENSORS = FORMATS = ("ctranslate2", "safetensors")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-export",
        "Write a trained Transformer for CTranslate2: a folder that nmt-translate, nmt-score, "
        "nmt-serve and smt-rescore read like a run, faster and without torch. Or write any run as one file "
        "of safetensors, to share: weights, texts, license and provenance. nmt-import reads it.",
    )
    parser.add_argument(
        "run", type=InputPath, metavar="RUN_DIR", help="a run of nmt-train; for CTranslate2 a Transformer"
    )
    parser.add_argument("--format", choices=FORMATS, default=CTRANSLATE2, help="what to write")
    options.add_required_output(parser, "PATH", "the folder to create; for safetensors the file")
    parser.add_argument(
        "--quantization",
        choices=QUANTIZATIONS,
        help="of CTranslate2: precision of the weight matrices. float32, the default, translates like the "
        "run, apart from differences between the two searches; int8 is fastest, and a third of the size",
    )
    parser.add_argument(
        "--license",
        default="",
        metavar="NAME",
        help="of safetensors: license of the model, such as CC-BY-4.0; default: that of the imported model",
    )
    options.add_checkpoint(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    run, output = run_directory.resolve(args.run), Path(args.output)
    run_directory.check_version(run)
    if args.format == SAFETENSORS:
        if args.quantization:
            raise ConfigError("--quantization: belongs to --format ctranslate2; leave it out")
        from nmt.runs import safetensors

        log.info("%s: %s", output, safetensors.export(run, output, args.checkpoint, args.license))
        return
    if args.license:
        raise ConfigError("--license: belongs to --format safetensors; leave it out")
    if importlib.util.find_spec("ctranslate2") is None:
        raise ConfigError(f"--format ctranslate2: {NO_ENGINE}")
    quantization = args.quantization or QUANTIZATIONS[0]
    with new_folder(output, "nmt-export"):
        from nmt.runs import ctranslate2_export

        name = ctranslate2_export.export(run, output, args.checkpoint, quantization)
    log.info("%s: %s in %s", output, name, quantization)


if __name__ == "__main__":
    sys.exit(main())
