"""nmt-train: train a translator or a language model from a configuration file; the same command resumes a
run."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from nmt.cli import arguments, options
from nmt.io import signals

FLAGS = ("seed", "threads", "device", "precision")  # options that stand for a key of the file


def main(argv: Sequence[str] | None = None) -> int:
    """The command's exit status."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return options.run(command, argv)
    try:
        status = options.run(command, argv)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except Exception:
        traceback.print_exc()
        status = 1
    # Under torchrun: all is saved, and torch's own threads now and then abort an interpreter that is shut
    # down in order.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def parser() -> options.Parser:
    """The options of nmt-train."""
    parser = options.Parser(
        "nmt-train",
        "Train a translator, or with section lm a language model. A run directory that exists is resumed "
        "exactly where it was saved.",
        epilog="Every key of the file can be overridden: nmt-train train.yaml training.batch_size=32 "
        "model.hidden=500",
    )
    parser.add_argument(
        "config",
        type=arguments.ConfigFile,
        metavar="CONFIG",
        help="configuration file, or the folder that nmt-init has made for it; see docs/files.md, or "
        "--print-config",
    )
    parser.add_argument("overrides", nargs="*", metavar="section.key=value", help="override keys of the file")
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print the resolved configuration, with what each key means, and stop",
    )
    parser.add_argument(
        "--preset",
        default=None,
        metavar="NAME",
        help="defaults for small (about 30,000 pairs) or large data; your file overrides them",
    )
    parser.add_argument(
        "--init-from",
        type=arguments.InputPath,
        default=None,
        metavar="RUN_DIR",
        help="start from the weights of another run, the same as init_from=...",
    )
    parser.add_argument("--overwrite", action="store_true", help="remove an existing run and start afresh")
    kinds = {"seed": arguments.integer(0), "threads": arguments.positive}
    for flag in FLAGS:
        kind = kinds.get(flag, str)
        parser.add_argument(f"--{flag}", type=kind, default=argparse.SUPPRESS, help=f"the same as {flag}=...")
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    """Parse, train; exit status 128 + the number of the signal that stopped it."""
    args = parser().parse_intermixed_args(argv)
    overrides = args.overrides + [f"{flag}={getattr(args, flag)}" for flag in FLAGS if hasattr(args, flag)]
    overrides += [f"init_from={args.init_from}"] if args.init_from else []
    options.start_log("nmt-train", args, times=True)
    from nmt.training import config_file
    from nmt.training.config_file import explained

    config = config_file.load(args.config, overrides, args.preset)
    if args.print_config:
        for line in explained(config):
            print(line)
        return
    from nmt.training.train import run_training

    stop = signals.Stop()
    show_bar = options.shows_bar(args)
    run_training(config, given=args.config, overwrite=args.overwrite, stop=stop, show_bar=show_bar)
    if stop():
        sys.exit(128 + stop.number)


if __name__ == "__main__":
    sys.exit(main())
