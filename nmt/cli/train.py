"""nmt-train: train a translator or a language model from a configuration file; the same command resumes a
run."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from nmt.cli import arguments, options
from nmt.io import signals

FLAGS = ("seed", "threads", "device", "precision")  # options that override a key of the file


def main(argv: Sequence[str] | None = None) -> int:
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return options.run(command, argv)
    try:
        status = options.run(command, argv)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except Exception:
        traceback.print_exc()
        status = 1
    # Under torchrun, torch's threads sometimes abort an orderly exit of the interpreter. Everything is saved
    # by now, so skip it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-train",
        "Train a translator, or a language model if the configuration has a section lm. If the run "
        "directory exists, training resumes exactly where it was saved.",
        epilog="Every key of the configuration can be overridden: nmt-train train.yaml "
        "training.batch_size=32 model.hidden=500",
    )
    parser.add_argument(
        "config",
        type=arguments.ConfigFile,
        metavar="CONFIG",
        help="configuration file, or a folder made by nmt-init; see --print-config and docs/training.md",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="section.key=value", help="override keys of the configuration"
    )
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print the resolved configuration with an explanation of every key, and exit",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="settings for a kind of model and data, such as small (about 30,000 pairs) or large, which the "
        "configuration file overrides",
    )
    parser.add_argument(
        "--init-from",
        type=arguments.InputPath,
        metavar="RUN_DIR",
        help="start from the weights of another run; same as init_from=...",
    )
    parser.add_argument("--overwrite", action="store_true", help="remove an existing run and start over")
    kinds = {"seed": arguments.integer(0), "threads": arguments.positive}
    for flag in FLAGS:
        kind = kinds.get(flag, str)
        parser.add_argument(f"--{flag}", type=kind, default=argparse.SUPPRESS, help=f"same as {flag}=...")
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    """Train, or print the configuration. Exit status 128 + N after signal N has stopped the training."""
    args = parser().parse_intermixed_args(argv)
    overrides = args.overrides + [f"{flag}={getattr(args, flag)}" for flag in FLAGS if hasattr(args, flag)]
    overrides += [f"init_from={args.init_from}"] if args.init_from else []
    options.start_log("nmt-train", args, times=True)
    from nmt.training import config_file
    from nmt.training.config_file import explain

    config = config_file.load(args.config, overrides, args.preset)
    if args.print_config:
        for line in explain(config):
            print(line)
        return
    from nmt.training.train import run_training

    stop = signals.Stop()
    show_bar = options.shows_bar(args)
    run_training(config, config_path=args.config, overwrite=args.overwrite, stop=stop, show_bar=show_bar)
    if stop():
        sys.exit(128 + stop.number)


if __name__ == "__main__":
    sys.exit(main())
