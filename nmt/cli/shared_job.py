"""The options of commands whose work several processes or hosts share, through a folder
(nmt/jobs/stages.py)."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.arguments import Output
from nmt.cli.jobs import add_executor
from nmt.errors import ConfigError
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.stages import Place

if TYPE_CHECKING:
    from nmt.cli.arguments import Container


def add_shared_job(parser: "Container") -> None:
    """What computes, and where the job leaves its files."""
    add_executor(parser)
    parser.add_argument(
        "--work",
        type=Output,
        default="",
        metavar="DIR",
        help="with several workers: a folder for the files of the job, which all of them share; OUTPUT.job "
        "unless given",
    )
    parser.add_argument("--resume", action="store_true", help="resume a job that was killed, from its folder")


def place_of(args: argparse.Namespace, command: str, config: ExecutorConfig) -> Place | None:
    """The folder of the job; None where this process computes alone, without one. ConfigError for a job
    without a folder."""
    if config.name == "local" and not args.work and not args.resume:
        return None
    if not args.work and args.output == "-":
        raise ConfigError("several workers share a folder: give --output FILE, or --work DIR")
    return Place(Path(args.work or f"{args.output}.job").absolute(), command, args.resume)
