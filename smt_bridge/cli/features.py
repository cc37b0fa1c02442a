"""`--feature` and what goes with it, for all commands that compute features."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import Input, add_setting
from nmt.jobs import folder
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec


def add_features(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """--feature, the settings of features, and how they are computed."""
    kinds = "; ".join(f"{name}: {kind.help}" for name, kind in FEATURES.items()).replace("%", "%%")
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        required=required,
        default=None if required else [],
        metavar="TYPE[:NAME]=PATH",
        help=f"may be repeated. {kinds}",
    )
    for name in ("unknown", "side", "assume_normalized", "precision"):
        add_setting(parser, FeatureSettings, name)
    parser.add_argument(
        "--backoff",
        type=Input,
        default=FeatureSettings.backoff,
        metavar="ARPA",
        help="neural-lm: share its p(UNK) among unknown words as this n-gram model does",
    )
    jobs.add_executor(parser)
    parser.add_argument("--resume", action="store_true", help="resume a job that was killed, from OUTPUT.job")
    options.add_compute(parser, "1 for each worker unless given")


def check_separate(
    args: argparse.Namespace,
    specs: Sequence[FeatureSpec],
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str | None]],
) -> None:
    """ConfigError when an output is an input; the models of the features are inputs."""
    models = [(f"--feature {spec.kind}", spec.path) for spec in specs]
    arguments.check_separate([*inputs, *models, ("--backoff", args.backoff)], outputs)


def set_up(
    args: argparse.Namespace, specs: Sequence[FeatureSpec], output: str
) -> tuple[FeatureSettings, str]:
    """Import torch and choose the back end, or take that of the job that is resumed; also a line for the
    log."""
    run = next((spec.path for spec in specs if (Path(spec.path) / "version").exists()), None)
    before = folder.settings_of(output) if args.resume else {}
    back_end = str(before.get("back_end") or args.matmul)
    threads = args.threads or 1
    line = options.set_up_torch(args.device, threads, back_end, run)
    from nmt.compute import matmul

    settings = arguments.settings_of(FeatureSettings, args, threads=threads, back_end=matmul.in_use())
    return settings, f"{line}, {jobs.where(args)}"
