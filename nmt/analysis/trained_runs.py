"""The input of analyses of trained runs: the run, and a sentence or text that it reads."""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.analysis.actions import add_output
from nmt.analysis.systems import TestSet
from nmt.cli import options
from nmt.cli.arguments import InputPath
from nmt.cli.options import Parser
from nmt.io import files
from nmt.text import subwords

if TYPE_CHECKING:
    from nmt.runs.run import Run

log = logging.getLogger(__name__)


def load_run(args: argparse.Namespace, path: str) -> "Run":
    """Load the run of a directory, to compute as the options of `options.add_compute` say."""
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, path)
    from nmt.runs.run import Run

    run = Run.of(path, which=args.checkpoint, device=args.device)
    log.info("%s: %s", run.name, set_up)
    return run


def has_subwords(run: Path) -> bool:
    """Does a run split words into subword units?"""
    return any(subwords.stored(run, side) for side in ("source", "target"))


def read_units(path: str, test: TestSet, tokenized: bool) -> tuple[list[list[str]], list[list[str]]] | None:
    """Split the sources and first references into the units of a run.

    None if the run splits no words: it has a word vocabulary, or its source has no blanks between words.
    """
    from nmt.runs import checkpoint

    run = Path(path)
    data = checkpoint.checked_config(run).data
    source, target = (checkpoint.load_side(run, side, data)[0] for side in ("source", "target"))
    if source.spaceless or not (source.subwords or target.subwords):
        return None
    return (
        [source.units(line, tokenized) for line in test.sources],
        [target.units(line, tokenized) for line in test.references[0]],
    )


def add_line(parser: Parser) -> None:
    """Add the options of a run and of one source sentence, which `read_line` reads, and --output."""
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the source sentence; else the first line of --input"
    )
    parser.add_argument("--input", "-i", type=InputPath, default="-", metavar="FILE", help="source text")
    parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
    add_output(parser)


def read_line(args: argparse.Namespace) -> str:
    return str(args.line or next(files.read_lines(args.input), ""))
