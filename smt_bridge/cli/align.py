"""smt-align: word alignments of a parallel text in both directions, symmetrized."""

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
from nmt.work.config import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.extraction.align_shards import Outputs, align

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-align", args)
    if bool(args.forward) != bool(args.reverse):
        raise ConfigError("--forward and --reverse go together")
    if not args.forward:
        alignment.ALIGNERS[args.method].check()
    begin = time.monotonic()
    executor = parse_settings(ExecutorConfig, args)
    place = jobs.shared_folder(args, "smt-align", executor)
    if place and args.forward:
        raise ConfigError(
            "--forward and --reverse leave nothing to share out; without --workers and the like"
        )
    pairs, links = shared(args, executor, place) if place else alone(args)
    log.info(
        "%s sentence pairs, %s links, %.0f s (%s, %s)",
        f"{pairs:,}",
        f"{links:,}",
        time.monotonic() - begin,
        "given" if args.forward else args.method,
        args.symmetrization,
    )


def alone(args: argparse.Namespace) -> tuple[int, int]:
    """Align in this process; returns the numbers of pairs and links."""
    sources, targets = alignment.read_texts(args.source, args.target)
    forward, reverse = given(args, sources, targets) if args.forward else trained(args, sources, targets)
    for path, links in ((args.forward_output, forward), (args.reverse_output, reverse)):
        if path:
            files.write_text(path, map(alignment.line_of, links))
    both = alignment.symmetrized(forward, reverse, args.symmetrization)
    files.write_text(args.output, map(alignment.line_of, both))
    return len(both), sum(map(len, both))


def shared(args: argparse.Namespace, executor: ExecutorConfig, place: SharedFolder) -> tuple[int, int]:
    """Align by several workers; returns the numbers of pairs and links."""
    outputs = Outputs(args.output, args.forward_output, args.reverse_output)
    found = align(args.source, args.target, outputs, args.method, args.symmetrization, executor, place)
    warn(found.skipped)
    return found.pairs, found.links


def warn(skipped: int) -> None:
    """Say how many pairs cannot be aligned."""
    if skipped:
        log.warning(
            "%s sentence pairs get no links: a side is empty, or longer than %d words",
            f"{skipped:,}",
            alignment.LONGEST,
        )


def parser() -> options.Parser:
    made = options.Parser(
        "smt-align", "Align the words of a parallel text: lines of points 0-0 1-2, source word first."
    )
    made.add_argument("--source", "-s", type=InputPath, required=True, metavar="FILE", help="tokenized text")
    made.add_argument(
        "--target", "-t", type=InputPath, required=True, metavar="FILE", help="its translation, line by line"
    )
    options.add_output(made)
    add_setting(made, TrainConfig, "method")
    add_setting(made, TrainConfig, "symmetrization")

    def add(name: str, kind: type[str], what: str) -> None:
        made.add_argument(name, type=kind, metavar="FILE", default=None, help=what)

    add(
        "--forward",
        InputPath,
        "instead of training: points of one direction from any tool, source word first",
    )
    add("--reverse", InputPath, "and of the other direction, source word first too")
    add("--forward-output", OutputPath, "also write the first direction (source to target)")
    add("--reverse-output", OutputPath, "and the second")
    jobs.add_shared_job(made)
    options.add_quiet(made)
    return made


def trained(
    args: argparse.Namespace, sources: alignment.Texts, targets: alignment.Texts
) -> tuple[list[Links], list[Links]]:
    """Both directions from the models of a method."""
    warn(len(sources) - len(alignment.usable(sources, targets)))
    return alignment.both(sources, targets, args.method)


def given(
    args: argparse.Namespace, sources: alignment.Texts, targets: alignment.Texts
) -> tuple[list[Links], list[Links]]:
    """Both directions from files. DataError for a different number of lines, or points outside the
    sentences."""
    found = []
    for path in (args.forward, args.reverse):
        links = list(pharaoh.read(path))
        if len(links) != len(sources):
            raise files.unequal([path, args.source], [len(links), len(sources)])
        for number, (one, a, b) in enumerate(zip(links, sources, targets, strict=True), 1):
            pharaoh.check_points(one, len(a), len(b), f"{path}:{number}")
        found.append(links)
    return found[0], found[1]


if __name__ == "__main__":
    sys.exit(main())
