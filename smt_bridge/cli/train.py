"""smt-train: train a phrase-based model from parallel text, as a folder of files in Moses' formats."""

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, add_settings, parse_settings
from nmt.cli.jobs import add_executor
from nmt.errors import ConfigError
from nmt.io import files
from nmt.work.executors import ExecutorConfig
from smt_bridge.cli.shared_options import add_compilation, add_memory, add_pruning, add_texts
from smt_bridge.config import TrainConfig
from smt_bridge.decoder.config import CompileConfig
from smt_bridge.extraction.alignment import ALIGNERS
from smt_bridge.extraction.config import ExtractConfig, PruneConfig

log = logging.getLogger(__name__)

# Settings that a model keeps when sentence pairs are added to it.
SETTINGS = (
    "lm_text order class_lm class_order method symmetrization max_length smoothing count_feature "
    "reordering_type no_reordering prune_significance prune_count prune_entropy distortion_limit osm "
    "osm_classes sparse_features compile quantize quantize_lm"
).split()


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parse(argv)
    options.start_log("smt-train", args, times=True)
    paths = [path for path in (args.source, args.target, args.alignment, args.lm_text) if path]
    files.existing([*paths, *([args.add] if args.add else [])])
    files.require_files(paths, "the texts are read more than once")
    if not args.alignment and not args.add:
        ALIGNERS[args.method].check()
    from smt_bridge.train_system import add_config, train

    start = time.monotonic()
    if args.add:
        config = add_config(args.add, args.source, args.target, args.alignment, args.memory)
    else:
        config = parse_settings(
            TrainConfig,
            args,
            extract=parse_settings(ExtractConfig, args),
            prune=parse_settings(PruneConfig, args),
            reordering=not args.no_reordering,
            compiled=parse_settings(CompileConfig, args) if args.compile else None,
        )
    train(Path(args.model), config, parse_settings(ExecutorConfig, args))
    log.info(
        "%s: trained, %.0f s; next: smt-tune %s --source DEV --reference DEV%s",
        args.model,
        time.monotonic() - start,
        args.model,
        " --method kbmira" * bool(config.sparse_features),
    )


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options. ConfigError for settings beside --add, which takes those of its model."""
    # argparse keeps attributes that exist, so options that are not given stay None.
    arguments = parser()
    args = arguments.parse_args(argv, argparse.Namespace(**dict.fromkeys(SETTINGS)))
    changed = [name for name in SETTINGS if getattr(args, name) is not None]
    if args.add:
        check_unused(changed, SETTINGS, f"--add keeps the settings of {args.add}; leave the option out")
    if not args.compile:
        check_unused(changed, ("quantize", "quantize_lm"), "goes with --compile")
    if args.alignment:
        check_unused(changed, ("method", "symmetrization"), "--alignment has the links; leave the option out")
    for name in set(SETTINGS) - set(changed):
        setattr(args, name, arguments.get_default(name))
    return args


def check_unused(changed: Sequence[str], names: Sequence[str], reason: str) -> None:
    """ConfigError, with `reason`, for an option of `changed` that is one of `names`."""
    if useless := [name for name in changed if name in names]:
        raise ConfigError(f"{options.flags(useless[:1])}: {reason}")


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-train",
        "Train a phrase-based model: word alignment, phrase and reordering tables, language model, "
        "moses.ini. An interrupted training resumes when it is started again. Tune the model with smt-tune "
        "afterwards. --add makes a new model of the texts of a trained one and new sentence pairs, which are "
        "aligned with the word alignment model that it kept.",
    )
    parser.add_argument("model", type=OutputPath, metavar="MODEL_DIR", help="folder of the model")
    add_texts(parser, "tokenized, escaped text", "its translation")
    parser.add_argument(
        "--alignment", "-a", type=InputPath, default="", metavar="FILE",
        help="alignment points 0-0 1-2 from any tool, instead of aligning",
    )  # fmt: skip
    parser.add_argument(
        "--lm-text", type=InputPath, default="", metavar="FILE",
        help="training text of the language model; default: the target text",
    )  # fmt: skip
    parser.add_argument(
        "--add", type=InputPath, default="", metavar="TRAINED",
        help="folder of a trained model, to whose texts the pairs are added in MODEL_DIR, with its settings",
    )  # fmt: skip
    add_settings(parser, TrainConfig, "order", "class_lm", "class_order", "method", "symmetrization")
    add_settings(parser, ExtractConfig, "max_length", "smoothing", "count_feature")
    add_setting(parser, ExtractConfig, "reordering_type", metavar="TYPE")
    parser.add_argument("--no-reordering", action="store_true", help="train no lexical reordering table")
    add_settings(parser, TrainConfig, "osm", "osm_classes", "sparse_features")
    add_pruning(parser)
    add_setting(parser, TrainConfig, "distortion_limit")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="also write the model as mapped arrays, in the folder compiled inside MODEL_DIR, as smt-compile "
        "does",
    )
    add_compilation(parser)
    add_memory(parser, ", and for counting the n-grams of the language model")
    add_executor(parser)
    options.add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
