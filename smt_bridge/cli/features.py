"""`--feature` and what goes with it, for all commands that compute features."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli import arguments, options
from nmt.cli.arguments import Input
from smt_bridge.features.spec import NETWORKS, PRECISIONS, Settings, Spec

if TYPE_CHECKING:
    from smt_bridge.features.base import Pairs


def add_features(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument(
        "--feature", "-f", action="append", required=required, default=None if required else [],
        metavar="TYPE[:NAME]=PATH",
        help="translation=RUN: p(target | source); inverse=RUN: a run of the other direction; lm=FILE, "
        "reverse-lm=FILE: an ARPA or KenLM model "
        "(of reversed sentences); neural-lm=RUN: a language model of nmt-train; "
        "unknown-words=RUN: count of words outside its vocabulary; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--unknown",
        choices=("plain", "split"),
        default=Settings.unknown,
        help="plain: p(UNK) for each unknown word; split: its share by training counts",
    )
    parser.add_argument(
        "--side", choices=("target", "source"), default=Settings.side, help="whose words unknown-words counts"
    )
    parser.add_argument(
        "--backoff",
        type=Input,
        default="",
        metavar="ARPA",
        help="neural-lm: share its p(UNK) among unknown words as this n-gram model does",
    )
    parser.add_argument(
        "--assume-normalized",
        action="store_true",
        help="neural-lm: take log Z as 0; only for a CSLM trained with lm.normalizer",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=Settings.precision,
        help="of a network's matrix products; the error is measured and printed",
    )
    parser.add_argument(
        "--workers", type=options.positive, default=1, help="processes; the result does not depend on it"
    )
    options.add_compute(parser, "1 for each worker unless given")


def check_separate(
    args: argparse.Namespace,
    specs: Sequence[Spec],
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str | None]],
) -> None:
    """ConfigError when an output is an input, the models of the features among them."""
    models = [(f"--feature {spec.kind}", spec.path) for spec in specs]
    arguments.check_separate([*inputs, *models, ("--backoff", args.backoff)], outputs)


def set_up(args: argparse.Namespace, specs: Sequence[Spec], back_end: str = "") -> tuple[Settings, str]:
    """Import torch and choose the back end, or take the given one of a job that goes on; also a line for the
    log."""
    run = next((spec.path for spec in specs if (Path(spec.path) / "version").exists()), None)
    line = options.set_up_torch(args.device, args.threads or 1, back_end or args.matmul, run)
    from nmt import fastmath

    settings = Settings(
        args.checkpoint,
        args.device,
        args.threads or 1,
        fastmath.in_use(),
        args.precision,
        args.unknown,
        args.side,
        args.assume_normalized,
        args.backoff,
    )
    return settings, f"{line}, {args.workers} worker{'s' * (args.workers > 1)}"


def precision_error(
    specs: Sequence[Spec], settings: Settings, features: Sequence[Any], pairs: "Pairs"
) -> str:
    """What --precision costs in log p, measured against fp32 on a sample."""
    from dataclasses import replace

    import numpy as np

    from smt_bridge.features.load import load

    parts = []
    for spec, feature in zip(specs, features, strict=True):
        if spec.kind in NETWORKS:
            exact = load([spec], replace(settings, precision="fp32"))[0].score(pairs)
            error = np.abs(feature.score(pairs) - exact)
            parts.append(
                f"{spec.name}: error in log p {error.mean():.4f} on average, {error.max():.4f} at most "
                "(mean "
                f"log p {exact.mean():.2f})"
            )
    return f"{settings.precision} against fp32 on {len(pairs):,} pairs: {'; '.join(parts)}" if parts else ""
