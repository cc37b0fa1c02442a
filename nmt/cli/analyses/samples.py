"""nmt-analyze samples."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.analysis import plots, samples
from nmt.analysis.lengths import lengths
from nmt.analysis.samples import SampleConfig
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings
from nmt.cli.arguments import add_setting, settings_of
from nmt.cli.options import Parser

log = logging.getLogger(__name__)


class Samples:
    """Long and short sentences to read."""

    help = "Long and short sentences without unknown words, as every system translates them (Table 6.2)."

    def add_options(self, parser: Parser) -> None:
        inputs.add_systems(parser)
        inputs.add_vocabularies(parser, required=False)
        for name in ("count", "long", "short", "seed"):
            add_setting(parser, SampleConfig, name)

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs = inputs.read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = inputs.read_systems(args)
        found = samples.sample_sentences(systems, vocabs, settings_of(SampleConfig, args))
        if not found:
            log.warning(
                "no sentence of more than %d or fewer than %d words is without an unknown word; try other "
                "--long, --short",
                args.long,
                args.short,
            )

        def draw(paths: Sequence[Path]) -> None:
            source = lengths(systems[0].test)["source"]
            points = {system.name: (source, system.chrf_statistics.by_sentence()) for system in systems}
            words = [sample.words for sample in found]
            marked = {
                system.name: (words, [sample.chrf[system.name] for sample in found]) for system in systems
            }
            plots.points_by_length(points, marked, paths)

        return Findings(samples.table(found), inputs.scores_of(systems), draw)
