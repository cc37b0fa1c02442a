"""smt-train: a phrase-based model from parallel text, in one folder, in Moses' formats."""

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, parse_settings
from nmt.cli.jobs import add_executor
from nmt.errors import ConfigError
from nmt.io import files
from nmt.work.config import ExecutorConfig
from smt_bridge.cli.shared_options import add_memory
from smt_bridge.config import TrainConfig
from smt_bridge.extraction.alignment import ALIGNERS
from smt_bridge.extraction.config import ExtractConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-train", args, times=True)
    paths = [path for path in (args.source, args.target, args.alignment, args.lm_text) if path]
    files.existing(paths)
    if "-" in paths:
        raise ConfigError("the texts are read more than once; give files, not -")
    if not args.alignment:
        ALIGNERS[args.method].check()
    from smt_bridge.train_system import train

    extract = parse_settings(ExtractConfig, args)
    begin = time.monotonic()
    train(
        Path(args.model),
        parse_settings(TrainConfig, args, extract=extract, reordering=not args.no_reordering),
        parse_settings(ExecutorConfig, args),
    )
    log.info(
        "%s: trained, %.0f s; next: smt-tune %s --source DEV --reference DEV",
        args.model,
        time.monotonic() - begin,
        args.model,
    )


def parser() -> options.Parser:
    made = options.Parser(
        "smt-train",
        "Train a phrase-based model: word alignment, phrase and reordering tables, language model, "
        "moses.ini. An interrupted training resumes when it is started again. Next, tune the model with "
        "smt-tune.",
    )
    made.add_argument("model", type=OutputPath, metavar="MODEL_DIR", help="folder of the model")
    made.add_argument(
        "--source", "-s", type=InputPath, required=True, metavar="FILE", help="tokenized, escaped text"
    )
    made.add_argument("--target", "-t", type=InputPath, required=True, metavar="FILE", help="its translation")
    made.add_argument(
        "--alignment",
        "-a",
        type=InputPath,
        default="",
        metavar="FILE",
        help="points 0-0 1-2 from any tool, instead of aligning",
    )
    made.add_argument(
        "--lm-text",
        type=InputPath,
        default="",
        metavar="FILE",
        help="text of the language model; the target text unless given",
    )
    add_setting(made, TrainConfig, "order")
    add_setting(made, TrainConfig, "method")
    add_setting(made, TrainConfig, "symmetrization")
    add_setting(made, ExtractConfig, "max_length")
    add_setting(made, ExtractConfig, "smoothing")
    made.add_argument("--no-reordering", action="store_true", help="no lexical reordering table")
    add_setting(made, TrainConfig, "distortion_limit")
    add_memory(made)
    add_executor(made)
    options.add_quiet(made)
    return made


if __name__ == "__main__":
    sys.exit(main())
