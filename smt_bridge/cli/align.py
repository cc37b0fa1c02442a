"""smt-align: align the words of a parallel text in both directions, and symmetrize the alignments."""

import argparse
import logging
import sys
import time
from collections.abc import Sequence

from nmt.cli import jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_settings, parse_settings
from nmt.errors import ConfigError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files
from nmt.work.executors import ExecutorConfig
from smt_bridge.cli.shared_options import add_texts
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.extraction.alignment import AlignmentCounts, AlignmentOutputs
from smt_bridge.extraction.packed_corpus import MOST_WORDS, pack_links

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    own_parser = parser()
    args = options.parse(own_parser, argv)
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
    if args.forward and args.method != own_parser.get_default("method"):
        raise ConfigError("--method: --forward and --reverse have the links already; leave --method out")
    outputs = AlignmentOutputs(args.output, args.forward_output, args.reverse_output)
    if shared_folder:
        counts = alignment.align_shared(
            args.source, args.target, outputs, args.method, args.symmetrization, executor, shared_folder
        )
        warn_of_skipped(counts.skipped)
    else:
        counts = align_here(args, outputs)
    log.info(
        "%s sentence pairs, %s links, %.0f s (%s, %s)",
        f"{counts.pairs:,}",
        f"{counts.links:,}",
        time.monotonic() - start,
        "given" if args.forward else args.method,
        args.symmetrization,
    )


def align_here(args: argparse.Namespace, outputs: AlignmentOutputs) -> AlignmentCounts:
    """Align in this process, or symmetrize the links of --forward and --reverse; writes the outputs.
    DataError for texts without words, or links that do not belong to them."""
    from smt_bridge.extraction.symmetrization import symmetrize

    sources, targets = alignment.read_texts(args.source, args.target)
    skipped = len(sources) - len(alignment.alignable_pairs(sources, targets))
    if args.forward:
        paths = args.forward, args.reverse
        forward, reverse = (pack_links(read_direction(path, args.source, sources, targets)) for path in paths)
    else:
        warn_of_skipped(skipped)
        forward, reverse = alignment.align_both_directions(sources, targets, args.method)
    both = symmetrize(forward, reverse, args.symmetrization)
    for path, links in ((outputs.forward, forward), (outputs.reverse, reverse), (outputs.both, both)):
        if path:
            files.write_text(path, links.lines())
    return AlignmentCounts(len(both), len(both.source), skipped)


def read_direction(path: str, source: str, sources: alignment.Texts, targets: alignment.Texts) -> list[Links]:
    """Read the links of one direction. DataError for a different number of lines than the text `source` has,
    points outside the sentences, or beyond the 65,536th word."""
    links = list(pharaoh.read(path))
    if len(links) != len(sources):
        raise files.unequal([path, source], [len(links), len(sources)])
    for number, (link_set, a, b) in enumerate(zip(links, sources, targets, strict=True), 1):
        pharaoh.check_points(link_set, len(a), len(b), f"{path}:{number}")
        pharaoh.check_points(link_set, MOST_WORDS, MOST_WORDS, f"{path}:{number}")
    return links


def warn_of_skipped(skipped: int) -> None:
    """Log a warning with the number of pairs that cannot be aligned, if there are any."""
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
    add_texts(parser, "tokenized text", "its translation, line by line")
    options.add_output(parser)
    add_settings(parser, TrainConfig, "method", "symmetrization")

    points_help = "points of one direction from any tool, source word first"
    for name, kind, what in (
        ("--forward", InputPath, f"instead of training: {points_help}"),
        ("--reverse", InputPath, "points of the other direction, also source word first"),
        ("--forward-output", OutputPath, "also write the points of the direction source to target"),
        ("--reverse-output", OutputPath, "also write the points of the direction target to source"),
    ):
        parser.add_argument(name, type=kind, metavar="FILE", default=None, help=what)
    jobs.add_shared_job(parser)
    options.add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
