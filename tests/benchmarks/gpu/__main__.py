"""What the toolkit reaches on a GPU, on generated text:

    python -m tests.benchmarks.gpu [--device cuda:0] [--only peak gru] [--seconds 15] [--out figures.jsonl]
    python -m tests.benchmarks.gpu --device cpu --small    # a dry run of a minute, whose figures mean nothing

A benchmark that fails prints the end of its traceback, and the next one starts. Each figure is printed, and
appended to the file of `--out`, once it is known.
"""

import argparse
import functools
import shutil
from collections.abc import Callable

import torch

from nmt.compute import device
from nmt.errors import ConfigError

from . import kernels, search, training
from .figures import Setting

# name: what to run, and after how many times --seconds it is broken off
BENCHMARKS: dict[str, tuple[Callable[[Setting], None], float]] = {
    "peak": (kernels.peak, 4),
    "rnnsearch": (training.rnnsearch, 10),
    "transformer": (training.transformer, 16),
    "language-models": (training.language_models, 40),
    "gru": (kernels.gru, 6),
    "beam": (search.beam, 16),
    "phrases": (search.phrases, 8),
    "cslm": (search.cslm, 6),
    "recipe": (training.recipe, 2),
}
PROFILES = ("rnnsearch", "transformer")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="*", choices=BENCHMARKS, default=list(BENCHMARKS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=15, help="for each measurement, about")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    parser.add_argument("--out", default="", metavar="FILE", help="append each figure as a line of JSON")
    parser.add_argument("--data", default="", metavar="DIR", help="text of Multi30k, for `recipe`")
    parser.add_argument("--minutes", type=float, default=3, help="of `recipe`")
    parser.add_argument("--profile", choices=PROFILES, help="only where the time of an update goes")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="of --profile")
    args = parser.parse_args()
    setting = Setting(args.device, args.seconds, args.small, args.out, args.data, args.minutes)
    try:
        shown = device.set_up_device(args.device, None, "mkl")
    except ConfigError as error:
        parser.error(str(error))
    print(shown, setting.device_name, f"torch {torch.__version__}")
    chosen = {name: BENCHMARKS[name] for name in args.only}
    if args.profile:
        call = functools.partial(training.profile, model=args.profile, precision=args.precision)
        chosen = {f"profile {args.profile} {args.precision}": (call, 8)}
    try:
        for name, (benchmark, times) in chosen.items():
            print(f"\n{name}", flush=True)
            with setting.attempt(name, times * setting.seconds + 60 * args.minutes * (name == "recipe") + 60):
                benchmark(setting)
    finally:
        shutil.rmtree(setting.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
