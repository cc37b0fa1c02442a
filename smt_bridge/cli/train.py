"""smt-train: a phrase-based model from parallel text, in one folder, in Moses' formats."""

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output, add_setting
from nmt.errors import ConfigError
from smt_bridge.alignment import thot
from smt_bridge.config import ExtractConfig, TrainConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-train",
        "Train a phrase-based model: word alignment, phrase and reordering tables, language model, "
        "moses.ini. Started again after "
        "an interruption it goes on where it was. Tune it next: smt-tune.",
    )
    parser.add_argument("model", type=Output, metavar="MODEL_DIR", help="folder of the model")
    parser.add_argument(
        "--source", "-s", type=Input, required=True, metavar="FILE", help="tokenized, escaped text"
    )
    parser.add_argument("--target", "-t", type=Input, required=True, metavar="FILE", help="its translation")
    parser.add_argument(
        "--alignment",
        "-a",
        type=Input,
        default="",
        metavar="FILE",
        help="points 0-0 1-2 of any tool, instead of aligning",
    )
    parser.add_argument(
        "--lm-text",
        type=Input,
        default="",
        metavar="FILE",
        help="text of the language model; the target text unless given",
    )
    add_setting(parser, TrainConfig, "order", help="of the language model")
    add_setting(parser, TrainConfig, "method", help="of word alignment")
    add_setting(parser, TrainConfig, "symmetrization", help="of the two directions")
    add_setting(parser, ExtractConfig, "max_length", help="words of a phrase")
    add_setting(parser, ExtractConfig, "smoothing", help="of phi")
    parser.add_argument("--no-reordering", action="store_true", help="no lexical reordering table")
    add_setting(
        parser, TrainConfig, "distortion_limit", help="longest jump in words, written into moses.ini; -1: any"
    )
    add_setting(parser, ExtractConfig, "memory", metavar="MB", help="of phrase extraction")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-train", args.quiet, times=True)
    paths = [path for path in (args.source, args.target, args.alignment, args.lm_text) if path]
    files.existing(paths)
    if "-" in paths:
        raise ConfigError("the texts are read more than once; give files, not -")
    if not args.alignment:
        thot()
    from smt_bridge.system_training import train

    config = TrainConfig(
        args.source, args.target, alignment=args.alignment, lm_text=args.lm_text, method=args.method,
        symmetrization=args.symmetrization, order=args.order,
        reordering=not args.no_reordering, distortion_limit=args.distortion_limit,
        extract=ExtractConfig(max_length=args.max_length, smoothing=args.smoothing, memory=args.memory),
    )  # fmt: skip
    begin = time.monotonic()
    train(Path(args.model), config)
    log.info(
        "%s: trained, %.0f s; next: smt-tune %s --source DEV --reference DEV",
        args.model,
        time.monotonic() - begin,
        args.model,
    )


if __name__ == "__main__":
    sys.exit(main())
