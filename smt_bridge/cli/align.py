"""smt-align: align the words of a parallel text in both directions, and symmetrize the alignments."""

import argparse
import logging
import sys
import time
from collections.abc import Sequence

from nmt.cli import jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, parse_settings
from nmt.errors import ConfigError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.extraction.align_shards import AlignmentOutputs, align

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-align", args)
    if bool(args.forward) != bool(args.reverse):
        raise ConfigError("--forward and --reverse go together")
    if not args.forward:
        alignment.ALIGNERS[args.method].check()
    start = time.monotonic()
    executor = parse_settings(ExecutorConfig, args)
    shared_folder = jobs.shared_folder(args, "smt-align", executor)
    if shared_folder and args.forward:
        raise ConfigError(
            "--forward and --reverse leave nothing to compute; leave out --workers and the like"
        )
    pairs, links = align_shared(args, executor, shared_folder) if shared_folder else align_here(args)
    log.info(
        "%s sentence pairs, %s links, %.0f s (%s, %s)",
        f"{pairs:,}",
        f"{links:,}",
        time.monotonic() - start,
        "given" if args.forward else args.method,
        args.symmetrization,
    )


def align_here(args: argparse.Namespace) -> tuple[int, int]:
    """Align in this process; returns the numbers of pairs and links."""
    sources, targets = alignment.read_texts(args.source, args.target)
    forward, reverse = (
        read_directions(args, sources, targets) if args.forward else train_directions(args, sources, targets)
    )
    for path, links in ((args.forward_output, forward), (args.reverse_output, reverse)):
        if path:
            files.write_text(path, map(alignment.format_links, links))
    both = alignment.symmetrize(forward, reverse, args.symmetrization)
    files.write_text(args.output, map(alignment.format_links, both))
    return len(both), sum(map(len, both))


def align_shared(
    args: argparse.Namespace, executor: ExecutorConfig, shared_folder: SharedFolder
) -> tuple[int, int]:
    """Align by several workers; returns the numbers of pairs and links."""
    outputs = AlignmentOutputs(args.output, args.forward_output, args.reverse_output)
    result = align(
        args.source, args.target, outputs, args.method, args.symmetrization, executor, shared_folder
    )
    warn_of_skipped(result.skipped)
    return result.pairs, result.links


def warn_of_skipped(skipped: int) -> None:
    """Log the number of pairs that cannot be aligned."""
    if skipped:
        log.warning(
            "%s sentence pairs get no links: one side is empty or longer than %d words",
            f"{skipped:,}",
            alignment.LONGEST,
        )


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-align", "Align the words of a parallel text; writes lines of points 0-0 1-2, source word first."
    )
    parser.add_argument(
        "--source", "-s", type=InputPath, required=True, metavar="FILE", help="tokenized text"
    )
    parser.add_argument(
        "--target", "-t", type=InputPath, required=True, metavar="FILE", help="its translation, line by line"
    )
    options.add_output(parser)
    add_setting(parser, TrainConfig, "method")
    add_setting(parser, TrainConfig, "symmetrization")

    def add(name: str, kind: type[str], what: str) -> None:
        parser.add_argument(name, type=kind, metavar="FILE", default=None, help=what)

    add(
        "--forward",
        InputPath,
        "instead of training: points of one direction from any tool, source word first",
    )
    add("--reverse", InputPath, "points of the other direction, also source word first")
    add("--forward-output", OutputPath, "also write the points of the direction source to target")
    add("--reverse-output", OutputPath, "also write the points of the direction target to source")
    jobs.add_shared_job(parser)
    options.add_quiet(parser)
    return parser


def train_directions(
    args: argparse.Namespace, sources: alignment.Texts, targets: alignment.Texts
) -> tuple[list[Links], list[Links]]:
    """Train the models of a method and align in both directions."""
    warn_of_skipped(len(sources) - len(alignment.alignable_pairs(sources, targets)))
    return alignment.align_both_directions(sources, targets, args.method)


def read_directions(
    args: argparse.Namespace, sources: alignment.Texts, targets: alignment.Texts
) -> tuple[list[Links], list[Links]]:
    """Read both directions from files. DataError for a different number of lines, or points outside the
    sentences."""
    directions = []
    for path in (args.forward, args.reverse):
        links = list(pharaoh.read(path))
        if len(links) != len(sources):
            raise files.unequal([path, args.source], [len(links), len(sources)])
        for number, (link_set, a, b) in enumerate(zip(links, sources, targets, strict=True), 1):
            pharaoh.check_points(link_set, len(a), len(b), f"{path}:{number}")
        directions.append(links)
    return directions[0], directions[1]


if __name__ == "__main__":
    sys.exit(main())
